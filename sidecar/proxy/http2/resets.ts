/** Streams that may end before their time at once, beyond those that end in order. */
const burst = 200
/** And how many more for each second that passes. */
const perSecond = 33

/**
 * Streams that end before their time, against those that end in order. A client that begins streams and resets them has
 * this side work for nothing, and no limit of streams at once ever stops it.
 */
export class Resets {
  #left = burst
  #at: number

  /** @param now monotonic milliseconds */
  constructor(now: number) {
    this.#at = now
  }

  /** A stream has ended in order. */
  ended(): void {
    this.#left = Math.min(burst, this.#left + 1)
  }

  /** A stream has ended before its time. @returns false when there are too many of them */
  reset(now: number): boolean {
    this.#left = Math.min(burst, this.#left + ((now - this.#at) / 1000) * perSecond)
    this.#at = now
    this.#left -= 1
    return this.#left >= 0
  }
}
