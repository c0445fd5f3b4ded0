import assert from 'node:assert/strict'
import { test } from 'node:test'
import { obey } from '../../../feedback/agent.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { ConsistentHash } from '../../../sidecar/balance/consistent-hash.ts'
import { LeastConn } from '../../../sidecar/balance/least-conn.ts'
import { Random, RandomTwo } from '../../../sidecar/balance/random.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { ask, counts, env, peers, turns } from '../../support/peers.ts'

const ready = () => true

/** Shares of so many picks, a decimal each. */
function shares(list: readonly Peer[], pick: () => Peer | undefined, picks = 20_000): string {
  const found = counts(picks, pick)
  return list.map((peer) => ((found.get(peer.name) ?? 0) / picks).toFixed(1)).join(' ')
}

test('round robin gives a peer the part of its turns that its agent leaves it', () => {
  const [a, b] = peers([2, 2])
  const balancer = new RoundRobin([a!, b!])
  obey(a!, { weightFactor: 0.5 })
  assert.deepEqual(balancer.shares(ready, 0), [1 / 3, 2 / 3])
  assert.equal(
    turns(6, () => balancer.pick(ask())),
    'b a b b a b',
  )
  obey(a!, { weightFactor: 1 })
  assert.equal(
    turns(4, () => balancer.pick(ask())),
    'a b a b',
  )
})

test('an absolute weight stands in the place of the configured one', () => {
  const [a, b] = peers([4, 1])
  const balancer = new RoundRobin([a!, b!])
  obey(a!, { weight: 1 })
  assert.deepEqual(balancer.shares(ready, 0), [0.5, 0.5])
  obey(b!, { weight: 3 })
  assert.deepEqual(balancer.shares(ready, 0), [0.25, 0.75])
})

test('a slow start and an agent both have their part in a weight', () => {
  const [a, b] = peers([{ weight: 4, slow_start: 10_000 }, 4])
  const balancer = new RoundRobin([a!, b!])
  a!.zone.peers.slowAt[a!.index] = 1_000_000
  obey(a!, { weightFactor: 0.5 })
  assert.deepEqual(balancer.shares(ready, 1_005_000), [0.2, 0.8])
})

test('least_conn holds a peer to fewer requests in progress', () => {
  const [a, b] = peers([1, 1])
  const balancer = new LeastConn([a!, b!])
  obey(a!, { weightFactor: 0.25 })
  const conns = a!.zone.peers.conns
  for (let i = 0; i < 20; i++) conns[balancer.pick(ask())!.index]! += 1
  assert.deepEqual([conns[a!.index], conns[b!.index]], [4, 16])
  // Equals in what they can take share by what they can take.
  conns.fill(0)
  assert.deepEqual(balancer.shares(ready, 0), [0.2, 0.8])
})

test('random draws a peer the less often, and another the more often', () => {
  const list = peers([1, 1, 2])
  const balancer = new Random(list, env())
  obey(list[0]!, { weightFactor: 0.5 })
  obey(list[1]!, { weightFactor: 1.5 })
  assert.deepEqual(balancer.shares(ready), [0.125, 0.375, 0.5])
  assert.equal(
    shares(list, () => balancer.pick(ask())),
    '0.1 0.4 0.5',
  )
  for (const peer of list) obey(peer, { weightFactor: 1 })
  assert.deepEqual(balancer.shares(ready), [0.25, 0.25, 0.5])
})

test('the better of two is drawn by, and compared by, what agents leave of the weights', () => {
  const list = peers([1, 1, 1])
  const balancer = new RandomTwo(list, env())
  obey(list[0]!, { weightFactor: 0.5 })
  const { conns } = list[0]!.zone.peers
  conns[0] = 2
  conns[1] = 3
  conns[2] = 3
  // Twice a half is more than three: the first one is never the better of two.
  assert.equal(
    shares(list, () => balancer.pick(ask())),
    '0.0 0.5 0.5',
  )
  const expected = balancer.shares(ready, 0)
  assert.equal(expected[0], 0)
  assert.ok(Math.abs(expected[1]! - 0.5) < 1e-9)
})

test('where no agent has changed a weight, random throws no more dice than before', () => {
  const list = peers([1, 1])
  let throws = 0
  const balancer = new Random(list, {
    now: () => 0,
    random: () => {
      throws += 1
      return 0.5
    },
  })
  balancer.pick(ask())
  assert.equal(throws, 1)
})

test('a weight that was raised high and taken back leaves nobody waiting for its turn', () => {
  const [a, b] = peers([1, 1])
  const balancer = new RoundRobin([a!, b!])
  obey(a!, { weightFactor: 200 })
  turns(100, () => balancer.pick(ask()))
  obey(a!, { weightFactor: 1 })
  const after = turns(12, () => balancer.pick(ask())).split(' ')
  const most = Math.max(...['a', 'b'].map((name) => after.filter((each) => each === name).length))
  assert.ok(most <= 8, after.join(' '))
})

test('a server of several addresses shares a key out by what their agents leave them', () => {
  const list = peers([
    { weight: 2, server: 'many' },
    { weight: 2, server: 'many' },
    { weight: 2, server: 'one' },
  ])
  const balancer = new ConsistentHash(list, () => 'key')
  obey(list[0]!, { weightFactor: 0.5 })
  const [first, second] = balancer.shares(ready, 0)
  assert.ok(Math.abs(second! / first! - 2) < 1e-9)
  const found = counts(300, () => balancer.pick(ask()))
  const of = (name: string) => found.get(name) ?? 0
  assert.ok(of('c') === 300 || (of('a') === 100 && of('b') === 200), JSON.stringify([...found]))
})

test('a weight that a thread of the configuration before raises does not outlast it', () => {
  const [a, b] = peers([1, 1])
  const balancer = new RoundRobin([a!, b!])
  a!.zone.peers.effectiveWeight[a!.index] = 10
  a!.zone.peers.selected[a!.index] = 1
  assert.deepEqual(balancer.shares(ready, 0), [0.5, 0.5])
  assert.equal(
    turns(4, () => balancer.pick(ask())),
    'a b a b',
  )
  assert.equal(a!.zone.peers.effectiveWeight[a!.index], 1)
})
