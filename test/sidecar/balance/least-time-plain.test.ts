import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setShare, sumShares, totalShare } from '../../../feedback/share-tree.ts'
import { leastTime } from '../../../sidecar/balance/least-time.ts'
import { LeastTimePlain } from '../../../sidecar/balance/least-time-plain.ts'
import { Flow } from '../../support/flow.ts'
import { ask, counts, env, group } from '../../support/peers.ts'

const plain = { mode: 'last_byte', plain: true } as const
const large = Array.from({ length: 200 }, () => 1)

/** A large group of which every peer has answered once, the first after another time. */
function measured(first: number): Flow {
  const flow = new Flow(large, 'least_time', plain)
  const unasked = new Set(flow.upstream.peers)
  while (unasked.size > 0) {
    const attempt = flow.begin()!
    flow.clock.move(attempt.peer!.index === 0 ? first : 10)
    flow.end(attempt)
    unasked.delete(attempt.peer!)
  }
  return flow
}

test('draws from the tree as its peers are learnt of', () => {
  const flow = measured(10)
  const { peers, zone } = flow.upstream
  const share = () => {
    const picks = 40_000
    const found = counts(picks, () => flow.group.primary.pick(ask(undefined, flow.clock.now())))
    return (found.get(peers[0]!.name) ?? 0) / picks
  }
  assert.ok(Math.abs(share() - 1 / 200) < 0.002, `${share()}`)
  zone.peers.avg[0] = 0.1
  zone.set('medianAt', 0)
  // A hundred times as fast: 100 of 299 shares.
  assert.ok(Math.abs(share() - 100 / 299) < 0.01, `${share()}`)
})

test('counts peers without an average as average ones, in the tree as in a walk', () => {
  const flow = measured(10)
  const { peers, zone } = flow.upstream
  for (const { index } of peers.slice(100)) zone.peers.avg[index] = 0
  zone.set('medianAt', 0)
  const words = new Map<string, number>()
  for (let i = 0; i < 20_000; i++) {
    const asked = ask(undefined, flow.clock.now())
    flow.group.primary.pick(asked)
    words.set(asked.pick, (words.get(asked.pick) ?? 0) + 1)
  }
  assert.ok(Math.abs(words.get('unmeasured')! - 10_000) < 500)
})

test('does not let the first answer of a group tip the scale for those that wait for theirs', () => {
  const flow = new Flow(large, 'least_time', plain)
  const first = flow.begin()!
  flow.clock.move(50)
  flow.end(first)
  flow.group.primary.pick(ask(undefined, flow.clock.now()))
  const { share } = flow.upstream.zone.peers
  assert.ok(share.every((one) => Math.abs(one - share[0]!) < 1e-12))
})

test('brings the sums up to date with floor and mean', () => {
  const flow = measured(10)
  const { zone } = flow.upstream
  flow.group.primary.pick(ask(undefined, flow.clock.now()))
  zone.peers.avg[0] = 1e9
  flow.clock.move(101)
  flow.group.primary.pick(ask(undefined, flow.clock.now()))
  assert.ok(Math.abs(zone.peers.share[0]! / ((199 * 0.1) / 200) - 0.01) < 1e-3)
  assert.ok(Math.abs(totalShare(zone) - (199 * 0.1 + zone.peers.share[0]!)) < 1e-9)
})

test('passes over peers of a later configuration that lie beyond the zone it has known', () => {
  const flow = measured(10)
  const { peers, zone } = flow.upstream
  const known = new Set(peers)
  flow.group.primary.pick(ask(undefined, flow.clock.now()))
  zone.grow(2 * zone.capacity)
  const later = zone.allocate()!
  assert.ok(later >= peers.length)
  sumShares(zone)
  for (const part of [0.5, 1e9]) {
    setShare(zone, later, part * totalShare(zone))
    for (let i = 0; i < 200; i++) {
      const attempt = flow.begin()!
      assert.ok(known.has(attempt.peer!))
      flow.end(attempt, { ending: 'aborted' })
    }
  }
})

test('walks its backups, which are not in the tree', () => {
  const upstream = group(large, { backups: large, learning: leastTime.learning(plain, () => () => '') })
  const dice = env()
  const backups = new LeastTimePlain(upstream, upstream.backups, upstream.learning!, dice)
  const { avg, share } = upstream.zone.peers
  for (const { index } of upstream.backups) avg[index] = index === 200 ? 1 : 10
  const picks = 20_000
  const found = counts(picks, () => backups.pick(ask(undefined, dice.now())))
  assert.ok(Math.abs(found.get('p200')! / picks - 10 / 209) < 0.01)
  assert.equal(
    share.every((one) => one === 0),
    true,
  )
})
