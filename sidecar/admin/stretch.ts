import { setImmediate as pause } from 'node:timers/promises'

/**
 * Longest stretch of work before requests get their turn, milliseconds. A request needs several turns of the loop, so it
 * may wait for as many stretches.
 */
const longestMs = 0.5

/** Work that takes long, in parts: `if (stretch.over) await stretch.rest()` wherever it can be left for a while. */
export class Stretch {
  #began = performance.now()

  get over(): boolean {
    return performance.now() - this.#began >= longestMs
  }

  /** Lets everything else have its turn. */
  async rest(): Promise<void> {
    await pause()
    this.#began = performance.now()
  }
}
