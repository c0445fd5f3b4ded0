import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noOrders, obey } from '../../feedback/agent.ts'
import { exclusion, peerState, throttle } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import {
  type Checkup,
  dismiss,
  enrol,
  hearProbe,
  judgeProbe,
  type ProbeRule,
} from '../../feedback/probe-health.ts'
import { peers } from '../support/peers.ts'

const now = 1_000_000

function rule(name: string, more: Partial<ProbeRule> = {}): ProbeRule {
  return { name, fails: 1, passes: 1, essential: false, persistent: false, ...more }
}

/** Feeds results of one probe, `P` and `F`, and says the state after each: its first letter. */
function feed(checkup: Checkup, results: string, probe = 0, at = now): string {
  let said = ''
  for (const result of results) {
    judgeProbe(checkup, checkup.standings[probe]!, result === 'P', at)
    said += stateOf(checkup.peer)[0]
  }
  return said
}

const stateOf = (peer: Peer) =>
  ['healthy', 'checking', 'unhealthy'][peer.zone.peers.probeHealth[peer.index]!]!

test('the third failure in a row takes a peer out, and the second pass in a row brings it back', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('health', { fails: 3, passes: 2 })], false, now)
  assert.equal(feed(checkup, 'FFP'), 'hhh')
  assert.equal(feed(checkup, 'FFF'), 'hhu')
  assert.equal(feed(checkup, 'PFP'), 'uuu')
  assert.equal(feed(checkup, 'P'), 'h')
  const numbers = peer!.zone.peers
  assert.deepEqual(
    [numbers.probes[0], numbers.probeFails[0], numbers.unhealthy[0], numbers.probeDownAt[0]],
    [10, 6, 1, 0],
  )
})

test('a change is told once, with how many results in a row led to it and how long the peer was out', () => {
  const [peer] = peers([1, 1])
  const { checkup, change } = enrol(peer!, [rule('health', { fails: 2 })], false, now)
  assert.equal(change, undefined)
  const told = [false, false, false, true, true].map((passed, i) =>
    judgeProbe(checkup, checkup.standings[0]!, passed, now + 100 * i),
  )
  assert.deepEqual(told, [
    undefined,
    { state: 'unhealthy', streak: 2, outMs: 0 },
    undefined,
    { state: 'healthy', streak: 1, outMs: 200 },
    undefined,
  ])
})

test('any probe takes a peer out, and only all of them together bring it back', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a', { passes: 2 }), rule('b', { fails: 2 })], false, now)
  assert.equal(feed(checkup, 'FF', 1), 'hu')
  assert.equal(feed(checkup, 'P', 1), 'u')
  assert.equal(feed(checkup, 'P', 0), 'u')
  // Below its limit of failures, yet not at its passes.
  assert.equal(feed(checkup, 'F', 1), 'u')
  assert.equal(feed(checkup, 'P', 0), 'u')
  assert.equal(feed(checkup, 'P', 1), 'h')
})

test('a peer is checked until every essential probe has found it healthy once', () => {
  const [peer] = peers([1, 1])
  const rules = [
    rule('a', { essential: true, passes: 2 }),
    rule('b', { essential: true, fails: 2 }),
    rule('c'),
  ]
  const { checkup } = enrol(peer!, rules, false, now)
  assert.equal(exclusion(peer!, false, now), 'checking')
  assert.equal(peerState(peer!, now), 'checking')
  assert.equal(feed(checkup, 'PP', 0), 'cc')
  // Once is enough, even if the next one does not pass; and nobody waits for a probe that is not essential.
  assert.equal(feed(checkup, 'F', 1), 'c')
  assert.equal(feed(checkup, 'P', 1), 'h')
  assert.equal(exclusion(peer!, false, now), undefined)
})

test('a peer that fails while it is checked is unhealthy', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a', { essential: true, fails: 2, passes: 2 })], false, now)
  assert.equal(feed(checkup, 'PFF'), 'ccu')
  assert.equal(feed(checkup, 'PP'), 'uh')
})

test('a peer that is alone in its group is taken out as well', () => {
  const [peer] = peers([1])
  const { checkup } = enrol(peer!, [rule('a')], false, now)
  feed(checkup, 'F')
  assert.equal(exclusion(peer!, true, now), 'unhealthy')
})

