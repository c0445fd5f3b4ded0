import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Peer } from '../../../feedback/peer.ts'
import { type Droppable, Drops } from '../../../sidecar/balance/drops.ts'
import { group } from '../../support/peers.ts'

const [a, b] = group([1, 1]).peers as [Peer, Peer]

/** Something under way that says when it is ended. */
function work(peer = a): Droppable & { peer: Peer | undefined; dropped: number } {
  return {
    peer,
    dropped: 0,
    drop() {
      this.dropped += 1
    },
  }
}

const left =
  (...gone: readonly Peer[]) =>
  (peer: Peer) =>
    gone.includes(peer)

test('what is under way with a peer that leaves is ended once, after its time, and no other', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const [one, slow, other, none] = [work(), work(), work(b), work()]
  none.peer = undefined
  drops.add(one, 0)
  drops.add(slow, 500)
  drops.add(other, 0)
  drops.add(none, 0)
  drops.use(left(a), false)
  assert.equal(one.dropped, 0, 'not while others are looked at')
  t.mock.timers.tick(1)
  assert.deepEqual([one.dropped, slow.dropped], [1, 0])
  drops.use(left(a), false)
  t.mock.timers.tick(499)
  assert.deepEqual([one.dropped, slow.dropped, other.dropped, none.dropped], [1, 1, 0, 0])
})

test('what goes on with another peer is ended when that one leaves', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const one = work()
  drops.add(one, 0)
  drops.use(left(a), false)
  t.mock.timers.tick(1)
  assert.equal(one.dropped, 1)
  one.peer = b
  drops.use(left(a, b), false)
  t.mock.timers.tick(1)
  assert.equal(one.dropped, 2)
})

test('one that has ended is left alone, and so is one whose peer is back or that has another', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const [over, back, moved] = [work(), work(b), work()]
  for (const one of [over, back, moved]) drops.add(one, 100)
  drops.use(left(a, b), false)
  drops.delete(over)
  moved.peer = b
  t.mock.timers.tick(50)
  drops.use(left(a), false)
  t.mock.timers.tick(1000)
  assert.deepEqual([over.dropped, back.dropped, moved.dropped], [0, 0, 0])
})

test('what begins after its peer has left is ended as well, where that may be', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  drops.use(left(a), false)
  const late = work()
  drops.add(late, 100, true)
  t.mock.timers.tick(100)
  assert.equal(late.dropped, 1)
})

test('what a reload takes away is spared for good, and what had left before it is not', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const [before, spared] = [work(b), work(a)]
  drops.add(before, 100)
  drops.use(left(b), false)
  drops.add(spared, 100)
  drops.use(left(a, b), true)
  drops.use(left(a, b), false)
  t.mock.timers.tick(1000)
  assert.deepEqual([before.dropped, spared.dropped], [1, 0])
  // With another peer that leaves it is as everybody.
  spared.peer = b
  drops.use(left(a, b), false)
  t.mock.timers.tick(100)
  assert.equal(spared.dropped, 1)
})

test('what goes on with another peer has its whole time once that one leaves', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const one = work()
  drops.add(one, 100)
  drops.use(left(a), false)
  t.mock.timers.tick(80)
  one.peer = b
  drops.use(left(a, b), false)
  t.mock.timers.tick(99)
  assert.equal(one.dropped, 0)
  t.mock.timers.tick(1)
  assert.equal(one.dropped, 1)
  // Also where nobody has been told of the other one until the time of the first is over.
  const [first, gone] = [work(), work()]
  gone.peer = undefined
  for (const each of [first, gone]) drops.add(each, 100)
  drops.use(left(a), false)
  first.peer = b
  t.mock.timers.tick(100)
  assert.deepEqual([first.dropped, gone.dropped], [0, 0])
  drops.use(left(a, b), false)
  t.mock.timers.tick(100)
  assert.equal(first.dropped, 1)
})

test('a peer that a reload has taken away and another one has brought back may leave as everybody', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const one = work()
  drops.add(one, 100)
  drops.use(left(a), true)
  t.mock.timers.tick(1000)
  drops.use(left(), true)
  assert.equal(one.dropped, 0)
  drops.use(left(a), false)
  t.mock.timers.tick(100)
  assert.equal(one.dropped, 1)
})

test('what begins with a peer that a reload has taken away is spared, too', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const drops = new Drops()
  const [peer] = group([1]).peers as [Peer]
  drops.use(left(peer), true)
  peer.zone.free(peer.index)
  const one = work(peer)
  drops.add(one, 100, true)
  drops.use(left(peer), false)
  t.mock.timers.tick(1000)
  assert.equal(one.dropped, 0)
})
