/** A clock that stands until it is moved. Not at 0, where some moments would read as "never". */
export class Clock {
  #now: number

  constructor(start = 1_000_000) {
    this.#now = start
  }

  /** Monotonic milliseconds. A property, so that it can be handed on by itself. */
  readonly now = (): number => this.#now

  move(ms: number): void {
    this.#now += ms
  }
}
