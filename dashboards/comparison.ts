/*
 * One track against another. A track without requests has no series in what compares it: no traffic is no evidence, and
 * must be neither 0 nor NaN.
 */

import {
  against,
  apply,
  between,
  complement,
  type Expr,
  increase,
  type Matchers,
  quantile,
  rate,
  ratio,
  scaled,
  shareOf,
  sum,
  where,
} from './promql.ts'
import { chosen } from './scope.ts'

/** The track of servers whose line names none: what others are compared with. */
export const baseline = 'stable'

const ofTrack = ['upstream', 'track'] as const
const ofGroup = ['upstream'] as const
const window = '$window'
const responses = 'evenkeel_upstream_responses_total'

/** The tracks on trial, and the one that they are compared with, whichever are chosen. */
const trial: Matchers = { track: { not: baseline } }
const stable: Matchers = { track: baseline }

/** Attempts, as the verdict on a canary counts them: a request that fails in a track may end in another. */
function counted(by: typeof ofTrack | typeof ofGroup, matchers: Matchers = {}): Expr {
  return sum(by, increase(chosen('evenkeel_upstream_judged_attempts_total', matchers), window))
}

function bad(by: typeof ofTrack | typeof ofGroup, matchers: Matchers = {}): Expr {
  return sum(by, increase(chosen('evenkeel_upstream_failed_attempts_total', matchers), window))
}

/** Attempts of each track in the window. */
export function seen(): Expr {
  return counted(ofTrack)
}

/** Those that failed, the ones that a retry made good too. */
export function errorsSeen(): Expr {
  return bad(ofTrack)
}

/** Time of the answers of each track in the window. */
export function timeOver(q: number): Expr {
  return quantile(q, sum([...ofTrack, 'le'], rate(chosen('evenkeel_peer_response_seconds_bucket'), window)))
}

/** Each track's quantile by that of the baseline. */
export function latencyRatio(q: number): Expr {
  const buckets = (matchers: Matchers) =>
    rate(chosen('evenkeel_peer_response_seconds_bucket', matchers), window)
  return against(
    quantile(q, sum([...ofTrack, 'le'], buckets(trial))),
    '/',
    where(quantile(q, sum([...ofGroup, 'le'], buckets(stable))), '> 0'),
  )
}

/** Errors and attempts of one side, one of each added for either outcome: with few samples 0 of 3 is not "never". */
function proportion(by: typeof ofTrack | typeof ofGroup, matchers: Matchers): { p: Expr; variance: Expr } {
  const all = where(counted(by, matchers), '> 0')
  const n = scaled(all, '+', 2)
  const p = between(scaled(bad(by, matchers), '+', 1), '/', n)
  return { p, variance: between(between(p, '*', complement(p)), '/', n) }
}

/**
 * How much greater a track's error ratio is than the baseline's: the difference itself, or an end of the interval in which
 * it lies with 95 % confidence, after Agresti and Caffo, "Simple and Effective Confidence Intervals for Proportions and
 * Differences of Proportions" (2000).
 */
export function errorDifference(which: 'is' | 'from' | 'to'): Expr {
  const one = proportion(ofTrack, trial)
  const other = proportion(ofGroup, stable)
  const difference = against(one.p, '-', other.p)
  if (which === 'is') {
    const plain = (by: typeof ofTrack | typeof ofGroup, matchers: Matchers) =>
      ratio(bad(by, matchers), counted(by, matchers))
    return against(plain(ofTrack, trial), '-', plain(ofGroup, stable))
  }
  const spread = scaled(apply('sqrt', against(one.variance, '+', other.variance)), '*', 1.96)
  return between(difference, which === 'from' ? '-' : '+', spread)
}

/** Part of the group's requests that the split sent to each track. */
export function splitShare(): Expr {
  const sent = (by: typeof ofTrack | typeof ofGroup) =>
    sum(by, rate(chosen('evenkeel_upstream_split_total', {}, by === ofGroup ? ['track'] : [])))
  return shareOf(sent(ofTrack), sent(ofGroup))
}

/** Part of the group's requests that ended in each track. */
export function trackShare(): Expr {
  const had = (by: typeof ofTrack | typeof ofGroup) =>
    sum(by, rate(chosen(responses, {}, by === ofGroup ? ['track'] : [])))
  return shareOf(had(ofTrack), had(ofGroup))
}
