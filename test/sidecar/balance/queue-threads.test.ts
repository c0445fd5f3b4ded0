import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { MessageChannel, type Worker } from 'node:worker_threads'
import { clockOrigin } from '../../../feedback/clock.ts'
import { recall } from '../../../feedback/held.ts'
import { type SharedZone, Zone } from '../../../feedback/zone.ts'
import { finished, thread } from '../../support/thread.ts'
import { timed } from '../../support/undisturbed.ts'
import { until } from '../../support/until.ts'

/** What every thread does first: a group of one peer, and requests that wait for it and keep it for a moment. */
const prelude = `
  const { Zone } = await load('feedback/zone.ts')
  const { Peer } = await load('feedback/peer.ts')
  const { Upstream } = await load('feedback/upstream.ts')
  const { Call } = await load('feedback/call.ts')
  const { setClock, monotonic } = await load('feedback/clock.ts')
  const { observe } = await load('feedback/observe.ts')
  const { Group } = await load('sidecar/balance/group.ts')
  const { Selection } = await load('sidecar/balance/pick.ts')
  const { RoundRobin } = await load('sidecar/balance/round-robin.ts')
  const { Queue } = await load('sidecar/balance/queue.ts')
  const { Alarm } = await load('sidecar/balance/alarm.ts')
  setClock(data.clock)
  const zone = Zone.attach(data.shared, data.row)
  zone.follow = () => {
    for (let note = receiveMessageOnPort(data.moves); note; note = receiveMessageOnPort(data.moves)) zone.move(note.message)
  }
  const peer = new Peer(zone, 0, 'a', 'a', { kind: 'tcp', host: '127.0.0.1', port: 8001 },
    { weight: 1, max_conns: data.most, max_conns_scope: 'instance', max_fails: 1, fail_timeout: 10_000, slow_start: 0,
      backup: false, down: false, drain: false, track: 'stable', sid: '' })
  const upstream = new Upstream({ name: 'u', zone, peers: [peer], backups: [], method: 'round_robin',
    learning: undefined, responseTimeFactor: 0.9 })
  const group = new Group(upstream, new RoundRobin([peer]), undefined)
  const queue = new Queue({ number: 10_000, timeout: 60_000 }, (call) => new Alarm(call))
  const open = setInterval(() => {}, 1000)
  let peak = 0
  let longest = 0
  const told = () => new Promise((resolve) => parentPort.once('message', resolve))
  const request = async (hold) => {
    const selection = new Selection(group, new Call())
    let attempt = queue.crowded(group) ? undefined : selection.next()
    if (attempt === undefined) {
      const waited = await queue.enter(selection).ended
      attempt = waited.attempt
      longest = Math.max(longest, waited.ms)
    }
    zone.enter()
    peak = Math.max(peak, zone.peers.conns[0])
    zone.leave()
    await (typeof hold === 'number' ? new Promise((resolve) => setTimeout(resolve, hold)) : hold)
    attempt.ending = 'ok'
    observe(attempt, undefined, monotonic())
  }
`

/** A zone with one peer, and threads that send requests to it. */
function shared(most: number) {
  const zone = new Zone('u', 1, 2)
  zone.allocate()
  const ports = new Map<number, MessagePort>()
  zone.onMove = (place: SharedZone) => {
    for (const port of ports.values()) port.postMessage(place)
  }
  const begin = (body: string, row: number): Worker => {
    const { port1, port2 } = new MessageChannel()
    port1.unref()
    ports.set(row, port1)
    const data = { shared: zone.share(), row, most, moves: port2, clock: clockOrigin() }
    return thread(`${prelude}\n${body}\nclearInterval(open)`, data)
  }
  return { zone, begin }
}

const flood = `
  const requests = Array.from({ length: 400 }, (_, i) => request(i % 3))
  await Promise.all(requests)
  parentPort.postMessage({ peak, longest })
`

test('two threads that flood one peer never give it too much, and leave nobody waiting', async () => {
  const { zone, begin } = shared(7)
  const workers = [0, 1].map((row) => begin(flood, row))
  const said = await Promise.all(workers.map((worker) => once(worker, 'message')))
  await finished(...workers)
  const peaks = said.map(([{ peak }]) => peak as number)
  assert.equal(Math.max(...peaks), 7)
  assert.deepEqual([zone.peers.selected[0], zone.peers.conns[0]], [800, 0])
  assert.equal(zone.get('queueWaiting'), 0)
  assert.ok(zone.get('queued') >= 780, `${zone.get('queued')} waited`)
})

test(
  'a place that becomes free in one thread is had by whoever waits in another, at once',
  timed(async () => {
    const { zone, begin } = shared(1)
    const holder = begin('await request(told())', 0)
    await until(() => zone.peers.conns[0] === 1)
    const waiter = begin(`await request(0); parentPort.postMessage("done")`, 1)
    await until(() => zone.get('queueWaiting') === 1)
    holder.postMessage('let go')
    const from = performance.now()
    await Promise.all([once(waiter, 'message'), finished(holder, waiter)])
    // It looks by itself every half second, and would have waited so long.
    assert.ok(performance.now() - from < 400)
  }),
)

test(
  'what a thread that is ended held is had by those that wait in another',
  timed(async () => {
    const { zone, begin } = shared(2)
    const holder = begin('await Promise.all(Array.from({ length: 6 }, () => request(60_000)))', 0)
    await until(() => zone.get('queueWaiting') === 4)
    const waiter = begin(
      `await Promise.all(Array.from({ length: 5 }, () => request(1))); parentPort.postMessage({ longest, peak })`,
      1,
    )
    await until(() => zone.get('queueWaiting') === 9)
    const done = once(waiter, 'message')
    await holder.terminate()
    zone.enter()
    recall(zone, 0)
    zone.leave()
    zone.wake()
    const from = performance.now()
    const [{ peak }] = await done
    assert.ok(performance.now() - from < 400)
    await finished(waiter)
    assert.equal(peak, 2)
    assert.deepEqual([zone.get('queueWaiting'), zone.peers.conns[0]], [0, 0])
  }),
)

test('those that wait are found again where the zone has moved', async () => {
  const { zone, begin } = shared(1)
  const worker = begin(
    `await Promise.all([request(told()), ...Array.from({ length: 20 }, () => request(1))])
     parentPort.postMessage({ longest })`,
    0,
  )
  await until(() => zone.get('queueWaiting') === 20)
  zone.grow(8)
  assert.equal(zone.get('queueWaiting'), 20)
  worker.postMessage('let go')
  await once(worker, 'message')
  await finished(worker)
  assert.deepEqual([zone.get('queueWaiting'), zone.peers.conns[0], zone.peers.selected[0]], [0, 0, 21])
})
