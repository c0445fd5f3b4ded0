import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { endWait, holdConn, holdGroup, holdWait, recall } from '../../feedback/held.ts'
import { Zone } from '../../feedback/zone.ts'
import { finished, thread } from '../support/thread.ts'

/** A zone of two peers as three threads see it; the first is the one that made it and holds nothing. */
function shared(): [Zone, Zone, Zone] {
  const zone = new Zone('z', 2, 2)
  zone.allocate()
  zone.allocate()
  return [zone, Zone.attach(zone.share(), 0), Zone.attach(zone.share(), 1)]
}

test('what a thread held is taken back when it is no more, and the rest stays', () => {
  const [main, a, b] = shared()
  holdConn(a, 0, 1)
  holdConn(a, 1, 1)
  holdConn(b, 1, 1)
  holdWait(a, 1, 100)
  holdWait(b, 1, 130)
  holdGroup(a, 'keepalive', 1)
  holdGroup(b, 'keepalive', 1)
  holdGroup(a, 'retriesWaiting', 1)
  recall(main, 0)
  const { conns, waiting, startSum } = main.peers
  assert.deepEqual([...conns], [0, 1])
  assert.deepEqual([...waiting], [0, 1])
  assert.deepEqual([...startSum], [0, 130])
  assert.deepEqual([main.get('keepalive'), main.get('retriesWaiting')], [1, 0])
  endWait(b, 1, 130)
  holdConn(b, 1, -1)
  assert.deepEqual(
    [[...conns], [...waiting], [...startSum]],
    [
      [0, 0],
      [0, 0],
      [0, 0],
    ],
  )
})

test('a change that a thread left half done is made good', () => {
  const [main, a, b] = shared()
  holdConn(b, 0, 1)
  // As if the thread had ended between its two writes.
  a.peers.conns[0]! += 1
  recall(main, 0)
  assert.equal(main.peers.conns[0], 1)
})

test('a row that a thread has left is its successor’s, empty', () => {
  const [main, a] = shared()
  holdConn(a, 0, 1)
  recall(main, 0)
  const next = Zone.attach(main.share(), 0)
  holdConn(next, 0, 1)
  holdConn(next, 0, -1)
  assert.equal(main.peers.conns[0], 0)
})

test('threads that write while the zone grows lose no change', async () => {
  const zone = new Zone('z', 2, 2)
  zone.allocate()
  const workers = [0, 1].map((row) => {
    const { port1, port2 } = new MessageChannel()
    const worker = thread(
      `
      const { Zone } = await load('feedback/zone.ts')
      const { holdConn } = await load('feedback/held.ts')
      const zone = Zone.attach(data.shared, data.row)
      zone.follow = () => {
        for (let m = receiveMessageOnPort(data.port); m; m = receiveMessageOnPort(data.port)) zone.move(m.message)
      }
      parentPort.postMessage('ready')
      for (let i = 0; i < 50_000; i++) {
        zone.enter()
        holdConn(zone, 0, 1)
        zone.peers.selected[0] += 1
        zone.leave()
      }
      data.port.close()
      `,
      { shared: zone.share(), row, port: port2 },
    )
    return Object.assign(worker, { moves: port1 })
  })
  zone.onMove = (where) => {
    for (const { moves } of workers) moves.postMessage(where)
  }
  const done = finished(...workers)
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  for (let capacity = 4; capacity <= 64; capacity *= 2) {
    zone.grow(capacity)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await done
  for (const { moves } of workers) moves.close()
  assert.equal(zone.peers.selected[0], 100_000)
  assert.equal(zone.peers.conns[0], 100_000)
  recall(zone, 0)
  assert.equal(zone.peers.conns[0], 50_000)
})
