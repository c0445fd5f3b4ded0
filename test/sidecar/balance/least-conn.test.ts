import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Peer } from '../../../feedback/peer.ts'
import { LeastConn } from '../../../sidecar/balance/least-conn.ts'
import { ask, peers, spread, turns } from '../../support/peers.ts'

const now = 1_000_000

/** Picks and keeps the request in progress. */
function hold(balancer: LeastConn): Peer | undefined {
  const peer = balancer.pick(ask())
  if (peer) peer.zone.peers.conns[peer.index]! += 1
  return peer
}

test('gives three long requests to weights 2 and 1 as two and one', () => {
  const balancer = new LeastConn(peers([2, 1]))
  assert.equal(
    spread(3, () => hold(balancer)),
    'a: 2, b: 1',
  )
})

test('takes turns by weight while nobody has a request', () => {
  const balancer = new LeastConn(peers([5, 1, 1]))
  assert.equal(
    turns(7, () => balancer.pick(ask())),
    'a a b a c a a',
  )
})

test('takes the peer with the fewest requests for its weight', () => {
  const list = peers([1, 3, 1])
  list[0]!.zone.peers.conns.set([2, 5, 3])
  const balancer = new LeastConn(list)
  assert.equal(balancer.pick(ask())!.name, 'b')
  assert.deepEqual(
    balancer.shares(() => true, now),
    [0, 1, 0],
  )
})

test('takes turns only among those that are equally loaded', () => {
  const list = peers([1, 1, 1, 1])
  list[0]!.zone.peers.conns.set([4, 1, 2, 1])
  const balancer = new LeastConn(list)
  assert.equal(
    turns(4, () => balancer.pick(ask())),
    'b d b d',
  )
  const { currentWeight } = list[0]!.zone.peers
  assert.deepEqual([currentWeight[0], currentWeight[2]], [0, 0])
  assert.deepEqual(
    balancer.shares(() => true, now),
    [0, 0.5, 0, 0.5],
  )
})

test('leaves the turns alone where one peer is the least loaded', () => {
  const list = peers([1, 1])
  list[0]!.zone.peers.conns.set([1, 0])
  const balancer = new LeastConn(list)
  balancer.pick(ask())
  assert.deepEqual([...list[0]!.zone.peers.currentWeight.slice(0, 2)], [0, 0])
})

test('keeps even numbers in progress among equals', () => {
  const balancer = new LeastConn(peers([1, 1, 1]))
  assert.equal(
    spread(30, () => hold(balancer)),
    'a: 10, b: 10, c: 10',
  )
})

test('counts a peer in its slow start as lighter', () => {
  const list = peers([{ weight: 4, slow_start: 10_000 }, 4])
  list[0]!.zone.peers.slowAt[0] = now
  list[0]!.zone.peers.conns.set([1, 2])
  const balancer = new LeastConn(list)
  const at = (ms: number) => balancer.pick(ask(undefined, now + ms))!.name
  assert.equal(at(2500), 'b')
  assert.equal(at(7500), 'a')
})
