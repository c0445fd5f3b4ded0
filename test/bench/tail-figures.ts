import type { Target } from './tail-scenarios.ts'

/** What one run showed of one method; times in milliseconds from when a request was due to its last byte. */
export interface Figures {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** Share of the requests that got no 200, 0 to 1. Their times count like those of the others. */
  readonly errors: number
}

/** Figures over those of the best possible. */
export type Ratios = Omit<Figures, 'errors'>

/**
 * @param sorted ascending, not empty
 * @param share 0 to 1: so many are at most what is returned
 */
export function percentile(sorted: Float64Array, share: number): number {
  // A product like 0.999 · 1000 may come out a little above the whole number it is.
  const rank = Math.ceil(share * sorted.length - 1e-9)
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1]!
}

/** @param times of all requests, not empty */
export function figures(times: Float64Array, failed: number): Figures {
  const sorted = Float64Array.from(times).sort()
  return {
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    p999: percentile(sorted, 0.999),
    errors: failed / times.length,
  }
}

export function ratios(of: Figures, ideal: Figures): Ratios {
  return { p50: of.p50 / ideal.p50, p99: of.p99 / ideal.p99, p999: of.p999 / ideal.p999 }
}

/** @returns NaN of nothing */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The median of each figure. */
export function medians<K extends string>(runs: readonly Readonly<Record<K, number>>[]): Record<K, number> {
  // The same names as in each of the runs.
  const names = Object.keys(runs[0]!) as K[]
  const found = names.map((name) => [name, median(runs.map((run) => run[name]))])
  return Object.fromEntries(found)
}

/** Whether a method reaches what it must; each entry says what it does not. */
export function misses(target: Target, p99Ratio: number, errors: number): string[] {
  const found: string[] = []
  // Not a number is a miss too.
  if (!(p99Ratio <= target.p99)) found.push('p99')
  if (!(errors <= target.errors)) found.push('errors')
  return found
}
