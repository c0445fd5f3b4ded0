/*
 * What several dashboards show, said once. All of it is a second, a share or a state, over what the reader has chosen.
 */

import { peerStates } from './colours.ts'
import {
  against,
  avg,
  between,
  complement,
  type Expr,
  either,
  type Label,
  max,
  mean,
  min,
  quantile,
  rate,
  ratio,
  scaled,
  shareOf,
  sum,
} from './promql.ts'
import { type Choice, chosen } from './scope.ts'

/** What a client sees as an error of ours; `xxx` is no status at all. 499 is a client that left. */
export const errorCodes = /5..|xxx/

/** Requests a second as their clients saw them end. */
export function requests(by: readonly Label[], whole: readonly Choice[] = []): Expr {
  return sum(by, rate(chosen('evenkeel_upstream_responses_total', {}, whole)))
}

/** The part of them that ended in an error. */
export function errorRatio(by: readonly Label[]): Expr {
  return ratio(sum(by, rate(chosen('evenkeel_upstream_responses_total', { code: errorCodes }))), requests(by))
}

/** Time of whole requests, with all their attempts. */
export function requestTime(q: number, by: readonly Label[]): Expr {
  return quantile(q, sum([...by, 'le'], rate(chosen('evenkeel_upstream_request_seconds_bucket'))))
}

/** Attempts a second. */
export function attempts(by: readonly Label[], whole: readonly Choice[] = []): Expr {
  return sum(by, rate(chosen('evenkeel_peer_attempts_total', {}, whole)))
}

/** The part of the attempts that counts against the peer. */
export function failureRatio(by: readonly Label[]): Expr {
  return ratio(sum(by, rate(chosen('evenkeel_peer_failures_total'))), attempts(by))
}

/** Average time to the header of an answer, of the last moments. */
export function headerTime(by: readonly Label[], whole: readonly Choice[] = []): Expr {
  return mean(
    sum(by, rate(chosen('evenkeel_peer_header_seconds_sum', {}, whole))),
    sum(by, rate(chosen('evenkeel_peer_header_seconds_count', {}, whole))),
  )
}

const ofPeer = ['upstream', 'peer'] as const
const ofGroup = ['upstream'] as const
const everyPeer = ['peer', 'track'] as const

/** The peer's share of its group that the method intends now, over instances. */
export function intendedShare(): Expr {
  return avg(ofPeer, chosen('evenkeel_peer_share_ratio'))
}

/** The peer's share of its group's attempts. */
export function actualShare(): Expr {
  return shareOf(attempts(ofPeer), attempts(ofGroup, everyPeer))
}

/** The peer's share of the time that its group's answers took in all. */
export function timeShare(): Expr {
  const time = (by: readonly Label[], whole: readonly Choice[]) =>
    sum(by, rate(chosen('evenkeel_peer_header_seconds_sum', {}, whole)))
  return shareOf(time(ofPeer, []), time(ofGroup, everyPeer))
}

/** How a peer's time to the header compares with that of its group: 1 is as fast as the group's answers are on average. */
export function relativeTime(): Expr {
  return against(headerTime(ofPeer), '/', headerTime(ofGroup, everyPeer))
}

/** A number for what each is; see `peerStates`. Over instances and tracks it is the worst that any sees. */
export function stateOf(by: readonly Label[]): Expr {
  // At most one reason holds at a time, so the sum is its number.
  const numbered = Object.entries(peerStates).map(([reason, { value }]) =>
    scaled(chosen('evenkeel_peer_excluded', { reason }), '*', value),
  )
  const all = numbered.reduce((sofar, one) => either(sofar, one))
  return max(by, sum(['namespace', 'instance', 'upstream', 'peer', 'track'], all))
}

/** Whether each peer may be picked, as each instance sees it: 1 or 0. */
export function readiness(whole: readonly Choice[] = []): Expr {
  const excluded = sum(
    ['namespace', 'instance', 'upstream', 'peer', 'track'],
    chosen('evenkeel_peer_excluded', {}, whole),
  )
  return complement(excluded)
}

/** The part of the attempts that was made on a kept connection. */
export function reuseRatio(by: readonly Label[]): Expr {
  const reused = sum(by, rate(chosen('evenkeel_peer_reuses_total')))
  const opened = sum(by, rate(chosen('evenkeel_peer_connects_total')))
  return ratio(reused, between(reused, '+', opened))
}

/** Average time that opening a connection took. */
export function connectTime(by: readonly Label[]): Expr {
  return mean(
    sum(by, rate(chosen('evenkeel_peer_connect_seconds_total'))),
    sum(by, rate(chosen('evenkeel_peer_connects_total'))),
  )
}

/** The part of the probes that did not pass. */
export function probeFailureRatio(by: readonly Label[]): Expr {
  return ratio(
    sum(by, rate(chosen('evenkeel_peer_probe_failures_total'))),
    sum(by, rate(chosen('evenkeel_peer_probes_total'))),
  )
}

/** Requests in progress at each peer. */
export const inFlight = sum(ofPeer, chosen('evenkeel_peer_in_flight'))

/** Time that attempts without an answer yet have waited at each peer, added up. */
export const waiting = sum(ofPeer, chosen('evenkeel_peer_waiting_age_seconds'))

/** The part of each peer's attempts that was picked without an average. */
export const unmeasured = ratio(sum(ofPeer, rate(chosen('evenkeel_peer_unmeasured_total'))), attempts(ofPeer))

/** The part of its weight that `slow_start` leaves each peer, by the instance that leaves it least. */
export const ramp = min(ofPeer, chosen('evenkeel_peer_ramp_ratio'))

/** Time that the last probe of each peer took. */
export const probeTime = avg(ofPeer, chosen('evenkeel_peer_probe_seconds'))

/** Picks a second that a group's method and its shadow made, between peers of which both know what to expect. */
const shadowed = sum(ofGroup, rate(chosen('evenkeel_upstream_shadow_picks_total')))

/** The share of the picks that the shadow would have given each peer. */
export const shadowShare = shareOf(
  sum(ofPeer, rate(chosen('evenkeel_peer_shadow_picks_total'))),
  sum(ofGroup, rate(chosen('evenkeel_peer_shadow_picks_total', {}, everyPeer))),
)

/** The part of the picks in which both chose the same peer. */
export const shadowSame = ratio(sum(ofGroup, rate(chosen('evenkeel_upstream_shadow_same_total'))), shadowed)

/** Average time of the peers that were picked, and of those that the shadow would have picked. */
export const pickedTime = mean(
  sum(ofGroup, rate(chosen('evenkeel_upstream_picked_expected_seconds_total'))),
  shadowed,
)
export const shadowTime = mean(
  sum(ofGroup, rate(chosen('evenkeel_upstream_shadow_expected_seconds_total'))),
  shadowed,
)
