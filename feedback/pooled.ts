import type { Minute } from './reservoir.ts'

/** What is known of some attempts: those of a minute, at one instance. */
export type Part = Pick<Minute, 'attempts' | 'errors' | 'timed' | 'times'>

/** What is known of all of them together. */
export interface Pooled {
  readonly attempts: number
  readonly errors: number
  /** Times that came. */
  readonly timed: number
  /** Some of them, milliseconds: each of those that came has the same chance to be among them, whichever part it is of. */
  readonly times: Float64Array
}

/**
 * Puts parts together. Counts add up. Of the times a part has at most as many as its reservoir keeps, however many came:
 * of twenty thousand a thousand stand for twenty each, beside a quiet minute whose times stand for themselves. So that
 * all weigh the same, the same fraction is taken of what came in every part, and none is counted twice. It is as great as
 * the part of which least was kept allows.
 *
 * @param most times at most
 * @param random uniform in [0, 1)
 */
export function pool(parts: readonly Part[], most: number, random: () => number): Pooled {
  let [attempts, errors, timed, fraction] = [0, 0, 0, 1]
  for (const part of parts) {
    attempts += part.attempts
    errors += part.errors
    timed += part.timed
    if (part.timed > 0) fraction = Math.min(fraction, part.times.length / part.timed)
  }
  if (timed > 0) fraction = Math.min(fraction, most / timed)
  const times = new Float64Array(Math.ceil(fraction * timed))
  let [wanted, taken] = [0, 0]
  for (const part of parts) {
    // What is left of a whole one goes on to the next part, so that many small parts come to what they should.
    wanted += fraction * part.timed
    const count = Math.min(part.times.length, Math.round(wanted) - taken)
    times.set(drawn(part.times, count, random), taken)
    taken += count
  }
  return { attempts, errors, timed, times: times.subarray(0, taken) }
}

/** So many of the times, all equally likely: those of a part lie in the order in which they came. */
export function drawn(times: Float32Array, count: number, random: () => number): Float32Array {
  if (count >= times.length) return times
  const rest = times.slice()
  for (let i = 0; i < count; i++) {
    const other = i + Math.floor(random() * (rest.length - i))
    const one = rest[other]!
    rest[other] = rest[i]!
    rest[i] = one
  }
  return rest.subarray(0, count)
}
