import { bar, weigh } from './agent.ts'
import type { Peer } from './peer.ts'

/*
 * Active health: what probes have found out of a peer. Decisions over the peer's numbers in its zone, and over the
 * streaks that each probe keeps of it. One thread alone decides here; all of them obey the column `barred`.
 *
 * An unhealthy peer comes back once every one of its probes stands at its `passes` in a row. A peer with an
 * essential probe is `checking` until each of those has got there once. Where the configuration is read anew all
 * streaks begin anew, and the state goes on but where `essential` asks for proof.
 */

/** What all probes of a peer together say, as the column `probeHealth` has it. */
const probeHealths = ['healthy', 'checking', 'unhealthy'] as const
export type ProbeHealth = (typeof probeHealths)[number]

const healthy = 0
const checking = 1
const unhealthy = 2

/** What decides when one probe changes the state of a peer. */
export interface ProbeRule {
  /** Unique among the probes of a group. */
  readonly name: string
  /** Failures in a row that make a peer unhealthy, 1 or more. */
  readonly fails: number
  /** Passes in a row that it takes to come back, 1 or more. */
  readonly passes: number
  /** Whether a peer gets no request before this probe has found it healthy. */
  readonly essential: boolean
  /** Whether a peer that was healthy before a reload is excepted from that. */
  readonly persistent: boolean
}

/** How one probe stands with one peer. */
export interface Standing {
  readonly rule: ProbeRule
  /** Failures in a row up to now; 0 after a pass. */
  fails: number
  /** Passes in a row up to now. */
  passes: number
  /** Whether it has found the peer healthy since the configuration was read, or need not. */
  vouched: boolean
}

/** All that probes know of one peer. */
export interface Checkup {
  peer: Peer
  /** In the order of the rules. */
  readonly standings: readonly Standing[]
  /** Whether it was unhealthy, so that it comes back by its slow start. */
  fallen: boolean
}

/** A change of what keeps a peer from requests, or no longer does. */
export interface ProbeChange {
  /** `ready`, `draining` and `down` are an agent's words, the others those of all probes together. */
  readonly state: ProbeHealth | 'ready' | 'draining' | 'down'
  /** Results in a row that led to it; 0 where a reload or an agent did. */
  readonly streak: number
  /** How long probes had kept the peer out, where they no longer do; milliseconds. */
  readonly outMs: number
}

/**
 * Begins to probe a peer, at the start or after a reload.
 * @param known whether its probes were asking it before the reload
 * @param now monotonic milliseconds
 * @returns the change is undefined where nothing changed, and where the peer is not known: that is its beginning
 */
export function enrol(
  peer: Peer,
  rules: readonly ProbeRule[],
  known: boolean,
  now: number,
): { readonly checkup: Checkup; readonly change: ProbeChange | undefined } {
  const before = peer.zone.peers.probeHealth[peer.index]!
  const excepted = known && before === healthy
  const standings = rules.map((rule) => ({
    rule,
    fails: 0,
    passes: 0,
    vouched: !rule.essential || (rule.persistent && excepted),
  }))
  const checkup = { peer, standings, fallen: before === unhealthy }
  let after = standings.every(({ vouched }) => vouched) ? healthy : checking
  // Bad news outlives a reload: nothing speaks for the peer until its probes do.
  if (after === healthy && before === unhealthy) after = unhealthy
  const change = move(checkup, after, 0, now)
  return { checkup, change: known ? change : undefined }
}

/**
 * Takes in how a probe of a peer ended.
 * @param standing of the probe that has ended; one of the checkup's
 * @param tookMs how long the probe took
 */
export function judgeProbe(
  checkup: Checkup,
  standing: Standing,
  passed: boolean,
  now: number,
  tookMs = 0,
): ProbeChange | undefined {
  count(checkup.peer, 1, passed ? 0 : 1, tookMs)
  return judge(checkup, standing, passed ? standing.passes + 1 : -standing.fails - 1, now)
}

