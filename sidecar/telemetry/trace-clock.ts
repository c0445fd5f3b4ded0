/** A moment as OpenTelemetry takes it: seconds since the epoch, and nanoseconds of the next one. */
export type WallTime = [seconds: number, nanoseconds: number]

/**
 * Tells wall time of monotonic moments. Spans of one process begin and end by the monotonic clock, so that they are as
 * long as what they tell of, wherever the system's clock is moved; between spans it follows that clock.
 */
export class TraceClock {
  readonly #monotonic: () => number
  readonly #wall: () => number
  /** What is added to a monotonic moment. */
  #offset = Number.NaN

  /**
   * @param monotonic milliseconds, with fractions
   * @param wall whole milliseconds since the epoch
   */
  constructor(monotonic: () => number, wall: () => number) {
    this.#monotonic = monotonic
    this.#wall = wall
  }

  /** Follows the system's clock: to be called before the first moment of a trace is told. @returns the offset, for `at` */
  follow(): number {
    const before = this.#monotonic()
    const wall = this.#wall()
    const after = this.#monotonic()
    // The system tells whole milliseconds, so that the truth lies anywhere in these bounds; nothing is changed within.
    const least = wall - after
    const most = wall + 1 - before
    if (!(this.#offset >= least && this.#offset <= most)) {
      this.#offset = this.#offset > most ? most : least
    }
    return this.#offset
  }

  /** @param moment monotonic milliseconds */
  static at(moment: number, offset: number): WallTime {
    const ms = moment + offset
    const seconds = Math.floor(ms / 1000)
    return [seconds, Math.round((ms - seconds * 1000) * 1e6)]
  }
}
