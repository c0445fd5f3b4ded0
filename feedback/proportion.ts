import { normalPoint } from './normal.ts'

/** Where a value lies with a given confidence. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/** An estimate and where the value lies. */
export interface Estimate extends Interval {
  readonly estimate: number
}

/**
 * Wilson's score interval of a proportion (Journal of the American Statistical Association 22, 1927, 209-212).
 * @param of how many were looked at, 1 or more
 */
export function proportion(count: number, of: number, confidence: number): Interval {
  const z = normalPoint((1 - confidence) / 2)
  const p = count / of
  const middle = p + (z * z) / (2 * of)
  const half = z * Math.sqrt((p * (1 - p)) / of + (z * z) / (4 * of * of))
  const whole = 1 + (z * z) / of
  // Rounding must not leave the possible.
  return { low: Math.max(0, (middle - half) / whole), high: Math.min(1, (middle + half) / whole) }
}

/**
 * Newcombe's hybrid score interval of the difference of two proportions, the first less the second (Statistics in
 * Medicine 17, 1998, 873-890, method 10). It holds with few errors, or none, where the usual one has no width.
 * @param of how many were looked at, 1 or more each
 */
export function proportionDifference(
  count: number,
  of: number,
  otherCount: number,
  otherOf: number,
  confidence: number,
): Estimate {
  const p = count / of
  const other = otherCount / otherOf
  const own = proportion(count, of, confidence)
  const others = proportion(otherCount, otherOf, confidence)
  const estimate = p - other
  return {
    estimate,
    low: estimate - Math.hypot(p - own.low, others.high - other),
    high: estimate + Math.hypot(own.high - p, other - others.low),
  }
}
