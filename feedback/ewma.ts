/** The least time that is told from "none yet", milliseconds: the clock's own resolution of a microsecond. */
const least = 1e-3

/**
 * A moving average of times that takes in one more.
 * @param average milliseconds; 0: none yet, the value then becomes the average
 * @param value milliseconds, 0 or more
 * @param keep how much of the old average stays, 0 to 1
 * @returns milliseconds, above 0
 */
export function ewma(average: number, value: number, keep: number): number {
  return Math.max(average > 0 ? average * keep + value * (1 - keep) : value, least)
}

/**
 * How stale an average is, 0 or more; at 1 it is worth 1/e of what it was. Time alone must not age the averages of
 * a quiet group, and answers alone not those of a busy one, so it is the less of both.
 * @param idleMs since the peer last answered
 * @param decayMs the method's `decay`, above 0
 * @param answers that the group has given since
 * @param peers how many share the group's requests, 1 or more
 */
export function staleness(idleMs: number, decayMs: number, answers: number, peers: number): number {
  return Math.max(0, Math.min(idleMs / decayMs, answers / (100 * peers)))
}

/** exp(−s), for s ≥ 0. Most are tiny, and there the series is exact to five digits and much cheaper. */
export function fading(s: number): number {
  return s < 0.03 ? 1 - s + (s * s) / 2 : Math.exp(-s)
}

/**
 * An average that nobody has renewed moves to the group's median, evenly by ratios.
 * @param average milliseconds, above 0
 * @param median milliseconds, above 0
 * @param s its staleness
 */
export function drift(average: number, median: number, s: number): number {
  return median * Math.exp(Math.log(average / median) * fading(s))
}
