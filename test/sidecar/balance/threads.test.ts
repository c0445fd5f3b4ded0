import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { recall } from '../../../feedback/held.ts'
import { Zone } from '../../../feedback/zone.ts'
import { finished, thread } from '../../support/thread.ts'

const threads = 4

/** What every thread does first: the zone's peers, and a group that picks among them by `method`. */
const prelude = `
  const { Zone } = await load('feedback/zone.ts')
  const { Peer } = await load('feedback/peer.ts')
  const { Upstream } = await load('feedback/upstream.ts')
  const { Call } = await load('feedback/call.ts')
  const { observe } = await load('feedback/observe.ts')
  const { Group } = await load('sidecar/balance/group.ts')
  const { Selection } = await load('sidecar/balance/pick.ts')
  const { methods } = await load('sidecar/balance/methods.ts')
  const zone = Zone.attach(data.shared, data.row)
  const peers = data.peers.map((options, index) => new Peer(zone, index, 's' + index, 's' + index,
    { kind: 'tcp', host: '127.0.0.1', port: 8001 + index },
    { weight: 1, max_conns: 0, max_conns_scope: 'instance', max_fails: 1, fail_timeout: 10_000, slow_start: 0, backup: false, down: false, drain: false,
      track: 'stable', sid: '', ...options }))
  const method = methods.find(({ name }) => name === data.method)
  const args = data.args ?? {}
  const upstream = new Upstream({ name: 'u', zone, peers, backups: [], method: method.name,
    learning: method.learning(args, () => () => ''), responseTimeFactor: 0.9 })
  const env = { now: () => performance.now(), random: Math.random }
  const group = new Group(upstream, method.create(upstream, peers, args, env, () => () => ''), undefined)
  const call = new Call()
  const next = () => new Selection(group, call, env).next()
  const end = (attempt, ending = 'ok') => {
    attempt.ending = ending
    observe(attempt, call, env.now())
  }
  parentPort.postMessage('ready')
`

/** A zone whose slots are taken, and what a thread needs to work on it. */
function shared(peers: readonly object[], more: object) {
  const zone = new Zone('u', peers.length, threads)
  for (const _ of peers) zone.allocate()
  const begin = (body: string, row: number) =>
    thread(`${prelude}\n${body}`, { shared: zone.share(), row, peers, ...more })
  return { zone, begin }
}

test('four threads and half a million picks in turn give exactly the weights', async () => {
  const weights = [5, 3, 2]
  const { zone, begin } = shared(
    weights.map((weight) => ({ weight })),
    { method: 'round_robin' },
  )
  const body = 'for (let i = 0; i < 125_000; i++) end(next())'
  await finished(...Array.from({ length: threads }, (_, row) => begin(body, row)))
  assert.deepEqual([...zone.peers.selected], [250_000, 150_000, 100_000])
  assert.deepEqual([...zone.peers.succeeded], [250_000, 150_000, 100_000])
  assert.deepEqual([...zone.peers.conns], [0, 0, 0])
  assert.deepEqual([...zone.peers.currentWeight], [0, 0, 0])
})

for (const [method, args] of [
  ['round_robin', {}],
  ['least_conn', {}],
  ['random', { mode: 'two' }],
  ['least_time', { mode: 'header', best: true }],
] as const) {
  test(`max_conns holds exactly over four threads that pick by ${method}`, async () => {
    const { zone, begin } = shared([{ max_conns: 10 }, { max_conns: 10 }], { method, args })
    // Each thread could fill both peers by itself. What it holds it gives back in another order than it took it.
    const body = `
      const held = []
      let peak = 0
      for (let i = 0; i < 12_500; i++) {
        if (held.length < 25 && Math.random() < 0.6) {
          const attempt = next()
          if (attempt) held.push(attempt)
        } else if (held.length > 0) {
          end(held.splice(Math.floor(Math.random() * held.length), 1)[0])
        }
        zone.enter()
        peak = Math.max(peak, zone.peers.conns[0], zone.peers.conns[1])
        zone.leave()
      }
      for (const attempt of held) end(attempt)
      parentPort.postMessage(peak)
    `
    const workers = Array.from({ length: threads }, (_, row) => begin(body, row))
    const peaks = await Promise.all(
      workers.map(async (worker) => {
        let last: unknown
        worker.on('message', (message) => {
          last = message
        })
        await finished(worker)
        return Number(last)
      }),
    )
    assert.equal(Math.max(...peaks), 10)
    assert.deepEqual([...zone.peers.conns], [0, 0])
  })
}

test('threads that are ended at any moment leave nothing behind and stop nobody', async () => {
  const { zone, begin } = shared([{ weight: 2 }, {}, {}], {
    method: 'least_time',
    args: { mode: 'last_byte' },
  })
  const busy = `
    const held = []
    for (;;) {
      held.push(next())
      if (held.length > 5) end(held.shift(), Math.random() < 0.1 ? 'aborted' : 'ok')
    }
  `
  for (let round = 0; round < 12; round++) {
    const row = round % threads
    const worker = begin(busy, row)
    await once(worker, 'message')
    await new Promise((resolve) => setTimeout(resolve, 5 + 3 * round))
    await worker.terminate()
    zone.enter()
    recall(zone, row)
    zone.leave()
    assert.deepEqual([...zone.peers.conns], [0, 0, 0])
    assert.deepEqual([...zone.peers.waiting], [0, 0, 0])
    assert.deepEqual([...zone.peers.startSum], [0, 0, 0])
  }
  await finished(begin('for (let i = 0; i < 1000; i++) end(next())', 0))
  assert.deepEqual([...zone.peers.conns], [0, 0, 0])
})
