import { drift, staleness } from '../../feedback/ewma.ts'

/** How old the group's median may be, and for how long an average that nobody renews stays as it is. */
export const patienceMs = 100

/** The averages of a group, moved towards its median as they grow stale. */
export class Drifts {
  /** 1 / decay; 0 where nothing is forgotten. */
  readonly #rate: number
  /** Averages and their logarithms in turn, by the zone's index: a logarithm costs more than all the rest. */
  readonly #logs: Float64Array
  #median = 0
  #medianLog = 0

  /**
   * @param decay milliseconds; 0 forgets nothing
   * @param capacity of the zone
   */
  constructor(decay: number, capacity: number) {
    this.#rate = decay > 0 ? 1 / decay : 0
    this.#logs = new Float64Array(2 * capacity)
  }

  /** What the averages move to; 0 while nothing is known. */
  get median(): number {
    return this.#median
  }

  set median(middle: number) {
    if (middle === this.#median) return
    this.#median = middle
    this.#medianLog = Math.log(middle)
  }

  /**
   * How stale an average is, 0 or more.
   * @param idle milliseconds since it was renewed
   * @param answers of the group since then, in units of a hundred for each of its peers
   */
  staleness(idle: number, answers: number): number {
    if (idle <= patienceMs || this.#median <= 0) return 0
    return staleness(idle * this.#rate, answers)
  }

  /** @param average above 0 */
  of(index: number, average: number, stale: number): number {
    const logs = this.#logs
    const at = 2 * index
    if (logs[at] !== average) {
      logs[at] = average
      logs[at + 1] = Math.log(average)
    }
    return drift(average, this.#medianLog - logs[at + 1]!, stale)
  }
}
