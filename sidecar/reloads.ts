import { mistakeOf } from './mistake.ts'

/** How a reload ended. */
export type Reloaded = { readonly ok: true } | { readonly ok: false; readonly error: string }

/**
 * Reloads one after the other, whoever asks for them: a signal, a changed file, the admin server. Those who ask while
 * one runs share the next one, since it reads the file after all of them asked.
 */
export class Reloads {
  readonly #reload: () => Promise<Reloaded>
  readonly #wall: () => number
  #running: Promise<unknown> | undefined
  #next: Promise<Reloaded> | undefined
  #last: (Reloaded & { readonly at: number }) | undefined
  #succeeded = 0
  #failed = 0

  /**
   * @param reload does it; what it throws is a reload that failed
   * @param wall wall clock milliseconds
   */
  constructor(reload: () => Promise<Reloaded>, wall: () => number = Date.now) {
    this.#reload = reload
    this.#wall = wall
  }

  /** How the last one ended and when, wall clock milliseconds; undefined before the first. */
  get last(): (Reloaded & { readonly at: number }) | undefined {
    return this.#last
  }
  get succeeded(): number {
    return this.#succeeded
  }
  get failed(): number {
    return this.#failed
  }

  ask(): Promise<Reloaded> {
    this.#next ??= this.#soon()
    return this.#next
  }

  async #soon(): Promise<Reloaded> {
    await this.#running
    // From here on a change of the file may come too late for this one.
    // A promise that is kept here and rejects would fail every later one as well.
    const mine = this.#reload().catch((error) => ({ ok: false as const, error: mistakeOf(error) }))
    this.#running = mine
    this.#next = undefined
    const how = await mine
    this.#last = { ...how, at: this.#wall() }
    if (how.ok) this.#succeeded += 1
    else this.#failed += 1
    return how
  }
}
