import type { Cluster, Redis } from 'ioredis'
import { LinkLines, lack } from './link-lines.ts'
import { type Cause, Session } from './link-session.ts'
import type { FleetOptions } from './options.ts'
import { redisAddresses, serversName } from './redis-address.ts'
import type { Standing } from './redis-check.ts'
import { lastingClient, type Overrides } from './redis-client.ts'
import { failureText, isLasting, LinkError, type Refusal, refusalOf } from './redis-error.ts'
import type { Script } from './script.ts'

export { LinkError } from './redis-error.ts'

export interface LinkEnv {
  /** Monotonic milliseconds. */
  now(): number
  /** Milliseconds of the wall clock. */
  wall(): number
  /** 0 to 1. */
  random(): number
  /** A line for people. */
  say(level: 'notice' | 'warn' | 'error', text: string): void
}

/** The longest time between two attempts to connect, and what it begins with, milliseconds. */
const longestPause = 1000
const firstPause = 100
/** A connection that lasted for so long was a good one: the next attempt comes soon. */
const goodAfter = 5000
const left = 'the fleet is being left'

/**
 * The connection to Redis, which comes and goes: it connects by itself for as long as it takes, never keeps a command for
 * later, and says one line when Redis is reached or lost.
 */
export class Link {
  readonly servers: readonly string[]
  readonly #options: FleetOptions
  readonly #env: LinkEnv
  /** What the servers are called in a line for people. */
  readonly name: string
  readonly #lines: LinkLines
  readonly #hearers = new Set<(up: boolean) => void>()
  #session: Session | undefined
  /** Where it is being looked into whether everything is refused. */
  #doubted: Session | undefined
  #retry: NodeJS.Timeout | undefined
  #state: 'new' | 'running' | 'stopped' = 'new'
  #up = false
  #upAt = 0
  #since: number
  #error: string | undefined
  #refused = false
  #losses = 0
  /** Attempts since a connection was good: they lengthen the pause. */
  #tries = 0

  constructor(options: FleetOptions, env: LinkEnv) {
    this.#options = options
    this.#env = env
    const addresses = redisAddresses(options)
    this.servers = addresses.map((address) => address.name)
    this.name = serversName(options, addresses)
    this.#lines = new LinkLines(this.name, env)
    this.require(options.required)
    this.#since = env.wall()
  }

  get up(): boolean {
    return this.#up
  }

  /** Wall clock milliseconds of the last change of `up`. */
  get since(): number {
    return this.#since
  }

  /** What went wrong last, for people; undefined: nothing since Redis was reached. */
  get error(): string | undefined {
    return this.#error
  }

  /** Whether what is there was reached at the last attempt, and could not be used. */
  get refused(): boolean {
    return this.#refused
  }

  /** @param required whether the program is not ready once Redis has been away for `ttl` */
  require(required: boolean): void {
    this.#lines.readyFor = required ? this.#options.ttl : undefined
  }

  /** How often Redis was lost. */
  get losses(): number {
    return this.#losses
  }

  /** Begins to connect. */
  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'running'
    this.#attempt()
  }

  /** Waits for what is being answered, and ends everything. Resolves within the time-out and a little, whatever Redis does. */
  async stop(): Promise<void> {
    const session = this.#session
    this.#state = 'stopped'
    clearTimeout(this.#retry)
    if (session === undefined) return
    if (this.#up) await session.idle()
    await session.end(left)
    this.#session = undefined
    this.#change(false)
  }

  /** Tells of each change of `up`. @returns stops that */
  listen(hear: (up: boolean) => void): () => void {
    this.#hearers.add(hear)
    return () => this.#hearers.delete(hear)
  }

  /**
   * Runs a script. Bulk strings of the answer are Buffers. Rejects with a LinkError: at once while Redis is not reached,
   * and after the time-out at the latest; the script may then have run all the same.
   */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    const session = this.#session
    if (this.#state === 'stopped') throw new LinkError(left)
    if (!this.#up || session === undefined) {
      throw new LinkError(`${this.name} ${lack(this.#refused, this.#error ?? 'not yet tried')}`)
    }
    try {
      const answer = await session.run(script, keys, args)
      if (this.#lines.calmed()) this.#error = undefined
      return answer
    } catch (error) {
      throw this.#judged(session, error)
    }
  }

  /**
   * A further client for the same servers, which is not connected yet, connects again by itself, and is closed by whoever
   * asked for it.
   */
  connect(overrides: Overrides = {}): Redis | Cluster {
    return lastingClient(this.#options, overrides)
  }

  #attempt(): void {
    const session = new Session(this.#options, this.#tries, this.#env.now, (cause) =>
      this.#lose(session, cause),
    )
    this.#session = session
    void this.#open(session)
  }

  async #open(session: Session): Promise<void> {
    let found: Standing
    try {
      found = await session.open()
    } catch (error) {
      return this.#lose(session, session.cause(error))
    }
    if (found.fault === undefined) this.#reached(session, found.advice)
    else this.#lose(session, { text: found.fault, refused: true })
  }

  #reached(session: Session, advice: string | undefined): void {
    if (this.#session !== session || this.#state === 'stopped') return
    this.#upAt = this.#env.now()
    this.#error = undefined
    this.#refused = false
    this.#lines.reached(advice)
    this.#change(true)
  }

  #lose(session: Session, { text, refused }: Cause): void {
    if (this.#session !== session || this.#state === 'stopped') return
    this.#session = undefined
    void session.end(text)
    this.#error = text
    this.#refused = refused
    if (this.#up) {
      this.#losses += 1
      if (this.#env.now() - this.#upAt >= goodAfter) this.#tries = 0
    }
    this.#lines.lost(text, refused)
    const longest = Math.min(longestPause, firstPause * 2 ** Math.min(this.#tries++, 10))
    // All instances lose Redis at once, and must not come back at once.
    this.#retry = setTimeout(() => this.#attempt(), 10 + this.#env.random() * (longest - 10))
    this.#retry.unref()
    this.#change(false)
  }

  #change(up: boolean): void {
    if (this.#up === up) return
    this.#up = up
    this.#since = this.#env.wall()
    for (const hear of [...this.#hearers]) hear(up)
  }

  /** What to make of a call that failed. */
  #judged(session: Session, error: unknown): LinkError {
    const live = this.#session === session
    if (live) session.map()
    const refusal = refusalOf(error)
    if (refusal !== undefined) {
      if (live && isLasting(refusal)) void this.#doubt(session, refusal)
      else if (live) this.#troubled('refuses some of what is shared', refusal.text)
      return new LinkError(refusal.text)
    }
    if (error instanceof LinkError) return error
    const text = failureText(error)
    // A node of a cluster is away. Where there is one server the session has ended, or is about to.
    if (live && session.clustered) this.#troubled('is partly away', text)
    return new LinkError(text)
  }

  /** Looks whether everything is refused, or only the one thing: a user may lack one right of many. */
  async #doubt(session: Session, refusal: Refusal): Promise<void> {
    if (this.#doubted === session) return
    this.#doubted = session
    try {
      await session.try()
      if (this.#session === session) this.#troubled('refuses some of what is shared', refusal.text)
    } catch (error) {
      if (refusalOf(error) !== undefined) this.#lose(session, session.cause(error))
    }
    if (this.#doubted === session) this.#doubted = undefined
  }

  #troubled(what: string, why: string): void {
    this.#error = why
    this.#lines.troubled(`${what} (${why})`)
  }
}
