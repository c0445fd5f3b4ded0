/**
 * A word in shared memory by which threads that wait for something tell each other that it may have come. Nobody is held
 * up: whoever waits goes on with its event loop, and is called there.
 */
export class Bell {
  readonly #words: Int32Array
  readonly #at: number

  /** @param words shared; the one at `at` is the bell's, 0 at first */
  constructor(words: Int32Array, at: number) {
    this.#words = words
    this.#at = at
  }

  /** How often it has rung; to be read before one looks whether there is a reason to wait. */
  get rings(): number {
    return Atomics.load(this.#words, this.#at)
  }

  ring(): void {
    Atomics.add(this.#words, this.#at, 1)
    Atomics.notify(this.#words, this.#at)
  }

  /** Goes on counting where another one has got to: it takes its place, and whoever listens there is to notice. */
  succeed(other: Bell): void {
    Atomics.store(this.#words, this.#at, other.rings + 1)
  }

  /**
   * The next ring.
   * @param since what `rings` gave
   * @returns undefined when it has rung since
   */
  rung(since: number): Promise<unknown> | undefined {
    const wait = Atomics.waitAsync(this.#words, this.#at, since)
    return wait.async ? wait.value : undefined
  }
}
