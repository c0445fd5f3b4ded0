import { mistakeOf } from './mistake.ts'

/** Time for refreshes: something to wait with. */
export interface RefreshEnv {
  /** Milliseconds. */
  wait(ms: number): Promise<void>
  /** Something that a person should read. */
  say(text: string): void
}

/** Changes that come together are put in force together. Milliseconds. */
const apartMs = 50
/** After one that failed, the next comes so much later, twice as long each time. */
const firstPauseMs = 250
const longestPauseMs = 30_000

/**
 * Brings the groups in line with who belongs to them, whenever somebody asks for it. Those who ask while one waits share
 * it, and one that fails is tried again until it succeeds.
 */
export class Refreshes {
  readonly #refresh: () => Promise<void>
  readonly #env: RefreshEnv
  #waiting: PromiseWithResolvers<void> | undefined
  #working = false
  #stopped = false

  /** @param refresh does it; to be done once the program is ready, and between reloads */
  constructor(refresh: () => Promise<void>, env: RefreshEnv) {
    this.#refresh = refresh
    this.#env = env
  }

  /**
   * @returns resolves when one is in force that has begun after this call
   * @throws Error why it is not in force; it is tried again all the same
   */
  ask(): Promise<void> {
    this.#waiting ??= waiting()
    const { promise } = this.#waiting
    if (this.#stopped) this.stop()
    else if (!this.#working) void this.#work()
    return promise
  }

  /** Refreshes no more. Those who wait are told so. */
  stop(): void {
    this.#stopped = true
    this.#settle()?.reject(new Error('not now: the program ends'))
  }

  async #work(): Promise<void> {
    this.#working = true
    let pause = firstPauseMs
    // What else changes at this very moment comes along.
    await null
    while (this.#waiting !== undefined && !this.#stopped) {
      const asked = this.#settle()
      try {
        await this.#refresh()
        asked?.resolve()
        pause = firstPauseMs
        await this.#env.wait(apartMs)
      } catch (error) {
        asked?.reject(error)
        this.#env.say(`peers of groups were not changed and will be tried again: ${mistakeOf(error)}`)
        await this.#env.wait(pause)
        pause = Math.min(longestPauseMs, 2 * pause)
        this.#waiting ??= waiting()
      }
    }
    this.#working = false
  }

  #settle(): PromiseWithResolvers<void> | undefined {
    const asked = this.#waiting
    this.#waiting = undefined
    return asked
  }
}

/** Not everybody who asks waits for what comes of it. */
function waiting(): PromiseWithResolvers<void> {
  const asked = Promise.withResolvers<void>()
  asked.promise.catch(() => {})
  return asked
}
