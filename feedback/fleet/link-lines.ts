/** While nothing changes, a line at most so often, milliseconds. */
const lineEvery = 60_000
/** For so long nothing must be refused before it is said that nothing is, milliseconds. */
const calmAfter = 10_000

export interface LinesEnv {
  now(): number
  say(level: 'notice' | 'warn' | 'error', text: string): void
}

/**
 * That there is no Redis to share through, in the same words wherever it is told.
 *
 * @param refused it was reached, and cannot be used
 */
export function lack(refused: boolean, why: string): string {
  return `cannot be ${refused ? 'used' : 'reached'} (${why})`
}

/** What people are told of the connection to Redis: one line for each change, and few while nothing changes. */
export class LinkLines {
  readonly #name: string
  readonly #env: LinesEnv
  /** For so long without Redis the program counts as ready, milliseconds; undefined: for good. */
  readyFor: number | undefined
  /** Whether Redis was ever reached. */
  #known = false
  #down: { readonly why: string; readonly at: number } | undefined
  #trouble: { at: number; readonly saidAt: number } | undefined
  #advice: string | undefined

  /** @param name what the servers are called */
  constructor(name: string, env: LinesEnv) {
    this.#name = name
    this.#env = env
  }

  /** @param advice what the operator of Redis should know; said anew only where it is new */
  reached(advice: string | undefined): void {
    this.#say('notice', this.#known ? `${this.#name} answers again` : `sharing through ${this.#name}`)
    this.#known = true
    this.#down = undefined
    this.#trouble = undefined
    if (advice !== undefined && advice !== this.#advice) this.#say('warn', `${this.#name} ${advice}`)
    this.#advice = advice
  }

  /**
   * Redis was lost, or an attempt to reach it failed.
   *
   * @param refused it was reached, and cannot be used
   */
  lost(why: string, refused: boolean): void {
    const now = this.#env.now()
    if (this.#down !== undefined && (this.#down.why === why || now - this.#down.at < lineEvery)) return
    this.#down = { why, at: now }
    const ready = this.#known ? `, not ready after ${this.readyFor} ms` : ', not ready'
    const end = this.readyFor === undefined ? '' : ready
    this.#say('warn', `${this.#name} ${lack(refused, why)}; balancing on this instance's view only${end}`)
  }

  /** Some things fail while others do not. */
  troubled(what: string): void {
    const now = this.#env.now()
    const trouble = this.#trouble
    if (trouble !== undefined && now - trouble.saidAt < lineEvery) {
      trouble.at = now
      return
    }
    this.#trouble = { at: now, saidAt: now }
    this.#say('warn', `${this.#name} ${what}`)
  }

  /**
   * Something went well.
   *
   * @returns whether what went wrong before is over
   */
  calmed(): boolean {
    if (this.#trouble === undefined || this.#env.now() - this.#trouble.at < calmAfter) return false
    this.#trouble = undefined
    this.#say('notice', `${this.#name} takes everything again`)
    return true
  }

  #say(level: 'notice' | 'warn', text: string): void {
    this.#env.say(level, `fleet: ${text}`)
  }
}
