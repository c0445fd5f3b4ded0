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
 * a quiet group, nor answers alone those of a busy one, so it is the less of both.
 * @param time since the peer last answered, in units of the method's `decay`
 * @param answers that the group has given since, in units of a hundred for each of its peers
 */
export function staleness(time: number, answers: number): number {
  return Math.max(0, Math.min(time, answers))
}

/**
 * An average that nobody has renewed moves to the group's median, evenly by ratios: at staleness s it is
 * median · (average / median)^exp(−s).
 * @param average milliseconds, above 0
 * @param log of median / average: callers keep it, since it costs more than the rest
 * @param s its staleness
 */
export function drift(average: number, log: number, s: number): number {
  return average * Math.exp(log * (1 - Math.exp(-s)))
}
