import { seeded } from '../support/dice.ts'
import { meanMs } from './tail-plan.ts'

/** Who comes when and with how much to do: the same for every method of a run. */
export interface Arrivals {
  /** Milliseconds from the start, ascending. */
  readonly at: Float64Array
  /** Milliseconds of work at a peer of speed 1. */
  readonly work: Float64Array
}

/**
 * A Poisson stream with exponential work.
 * @param rate a second
 * @param ms how long requests come
 */
export function arrivals(seed: number, rate: number, ms: number): Arrivals {
  // Two dice, so that the work does not depend on how the moments were drawn.
  const moments = seeded(2 * seed)
  const amounts = seeded(2 * seed + 1)
  const at: number[] = []
  const work: number[] = []
  for (let time = wait(moments, 1000 / rate); time < ms; time += wait(moments, 1000 / rate)) {
    at.push(time)
    work.push(wait(amounts, meanMs))
  }
  return { at: Float64Array.from(at), work: Float64Array.from(work) }
}

/** One every so many milliseconds, with nothing to do. */
export function regular(everyMs: number, ms: number): Arrivals {
  const count = Math.ceil(ms / everyMs)
  return { at: Float64Array.from({ length: count }, (_, i) => i * everyMs), work: new Float64Array(count) }
}

function wait(random: () => number, mean: number): number {
  return -Math.log(1 - random()) * mean
}