test('a peer comes back by its slow start, and one that was never out does not', () => {
  const [peer] = peers([{ slow_start: 10_000 }, 1])
  const { checkup } = enrol(peer!, [rule('a', { essential: true })], false, now)
  feed(checkup, 'P')
  assert.equal(throttle(peer!, now + 1000), 1)
  feed(checkup, 'FP', 0, now + 20_000)
  assert.equal(throttle(peer!, now + 25_000), 0.5)
  assert.equal(peerState(peer!, now + 25_000), 'recovering')
})

test('passive failures count on as usual when probes bring a peer back', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a')], false, now)
  const numbers = peer!.zone.peers
  numbers.fails[0] = 1
  numbers.checkedAt[0] = now
  feed(checkup, 'FP')
  assert.equal(exclusion(peer!, false, now), 'unavailable')
  assert.equal(exclusion(peer!, false, now + 10_000), undefined)
})

/** A peer with one probe that is in such a state, after a reload with the probe as given. */
function reloaded(results: string, first: Partial<ProbeRule>, second = first): string {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a', first)], false, now)
  feed(checkup, results)
  const before = stateOf(peer!)
  const { change } = enrol(peer!, [rule('a', second)], true, now)
  assert.equal(change?.state, before === stateOf(peer!) ? undefined : stateOf(peer!))
  return `${before} ${stateOf(peer!)}`
}

test('after a reload a peer goes on as it was, unless an essential probe has to find it healthy first', () => {
  assert.equal(reloaded('P', {}), 'healthy healthy')
  assert.equal(reloaded('F', {}), 'unhealthy unhealthy')
  assert.equal(reloaded('P', { essential: true }), 'healthy checking')
  assert.equal(reloaded('F', { essential: true }), 'unhealthy checking')
  assert.equal(reloaded('', { essential: true }), 'checking checking')
})

test('a persistent probe trusts a peer that was healthy before the reload, and no other', () => {
  const persistent = { essential: true, persistent: true }
  assert.equal(reloaded('P', persistent), 'healthy healthy')
  assert.equal(reloaded('F', persistent), 'unhealthy checking')
  assert.equal(reloaded('', persistent), 'checking checking')
  assert.equal(reloaded('P', {}, persistent), 'healthy healthy')
  assert.equal(reloaded('', persistent, {}), 'checking healthy')
  const [peer] = peers([1, 1])
  enrol(peer!, [rule('a', persistent)], false, now)
  assert.equal(stateOf(peer!), 'checking', 'a new peer is not known')
})

test('streaks begin anew with a reload', () => {
  const [peer] = peers([1, 1])
  const rules = [rule('a', { fails: 3, passes: 2 })]
  const first = enrol(peer!, rules, false, now).checkup
  assert.equal(feed(first, 'FF'), 'hh')
  const second = enrol(peer!, rules, true, now).checkup
  assert.equal(feed(second, 'FF'), 'hh')
  assert.equal(feed(second, 'FP'), 'uu')
  const third = enrol(peer!, rules, true, now).checkup
  assert.equal(feed(third, 'PP'), 'uh')
})

test('a peer that was out before a reload has its slow start when it has been checked', () => {
  const [peer] = peers([{ slow_start: 10_000 }, 1])
  const rules = [rule('a', { essential: true })]
  feed(enrol(peer!, rules, false, now).checkup, 'PF')
  feed(enrol(peer!, rules, true, now).checkup, 'P', 0, now + 1000)
  assert.equal(throttle(peer!, now + 6000), 0.5)
})

test('a peer that nobody probes any more is as if nobody ever had', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a')], false, now)
  feed(checkup, 'F')
  obey(peer!, { administrative: 'maint', weightFactor: 0.5, maxConns: 3 })
  assert.equal(dismiss(checkup, now + 5)?.state, 'healthy')
  const { barred, probeHealth, agentState, weightFactor, connsLimit, probeDownAt } = peer!.zone.peers
  assert.deepEqual(
    [barred, probeHealth, agentState, weightFactor, connsLimit, probeDownAt].map((column) => column[0]),
    [0, 0, 0, 1, 0, 0],
  )
  assert.equal(peer!.zone.get('mostFactor'), 0)
})

