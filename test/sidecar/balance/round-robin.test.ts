import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fail } from '../../../feedback/health.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { ask, peers, spread, turns } from '../../support/peers.ts'

const now = 1_000_000

test('spreads a heavy peer over the round instead of bursting', () => {
  const balancer = new RoundRobin(peers([5, 1, 1]))
  assert.equal(
    turns(14, () => balancer.pick(ask())),
    'a a b a c a a a a b a c a a',
  )
})

test('takes the first of equals', () => {
  const two = new RoundRobin(peers([2, 1]))
  assert.equal(
    turns(6, () => two.pick(ask())),
    'a b a a b a',
  )
  const three = new RoundRobin(peers([1, 1, 1]))
  assert.equal(
    turns(6, () => three.pick(ask())),
    'a b c a b c',
  )
})

test('leaves the turn of a peer that is not ready as it is', () => {
  const list = peers([1, 1, 1])
  const balancer = new RoundRobin(list)
  balancer.pick(ask())
  const before = list[1]!.zone.peers.currentWeight[1]
  balancer.pick(ask(({ name }) => name !== 'b'))
  assert.equal(list[1]!.zone.peers.currentWeight[1], before)
})

test('goes on with the rotation at each retry of a request', () => {
  const balancer = new RoundRobin(peers([1, 1, 1]))
  const tried = new Set<string>()
  const retry = ask(({ name }) => !tried.has(name))
  const found = turns(2, () => {
    const peer = balancer.pick(retry)
    tried.add(peer!.name)
    return peer
  })
  assert.equal(found, 'a b')
  assert.equal(balancer.pick(ask())!.name, 'c')
})

test('gives less to a peer that fails, and its weight back by one each round', () => {
  const list = peers([{ weight: 6, max_fails: 2 }, 6])
  const balancer = new RoundRobin(list)
  const { effectiveWeight } = list[0]!.zone.peers
  assert.equal(effectiveWeight[0], 6)
  fail(list[0]!, false, now)
  assert.equal(effectiveWeight[0], 3)
  const climb = Array.from({ length: 4 }, () => {
    balancer.pick(ask())
    return effectiveWeight[0]
  })
  assert.deepEqual(climb, [4, 5, 6, 6])
})

test('does not let the weight of a peer climb while it is not ready', () => {
  const list = peers([{ weight: 4, max_fails: 1 }, 1])
  const balancer = new RoundRobin(list)
  fail(list[0]!, false, now)
  balancer.pick(ask(({ name }) => name !== 'a'))
  assert.equal(list[0]!.zone.peers.effectiveWeight[0], 0)
})

test('takes the first where all have lost their weight', () => {
  const list = peers([1, 1])
  const balancer = new RoundRobin(list)
  for (const peer of list) peer.zone.peers.effectiveWeight[peer.index] = 0
  assert.deepEqual(
    balancer.shares(() => true, now),
    [1, 0],
  )
  assert.equal(balancer.pick(ask())!.name, 'a')
})

test('ramps a peer up in its slow start', () => {
  const list = peers([{ weight: 4, slow_start: 10_000 }, 4])
  const balancer = new RoundRobin(list)
  list[0]!.zone.peers.slowAt[0] = now
  const at = (ms: number) => spread(100, () => balancer.pick(ask(undefined, now + ms)))
  assert.equal(at(0), 'b: 100')
  assert.equal(at(2500), 'a: 20, b: 80')
  assert.deepEqual(
    balancer.shares(() => true, now + 2500),
    [0.2, 0.8],
  )
  assert.equal(at(10_000), 'a: 50, b: 50')
})

test('neither lowers nor raises the weight of a peer with a slow start', () => {
  const list = peers([{ weight: 4, slow_start: 10_000, max_fails: 4 }, 4])
  const balancer = new RoundRobin(list)
  fail(list[0]!, false, now)
  balancer.pick(ask())
  assert.equal(list[0]!.zone.peers.effectiveWeight[0], 4)
})

test('takes over the turns of peers that stay, with no more than their new weight', () => {
  const list = peers([{ weight: 2 }, 5])
  const { effectiveWeight, selected } = list[0]!.zone.peers
  effectiveWeight.set([9, 3])
  selected.set([10, 10])
  const balancer = new RoundRobin(list)
  assert.deepEqual([...effectiveWeight.slice(0, 2)], [2, 3])
  balancer.pick(ask())
  assert.deepEqual([...effectiveWeight.slice(0, 2)], [2, 4])
})
