import type { Estimate, Interval } from './proportion.ts'
import { outside } from './rank-sum.ts'

/*
 * By how much the values of one sample are greater than those of another: the Hodges-Lehmann estimate, which is the
 * median of all differences between a value of the one and a value of the other, and the interval of Moses that goes
 * with the Mann-Whitney test. M. Hollander, D. A. Wolfe: Nonparametric Statistical Methods, 2nd edition (1999), 4.2 and 4.3.
 *
 * Ten thousand values on either side have a hundred million differences. They are not made: how many of them lie below
 * a number is counted in one walk along both samples, since the pointer into the one only ever moves up as that into the
 * other does, and the number is found by halving.
 */

/** So many in a turn: a millisecond or two. */
const halvingsAtOnce = 8

/** A shift, and where it lies; no interval where the samples are too small for the confidence. */
export type Shift =
  | Estimate
  | { readonly estimate: number; readonly low: undefined; readonly high: undefined }

/**
 * The shift from the first sample to the second. It takes some turns, each short.
 * @param xs, ys in ascending order, finite, neither empty
 * @param ties whether any two of all values are the same
 */
export function* shift(
  xs: Float64Array,
  ys: Float64Array,
  ties: boolean,
  confidence: number,
): Generator<undefined, Shift> {
  const pairs = xs.length * ys.length
  const middle = Math.ceil(pairs / 2)
  const lower = yield* nthDifference(xs, ys, middle)
  const single = pairs % 2 === 1 || countUpTo(xs, ys, lower) > middle
  const upper = single ? lower : leastAbove(xs, ys, lower)
  const estimate = (lower + upper) / 2
  const beyond = outside(xs.length, ys.length, ties, confidence)
  if (beyond === undefined) return { estimate, low: undefined, high: undefined }
  const low = yield* nthDifference(xs, ys, beyond + 1)
  const high = yield* nthDifference(xs, ys, pairs - beyond)
  const interval: Interval = { low, high }
  return { estimate, ...interval }
}

/** The nth smallest difference of a value of `ys` less one of `xs`, from 1. */
function* nthDifference(xs: Float64Array, ys: Float64Array, nth: number): Generator<undefined, number> {
  let low = ys[0]! - xs.at(-1)!
  let high = ys.at(-1)! - xs[0]!
  let below = countUpTo(xs, ys, low)
  if (below >= nth) return low
  let upTo = xs.length * ys.length
  // Until it is the only one in between, or nobody will ever see which one it is.
  for (let halvings = 1; upTo - below > 1 && high - low > 1e-9; halvings++) {
    if (halvings % halvingsAtOnce === 0) yield
    const middle = (low + high) / 2
    const count = countUpTo(xs, ys, middle)
    if (count >= nth) [high, upTo] = [middle, count]
    else [low, below] = [middle, count]
  }
  return leastAbove(xs, ys, low)
}

/** How many differences are at most so great. */
function countUpTo(xs: Float64Array, ys: Float64Array, most: number): number {
  let count = 0
  let j = 0
  for (let i = 0; i < xs.length; i++) {
    while (j < ys.length && ys[j]! - xs[i]! <= most) j++
    count += j
  }
  return count
}

/** The least difference that is greater. */
function leastAbove(xs: Float64Array, ys: Float64Array, than: number): number {
  let least = Number.POSITIVE_INFINITY
  let j = 0
  for (let i = 0; i < xs.length; i++) {
    while (j < ys.length && ys[j]! - xs[i]! <= than) j++
    if (j < ys.length) least = Math.min(least, ys[j]! - xs[i]!)
  }
  return least
}