/**
 * Takes in what instances together have found: their streaks stand in the place of this one's own.
 * @param streaks passes in a row, or below 0 failures in a row; in the order in which they came
 * @param results that have come since the last time, and failures among them
 * @returns what the last of the streaks that changed anything has changed
 */
export function hearProbe(
  checkup: Checkup,
  standing: Standing,
  streaks: readonly number[],
  results: number,
  failures: number,
  now: number,
): ProbeChange | undefined {
  count(checkup.peer, results, failures)
  const before = checkup.peer.zone.peers.probeHealth[checkup.peer.index]!
  let change: ProbeChange | undefined
  for (const streak of streaks) change = judge(checkup, standing, streak, now) ?? change
  // What came and went unheard is no change.
  return checkup.peer.zone.peers.probeHealth[checkup.peer.index] === before ? undefined : change
}

function count({ zone, index }: Peer, results: number, failures: number, tookMs?: number): void {
  zone.enter()
  const { probes, probeFails, probeWallAt, probeMs } = zone.peers
  if (tookMs !== undefined) probeMs[index] = tookMs
  probes[index]! += results
  probeFails[index]! += failures
  probeWallAt[index] = Date.now()
  zone.leave()
}

function judge(checkup: Checkup, standing: Standing, streak: number, now: number): ProbeChange | undefined {
  const { peer, standings } = checkup
  standing.fails = Math.max(0, -streak)
  standing.passes = Math.max(0, streak)
  if (stands(standing)) standing.vouched = true
  const before = peer.zone.peers.probeHealth[peer.index]!
  let after = before
  if (standing.fails >= standing.rule.fails) after = unhealthy
  else if (before === checking && standings.every(({ vouched }) => vouched)) after = healthy
  else if (before === unhealthy && standings.every(stands)) after = healthy
  return move(checkup, after, Math.abs(streak), now)
}

function stands({ rule, passes }: Standing): boolean {
  return passes >= rule.passes
}

/**
 * Nobody probes the peer any more: it is as if nobody ever had.
 * @returns what changed by it
 */
export function dismiss(checkup: Checkup, now: number): ProbeChange | undefined {
  const { peer } = checkup
  peer.zone.enter()
  peer.zone.peers.agentState[peer.index] = 0
  peer.zone.peers.connsLimit[peer.index] = 0
  weigh(peer, 1)
  peer.zone.leave()
  return move(checkup, healthy, 0, now)
}

/** Takes back whatever bars a peer. To be called with its zone held. */
export function unprobed(peer: Peer): void {
  const { zone, index } = peer
  const { probeHealth, probeDownAt, agentState, connsLimit, barred } = zone.peers
  for (const column of [probeHealth, probeDownAt, agentState, connsLimit, barred]) column[index] = 0
  weigh(peer, 1)
}

function move(checkup: Checkup, after: number, streak: number, now: number): ProbeChange | undefined {
  const { peer } = checkup
  const { zone, index, options } = peer
  // 0 would say never.
  const moment = now || Number.MIN_VALUE
  zone.enter()
  const numbers = zone.peers
  const before = numbers.probeHealth[index]!
  const since = numbers.probeDownAt[index]!
  numbers.probeHealth[index] = after
  if (after === unhealthy && before !== unhealthy) numbers.unhealthy[index]! += 1
  if (after !== healthy && since === 0) numbers.probeDownAt[index] = moment
  if (after === healthy) {
    numbers.probeDownAt[index] = 0
    if (checkup.fallen && options.slow_start > 0) numbers.slowAt[index] = moment
  }
  bar(peer)
  zone.leave()
  zone.wake()
  checkup.fallen = after === unhealthy || (after === checking && checkup.fallen)
  if (after === before) return undefined
  return { state: probeHealths[after]!, streak, outMs: after === healthy && since > 0 ? now - since : 0 }
}
