import type { RecentBatch } from '../feedback/feed.ts'

type Hear = (batch: RecentBatch) => void

/** Those who watch attempts as they end. As long as there is nobody, nothing is gathered. */
export class Watchers {
  readonly #watch: (hear: Hear | undefined) => void
  readonly #listeners = new Set<Hear>()

  /** @param watch begins to gather, and with undefined stops that */
  constructor(watch: (hear: Hear | undefined) => void) {
    this.#watch = watch
  }

  /** @returns stops listening */
  add(hear: Hear): () => void {
    // One who listens twice is told twice.
    const listener: Hear = (batch) => hear(batch)
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#watch((batch) => {
        for (const each of this.#listeners) each(batch)
      })
    }
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#watch(undefined)
    }
  }
}
