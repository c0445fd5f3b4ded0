import type { Pooled } from './pooled.ts'
import { type Estimate, proportionDifference } from './proportion.ts'
import { type RankSum, rankSum } from './rank-sum.ts'
import { type Shift, shift } from './shift.ts'

/** How sure the intervals are. */
export const errorConfidence = 0.95
export const latencyConfidence = 0.98

/** Milliseconds: what clocks tell apart. A shorter time is taken for one, since 0 has no logarithm. */
const shortest = 0.001

/** What two tracks' attempts say of each other. */
export interface Comparison {
  /** By how much the canary's part of errors is greater, -1 to 1; undefined where either side has no attempt. */
  readonly errors: Estimate | undefined
  /** Undefined where either side has no time. */
  readonly latency: LatencyComparison | undefined
}

export interface LatencyComparison extends RankSum {
  /** Medians, milliseconds. */
  readonly baselineMs: number
  readonly canaryMs: number
  /** By how much the canary is slower: 0.2 is a fifth. No interval where there are too few times for one. */
  readonly slowdown: Shift
}

/**
 * Compares two sides, in turns of a few milliseconds.
 *
 * Times are compared by their logarithms, so that a shift is a factor: answer times are as spread as they are long, and
 * "20 % slower" is then one number for fast and slow answers, with an interval of its own. The estimate is the median of
 * all quotients of a canary's time by a baseline's.
 */
export function* comparing(baseline: Pooled, canary: Pooled): Generator<undefined, Comparison> {
  const errors =
    baseline.attempts > 0 && canary.attempts > 0
      ? proportionDifference(
          canary.errors,
          canary.attempts,
          baseline.errors,
          baseline.attempts,
          errorConfidence,
        )
      : undefined
  if (baseline.times.length === 0 || canary.times.length === 0) return { errors, latency: undefined }
  const xs = logarithms(baseline.times)
  yield
  const ys = logarithms(canary.times)
  yield
  const { u, p, ties } = rankSum(xs, ys)
  yield
  const logarithm = yield* shift(xs, ys, ties, latencyConfidence)
  return {
    errors,
    latency: {
      u,
      p,
      ties,
      baselineMs: Math.exp(median(xs)),
      canaryMs: Math.exp(median(ys)),
      slowdown: relative(logarithm),
    },
  }
}

/** The same in one go. */
export function compare(baseline: Pooled, canary: Pooled): Comparison {
  const turns = comparing(baseline, canary)
  for (;;) {
    const { done, value } = turns.next()
    if (done) return value
  }
}

function logarithms(times: Float64Array): Float64Array {
  return times.map((ms) => Math.log(Math.max(ms, shortest))).sort()
}

function median(sorted: Float64Array): number {
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function relative({ estimate, low, high }: Shift): Shift {
  const factor = Math.expm1(estimate)
  if (low === undefined) return { estimate: factor, low, high: undefined }
  return { estimate: factor, low: Math.expm1(low), high: Math.expm1(high) }
}
