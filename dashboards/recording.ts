/*
 * Recording rules: what alerts compare, computed once. Names are level:metric:operations, as Prometheus' own advice has it;
 * the level is the labels that are left. Rates are over all instances of a namespace.
 */

import { errorCodes } from './measures.ts'
import {
  avg,
  between,
  complement,
  type Expr,
  type Label,
  mean,
  overTime,
  quantile,
  rate,
  ratio,
  recorded,
  scaled,
  series,
  shareOf,
  sum,
  where,
} from './promql.ts'

export interface RecordingRule {
  readonly record: string
  readonly expr: Expr
}

const group = ['namespace', 'upstream'] as const
const track = [...group, 'track'] as const
const peer = [...group, 'peer'] as const

const rules: RecordingRule[] = []

/** Adds a rule, and gives what it records for others to use. */
function record(name: string, expr: Expr): Expr {
  rules.push({ record: name, expr })
  return recorded(name, [...expr.labels])
}

const responses = 'evenkeel_upstream_responses_total'
const answered = (by: readonly Label[], window: string) => sum(by, rate(series(responses), window))
const failed = (by: readonly Label[], window: string) =>
  sum(by, rate(series(responses, { code: errorCodes }), window))

/** Windows over which errors are looked at: a short and a long one of each pair that an alert has. */
const errorWindows = ['5m', '30m', '1h', '6h'] as const
export type ErrorWindow = (typeof errorWindows)[number]

function overWindows(make: (window: ErrorWindow) => Expr): Readonly<Record<ErrorWindow, Expr>> {
  // The keys are the list.
  return Object.fromEntries(errorWindows.map((window) => [window, make(window)])) as Record<ErrorWindow, Expr>
}

/** Requests a second of each group. */
export const groupRate = overWindows((window) =>
  record(`namespace_upstream:evenkeel_upstream_responses:rate${window}`, answered(group, window)),
)

/** The part of them that ended in an error for the client. */
export const groupErrors = overWindows((window) =>
  record(
    `namespace_upstream:evenkeel_upstream_errors:ratio_rate${window}`,
    ratio(failed(group, window), groupRate[window]),
  ),
)

/** Time of whole requests. */
export const groupTime = {
  p50: record(
    'namespace_upstream:evenkeel_upstream_request_seconds:p50_rate5m',
    quantile(0.5, sum([...group, 'le'], rate(series('evenkeel_upstream_request_seconds_bucket'), '5m'))),
  ),
  p90: record(
    'namespace_upstream:evenkeel_upstream_request_seconds:p90_rate5m',
    quantile(0.9, sum([...group, 'le'], rate(series('evenkeel_upstream_request_seconds_bucket'), '5m'))),
  ),
  p99: record(
    'namespace_upstream:evenkeel_upstream_request_seconds:p99_rate5m',
    quantile(0.99, sum([...group, 'le'], rate(series('evenkeel_upstream_request_seconds_bucket'), '5m'))),
  ),
} as const

/** Retries by requests. */
record(
  'namespace_upstream:evenkeel_upstream_retries:ratio_rate5m',
  ratio(
    sum(group, rate(series('evenkeel_upstream_retries_total'), '5m')),
    sum(group, rate(series('evenkeel_upstream_requests_total'), '5m')),
  ),
)

const denied = record(
  'namespace_upstream_reason:evenkeel_upstream_denials:rate5m',
  sum([...group, 'reason'], rate(series('evenkeel_upstream_denials_total'), '5m')),
)

/** Requests that got no attempt, or no further one, for a reason, by all requests. */
export function denialRatio(reason: string): Expr {
  const those = recorded(denied.text, [...group, 'reason'], { reason })
  return ratio(sum(group, those), sum(group, rate(series('evenkeel_upstream_requests_total'), '5m')))
}

/**
 * Attempts a second of each track, the part of them that failed, and the time of answers. Requests would not do: one that
 * fails in a track may end in another.
 */
export const trackRate = record(
  'namespace_upstream_track:evenkeel_upstream_judged_attempts:rate10m',
  sum(track, rate(series('evenkeel_upstream_judged_attempts_total'), '10m')),
)
export const trackErrors = record(
  'namespace_upstream_track:evenkeel_upstream_failed_attempts:ratio_rate10m',
  ratio(sum(track, rate(series('evenkeel_upstream_failed_attempts_total'), '10m')), trackRate),
)
/** Variance of that part: of so many attempts in ten minutes chance makes this much. */
export const trackVariance = record(
  'namespace_upstream_track:evenkeel_upstream_failed_attempts:variance10m',
  between(between(trackErrors, '*', complement(trackErrors)), '/', where(scaled(trackRate, '*', 600), '> 0')),
)
export const trackTime = record(
  'namespace_upstream_track:evenkeel_peer_response_seconds:p90_rate10m',
  quantile(0.9, sum([...track, 'le'], rate(series('evenkeel_peer_response_seconds_bucket'), '10m'))),
)

/** Peers of a group that each instance could pick, now or once they have a place: those that are full are alive. */
export const livePeers = record(
  'namespace_upstream_instance:evenkeel_peer_live:count',
  sum(
    [...group, 'instance'],
    complement(
      sum([...peer, 'instance', 'track'], series('evenkeel_peer_excluded', { reason: { not: 'busy' } })),
    ),
  ),
)

/** Attempts a second at each peer. */
export const peerRate = record(
  'namespace_upstream_peer:evenkeel_peer_attempts:rate5m',
  sum(peer, rate(series('evenkeel_peer_attempts_total'), '5m')),
)

/** The part of them that counts against the peer. */
export const peerFailures = record(
  'namespace_upstream_peer:evenkeel_peer_failures:ratio_rate5m',
  ratio(sum(peer, rate(series('evenkeel_peer_failures_total'), '5m')), peerRate),
)

/** Its share of the group's attempts, and the one that the method meant it to have. */
export const peerShare = record(
  'namespace_upstream_peer:evenkeel_peer_share:ratio_rate5m',
  shareOf(peerRate, sum(group, peerRate)),
)
const meant = avg(peer, overTime('avg', series('evenkeel_peer_share_ratio'), '5m'))
export const intendedShare = record(
  'namespace_upstream_peer:evenkeel_peer_share_ratio:avg5m',
  // At moments when all peers are full no share is meant for anybody.
  shareOf(meant, sum(group, meant)),
)

/** Average time to the header of each peer's answers. */
record(
  'namespace_upstream_peer:evenkeel_peer_header_seconds:mean_rate5m',
  mean(
    sum(peer, rate(series('evenkeel_peer_header_seconds_sum'), '5m')),
    sum(peer, rate(series('evenkeel_peer_header_seconds_count'), '5m')),
  ),
)

export const recordingRules: readonly RecordingRule[] = rules
