import { normalPoint, normalTail } from './normal.ts'

/*
 * The Mann-Whitney test (Wilcoxon's rank sum): whether values of one sample tend to be greater than those of another.
 * M. Hollander, D. A. Wolfe: Nonparametric Statistical Methods, 2nd edition (1999), chapter 4.
 */

/** What the test says of two samples. */
export interface RankSum {
  /** Pairs in which the second sample's value is the greater one; a tie counts half. */
  readonly u: number
  /** Chance of a `u` as far from the middle as this, up or down, where both samples come from the same source. */
  readonly p: number
  /** Whether any two of all values are the same. */
  readonly ties: boolean
}

/** Below this size of both samples, and without ties, the chances are exact, as they are in R. */
const exactBelow = 50

/** @param xs, ys in ascending order, neither empty */
export function rankSum(xs: Float64Array, ys: Float64Array): RankSum {
  const [m, n] = [xs.length, ys.length]
  const { u, tied } = countPairs(xs, ys)
  const ties = tied > 0
  if (!ties && m < exactBelow && n < exactBelow) {
    const tail = exactTails(m, n)[Math.min(u, m * n - u)]!
    return { u, ties, p: Math.min(1, 2 * tail) }
  }
  const all = m + n
  const variance = ((m * n) / 12) * (all + 1 - tied / (all * (all - 1)))
  // Half a pair is what lies between one value of `u` and the next.
  const distance = Math.max(0, Math.abs(u - (m * n) / 2) - 0.5)
  return { u, ties, p: variance > 0 ? Math.min(1, 2 * normalTail(distance / Math.sqrt(variance))) : 1 }
}

/** @returns `tied` is the sum of t³ - t over groups of t values that are the same */
function countPairs(xs: Float64Array, ys: Float64Array): { u: number; tied: number } {
  let i = 0
  let j = 0
  let u = 0
  let tied = 0
  while (i < xs.length || j < ys.length) {
    const value = j === ys.length || (i < xs.length && xs[i]! <= ys[j]!) ? xs[i]! : ys[j]!
    const before = i
    const seen = i + j
    while (i < xs.length && xs[i] === value) i++
    const sameX = i - before
    while (j < ys.length && ys[j] === value) j++
    const same = i + j - seen
    u += (same - sameX) * (before + sameX / 2)
    if (same > 1) tied += same ** 3 - same
  }
  return { u, tied }
}

/**
 * How many of the differences, counted from the least, lie outside the interval that has the true shift with the given
 * confidence, on either side: the interval begins with the next one.
 * @param ties whether any two values are the same
 * @returns undefined where the samples are too small for so much confidence
 */
export function outside(m: number, n: number, ties: boolean, confidence: number): number | undefined {
  const tail = (1 - confidence) / 2
  if (!ties && m < exactBelow && n < exactBelow) {
    const further = exactTails(m, n).findIndex((chance) => chance > tail)
    return further > 0 ? further - 1 : undefined
  }
  // The approximation for large samples; with ties the interval is somewhat wider than it had to be.
  const rank = Math.floor((m * n) / 2 - normalPoint(tail) * Math.sqrt((m * n * (m + n + 1)) / 12))
  return rank >= 1 ? rank - 1 : undefined
}

/**
 * Chance of each `u` or a smaller one, where both samples come from the same source and no two values are the same. In
 * how many orders of the values a `u` comes out is a coefficient of the Gaussian binomial, the product of
 * (1 - q^(n+i)) / (1 - q^i) for i from 1 to m.
 */
function exactTails(m: number, n: number): Float64Array {
  const ways = new Float64Array(m * n + 1)
  ways[0] = 1
  for (let i = 1; i <= m; i++) {
    for (let u = m * n; u >= n + i; u--) ways[u]! -= ways[u - n - i]!
    for (let u = i; u <= m * n; u++) ways[u]! += ways[u - i]!
  }
  const all = ways.reduce((sum, count) => sum + count, 0)
  let below = 0
  return ways.map((count) => {
    below += count
    return below / all
  })
}