test("only an agent's `up` undoes its `down`, and only `ready` its `drain` and `maint`", () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a')], false, now)
  const after = (orders: Parameters<typeof obey>[1]) => {
    const change = obey(peer!, orders)
    return `${change?.state ?? '-'} ${exclusion(peer!, false, now) ?? 'in'}`
  }
  assert.equal(after({ operational: 'down' }), 'down down')
  feed(checkup, 'FP')
  assert.equal(after({ administrative: 'ready' }), '- down')
  assert.equal(after({ operational: 'up' }), 'ready in')
  assert.equal(after({ administrative: 'drain' }), 'draining draining')
  assert.equal(after({ operational: 'up' }), '- draining')
  assert.equal(after({ operational: 'down' }), 'down down')
  assert.equal(after({ operational: 'up' }), 'draining draining')
  assert.equal(after({ administrative: 'maint' }), 'down down')
  assert.equal(after({ operational: 'up', administrative: 'ready' }), 'ready in')
  assert.equal(after({}), '- in')
})

test('a streak that was heard decides as if it had been seen, and what is counted comes with it', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('health', { fails: 3, passes: 2 })], false, now)
  const [standing] = checkup.standings
  const hear = (streaks: number[], results = 1, failures = 0) =>
    hearProbe(checkup, standing!, streaks, results, failures, now)
  assert.equal(hear([-2], 2, 2), undefined)
  assert.equal(hear([-7], 5, 5)?.state, 'unhealthy')
  assert.equal(hear([1]), undefined)
  assert.deepEqual([standing!.fails, standing!.passes], [0, 1])
  assert.equal(hear([2])?.state, 'healthy')
  assert.equal(hear([-3, 1], 4, 3)?.state, 'unhealthy', 'what ended unheard has had its effect')
  assert.equal(hear([-3, 2], 5, 3)?.state, 'healthy')
  assert.equal(hear([-3, 2], 5, 3), undefined, 'what came and went unheard is no change')
  const { probes, probeFails } = peer!.zone.peers
  assert.deepEqual([probes[0], probeFails[0]], [23, 16])
  assert.equal(feed(checkup, 'FF'), 'hh', 'this instance alone goes on from there')
  assert.equal(feed(checkup, 'F'), 'u')
})

test('an essential probe is satisfied by what others have seen', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('health', { essential: true, passes: 2 })], false, now)
  assert.equal(hearProbe(checkup, checkup.standings[0]!, [1], 1, 0, now), undefined)
  assert.equal(hearProbe(checkup, checkup.standings[0]!, [9], 8, 0, now)?.state, 'healthy')
})

test('what an agent asks for goes before what probes found, which shows again when it is taken back', () => {
  const [peer] = peers([1, 1])
  const { checkup } = enrol(peer!, [rule('a')], false, now)
  feed(checkup, 'F')
  obey(peer!, { administrative: 'drain' })
  assert.equal(peerState(peer!, now), 'draining')
  obey(peer!, { administrative: 'ready' })
  assert.equal(peerState(peer!, now), 'unhealthy')
  obey(peer!, { operational: 'down' })
  feed(checkup, 'P')
  assert.equal(peerState(peer!, now), 'down')
})

test('an agent sets weight and limit, and a weight of nothing drains', () => {
  const [peer, other] = peers([{ weight: 4, max_conns: 2 }, 1])
  const { weightFactor, connsLimit, conns } = peer!.zone.peers
  assert.equal(obey(peer!, { weight: 1, maxConns: 8 }), undefined)
  assert.deepEqual([weightFactor[0], connsLimit[0], peer!.zone.get('mostFactor')], [0.25, 8, 1])
  conns[0] = 7
  assert.equal(exclusion(peer!, false, now), undefined)
  obey(peer!, { maxConns: 0 })
  assert.deepEqual([weightFactor[0], exclusion(peer!, false, now)], [0.25, 'busy'])
  conns[0] = 0
  obey(other!, { weightFactor: 2 })
  assert.equal(peer!.zone.get('mostFactor'), 2)
  assert.equal(obey(peer!, { weightFactor: 0 })?.state, 'draining')
  assert.equal(exclusion(peer!, false, now), 'draining')
  assert.equal(obey(peer!, noOrders)?.state, 'ready')
})
