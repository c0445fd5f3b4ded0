import { isDeepStrictEqual } from 'node:util'
import type { Found } from './found.ts'
import { goodForMs, pauseMs } from './holding.ts'
import type { Lookup, Memo } from './lookup.ts'
import type { Name, Resolver } from './resolver.ts'

/** Time, dice, and a voice. */
export interface FollowerEnv {
  /** Monotonic milliseconds. */
  now(): number
  /** Uniform in [0, 1). */
  random(): number
  /**
   * Runs something once, after so many milliseconds. Must keep no process alive.
   * @returns keeps it from running
   */
  after(ms: number, run: () => void): () => void
  say(level: 'notice' | 'warn', text: string): void
}

/** What is known of a name, for people. */
export interface NameFacts {
  readonly host: string
  readonly service: string | undefined
  /** Addresses, of services with their ports. */
  readonly addresses: readonly string[]
  /** Milliseconds since its addresses were last heard; undefined: never. */
  readonly ageMs: number | undefined
  /** Milliseconds until it is looked up again; 0 while that is under way. */
  readonly nextMs: number
  /** Why the last look-up did not find it; undefined where it did. */
  readonly error: string | undefined
}

/**
 * Keeps the addresses of one name up to date. They are looked up again when the answer is no longer good; where that
 * fails the last good ones stay, and only a name that is no more loses them.
 */
export class Follower {
  readonly name: Name
  /** Settles with the first look-up, however it ends. */
  readonly first: Promise<void>
  readonly #resolver: Resolver
  readonly #env: FollowerEnv
  readonly #changed: () => void
  readonly #memo: Memo = new Map()
  #found: readonly Found[] = []
  #heardAt: number | undefined
  #nextAt = 0
  #error: string | undefined
  #failures = 0
  #cancel: (() => void) | undefined
  #stopped = false

  /** @param changed told when its addresses are others than before */
  constructor(resolver: Resolver, name: Name, env: FollowerEnv, changed: () => void) {
    this.#resolver = resolver
    this.name = name
    this.#env = env
    this.#changed = changed
    this.first = this.#look()
  }

  /** Its addresses now. */
  get found(): readonly Found[] {
    return this.#found
  }

  get facts(): NameFacts {
    const now = this.#env.now()
    return {
      ...this.name,
      addresses: this.#found.map(textOf),
      ageMs: this.#heardAt === undefined ? undefined : now - this.#heardAt,
      nextMs: Math.max(0, this.#nextAt - now),
      error: this.#error,
    }
  }

  /** Looks it up no more. */
  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  async #look(): Promise<void> {
    const how = await this.#resolver.lookUp(this.name, this.#memo).catch(broken)
    if (this.#stopped) return
    const before = this.#found
    if (how.kind === 'found') this.#found = how.found
    if (how.kind === 'absent') this.#found = []
    this.#tell(how)
    const { spec } = this.#resolver
    const pause =
      how.kind === 'found' ? goodForMs(how.ttl, spec) : pauseMs(this.#failures++, spec, this.#env.random())
    this.#nextAt = this.#env.now() + pause
    this.#cancel = this.#env.after(pause, () => void this.#look())
    if (!isDeepStrictEqual(before, this.#found)) this.#changed()
  }

  /** Notes how it went, and says so where it went otherwise than the last time. */
  #tell(how: Lookup): void {
    const before = this.#error
    this.#error = troubleOf(how)
    if (how.kind === 'found') {
      this.#heardAt = this.#env.now()
      this.#failures = 0
    }
    if (this.#error === before) return
    const { host, service } = this.name
    const what = service === undefined ? host : `service "${service}" of ${host}`
    if (this.#error === undefined) this.#env.say('notice', `${what} is resolved again`)
    else this.#env.say('warn', `${what} could not be resolved (${this.#error})${this.#outcome(how)}`)
  }

  #outcome({ kind }: Lookup): string {
    if (kind === 'found') return '; the rest of it is up to date'
    if (this.#found.length > 0) return '; its last addresses stay'
    return kind === 'absent' && this.#heardAt !== undefined ? '; it has no addresses any more' : ''
  }
}

function troubleOf(how: Lookup): string | undefined {
  switch (how.kind) {
    case 'absent':
      return 'Host not found'
    case 'empty':
      return 'no addresses'
    default:
      return how.error
  }
}

/** What should not happen is a look-up that failed: the next one may be better. */
function broken(error: unknown): Lookup {
  return { kind: 'failed', error: error instanceof Error ? error.message : String(error) }
}

function textOf({ host, service }: Found): string {
  if (service === undefined) return host
  return host.includes(':') ? `[${host}]:${service.port}` : `${host}:${service.port}`
}
