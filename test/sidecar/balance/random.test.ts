import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, RandomTwo } from '../../../sidecar/balance/random.ts'
import { loaded, seeded } from '../../support/dice.ts'
import { ask, counts, peers, turns } from '../../support/peers.ts'

const on = (random: () => number) => ({ now: () => 1_000_000, random })

test('draws by weight', () => {
  const balancer = new Random(peers([5, 1, 2]), on(loaded(0, 4.9 / 8, 5 / 8, 5.9 / 8, 6 / 8, 7.9 / 8)))
  assert.equal(
    turns(6, () => balancer.pick(ask())),
    'a a b b c c',
  )
})

test('draws again where the drawn one is not ready', () => {
  const balancer = new Random(peers([1, 1, 1]), on(loaded(0.1, 0.1, 0.5)))
  const asked = ask(({ name }) => name !== 'a')
  assert.equal(balancer.pick(asked)!.name, 'b')
  assert.equal(asked.draws, 2)
})

test('leaves it to round robin once twenty draws of a request were not enough', () => {
  // Twenty-one draws of the one that is not ready, over two attempts of a request.
  const balancer = new Random(peers([1, 1, 1]), on(loaded(...Array(10).fill(0), 0.5, ...Array(11).fill(0))))
  const asked = ask(({ name }) => name !== 'a')
  assert.equal(balancer.pick(asked)!.name, 'b')
  assert.equal(balancer.pick(asked)!.name, 'b')
  assert.equal(asked.draws, 21)
  assert.equal(balancer.pick(asked)!.name, 'c')
})

test('of two drawn takes the one with fewer requests for its weight', () => {
  const list = peers([1, 4])
  const balancer = new RandomTwo(list, on(loaded(0, 0.5, 0, 0.5, 0.5, 0)))
  list[0]!.zone.peers.conns.set([2, 7])
  assert.equal(balancer.pick(ask())!.name, 'b')
  list[0]!.zone.peers.conns.set([2, 9])
  assert.equal(balancer.pick(ask())!.name, 'a')
  assert.equal(balancer.pick(ask())!.name, 'a')
})

test('of two that are equally loaded takes the second', () => {
  const balancer = new RandomTwo(peers([1, 1]), on(loaded(0, 0.5, 0.5, 0)))
  assert.equal(
    turns(2, () => balancer.pick(ask())),
    'b a',
  )
})

test('sends next to nothing to a peer with fifty requests beside an idle one', () => {
  const list = peers([1, 1])
  list[0]!.zone.peers.conns.set([50, 0])
  const balancer = new RandomTwo(list, on(seeded(1)))
  const found = counts(10_000, () => balancer.pick(ask()))
  assert.ok(found.get('b')! >= 9900, `b got ${found.get('b')}`)
})

test('asks the only ready one of two without a second to compare', () => {
  const balancer = new RandomTwo(peers([1, 1]), on(seeded(2)))
  const asked = ask(({ name }) => name === 'b')
  assert.equal(balancer.pick(asked)!.name, 'b')
  assert.equal(asked.draws, 21)
})

test('tells the chances of two draws', () => {
  const list = peers([3, 1, 2, 2])
  list[0]!.zone.peers.conns.set([3, 0, 2, 5])
  const balancer = new RandomTwo(list, on(seeded(3)))
  const shares = balancer.shares(() => true, 0)
  const picks = 100_000
  const found = counts(picks, () => balancer.pick(ask()))
  for (const [i, { name }] of list.entries()) {
    assert.ok(Math.abs((found.get(name) ?? 0) / picks - shares[i]!) < 0.006, `${name}: ${shares[i]}`)
  }
})
