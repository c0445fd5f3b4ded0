import { Cluster, type Redis } from 'ioredis'
import { type CallLimits, Calls } from './calls.ts'
import { LinkLines } from './link-lines.ts'
import type { FleetOptions } from './options.ts'
import { redisAddresses, serversName } from './redis-address.ts'
import { runScript, standing, trial } from './redis-check.ts'
import { type Client, lastingClient, type Overrides, oneClient } from './redis-client.ts'
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

/** One client, from the attempt to connect to its end. */
interface Session {
  readonly client: Client
  readonly calls: Calls
  /** Runs until it is up. */
  readonly deadline: NodeJS.Timeout
  /** What the client complained of last. */
  failure: unknown
  /** Whether it is being looked into whether everything is refused. */
  doubted: boolean
  /** When the nodes of a cluster were asked for last. */
  mappedAt: number
}

/**
 * The connection to Redis, which comes and goes: it connects by itself for as long as it takes, never keeps a command for
 * later, and says one line when Redis is reached or lost.
 */
export class Link {
  readonly servers: readonly string[]
  readonly #options: FleetOptions
  readonly #env: LinkEnv
  readonly #name: string
  readonly #lines: LinkLines
  readonly #limits: CallLimits
  readonly #hearers = new Set<(up: boolean) => void>()
  #session: Session | undefined
  #retry: NodeJS.Timeout | undefined
  #state: 'new' | 'running' | 'stopped' = 'new'
  #up = false
  #upAt = 0
  #since: number
  #error: string | undefined
  #losses = 0
  /** Attempts since a connection was good: they lengthen the pause. */
  #tries = 0
  constructor(options: FleetOptions, env: LinkEnv) {
    this.#options = options
    this.#env = env
    const addresses = redisAddresses(options)
    this.servers = addresses.map((address) => address.name)
    this.#name = serversName(options, addresses)
    this.#lines = new LinkLines(this.#name, env)
    this.#limits = { timeout: options.timeout, silence: Math.max(3 * options.timeout, 500) }
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
    if (this.#up) await session.calls.idle()
    await this.#end(session, left)
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
      throw new LinkError(`${this.#name} cannot be reached (${this.#error ?? 'not yet tried'})`)
    }
    try {
      const answer = await session.calls.run(() => runScript(session.client.redis, script, keys, args))
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
    const within = Math.max(1000, 5 * this.#options.timeout)
    const client = oneClient(this.#options, this.#tries, within, 2 * this.#limits.silence)
    const lose = (why: string) => this.#lose(session, why)
    const deadline = setTimeout(() => setImmediate(lose, `no answer within ${within} ms`), within)
    deadline.unref()
    const calls = new Calls(this.#limits, this.#env.now, () =>
      lose(`no answer for ${this.#limits.silence} ms`),
    )
    const session: Session = { client, calls, deadline, failure: undefined, doubted: false, mappedAt: 0 }
    this.#session = session
    const complain = (error: unknown) => {
      session.failure = error
    }
    client.redis.on('error', complain)
    client.redis.on('node error', complain)
    client.redis.once('end', () => this.#failed(session, new Error('Connection is closed.')))
    void this.#open(session)
  }

  async #open(session: Session): Promise<void> {
    const { redis } = session.client
    try {
      await redis.connect()
      const { fault, advice } = await standing(redis, this.#options.prefix, this.#options.timeout)
      if (fault !== undefined) return this.#lose(session, fault, true)
      this.#reached(session, advice)
    } catch (error) {
      this.#failed(session, error)
    }
  }

  /** What the client complained of says more than how it ended. */
  #failed(session: Session, error: unknown): void {
    const refused = refusalOf(error) ?? refusalOf(session.failure)
    this.#lose(session, refused?.text ?? failureText(session.failure ?? error), refused !== undefined)
  }

  #reached(session: Session, advice: string | undefined): void {
    if (this.#session !== session || this.#state === 'stopped') return
    clearTimeout(session.deadline)
    session.failure = undefined
    this.#upAt = this.#env.now()
    this.#error = undefined
    this.#lines.reached(advice)
    this.#change(true)
  }

  /** @param refused it was reached, and cannot be used */
  #lose(session: Session, why: string, refused = false): void {
    if (this.#session !== session || this.#state === 'stopped') return
    void this.#end(session, why)
    this.#error = why
    if (this.#up) {
      this.#losses += 1
      if (this.#env.now() - this.#upAt >= goodAfter) this.#tries = 0
    }
    this.#lines.lost(why, refused)
    const longest = Math.min(longestPause, firstPause * 2 ** Math.min(this.#tries++, 10))
    // All instances lose Redis at once, and must not come back at once.
    this.#retry = setTimeout(() => this.#attempt(), 10 + this.#env.random() * (longest - 10))
    this.#retry.unref()
    this.#change(false)
  }

  async #end(session: Session, why: string): Promise<void> {
    this.#session = undefined
    clearTimeout(session.deadline)
    session.calls.end(why)
    session.client.redis.disconnect()
    await session.client.sockets.close()
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
    const refusal = refusalOf(error)
    if (live && session.client.redis instanceof Cluster) this.#map(session, session.client.redis)
    if (refusal !== undefined) {
      if (live && isLasting(refusal)) void this.#doubt(session, refusal)
      else if (live) this.#troubled('refuses some of what is shared', refusal.text)
      return new LinkError(refusal.text)
    }
    if (error instanceof LinkError) return error
    const text = failureText(error)
    // A node of a cluster is away. Where there is one server the session has ended, or is about to.
    if (live && session.client.redis instanceof Cluster) this.#troubled('is partly away', text)
    return new LinkError(text)
  }

  /** Looks whether everything is refused, or only the one thing: a user may lack one right of many. */
  async #doubt(session: Session, refusal: Refusal): Promise<void> {
    if (session.doubted) return
    session.doubted = true
    try {
      await session.calls.run(() => trial(session.client.redis, this.#options.prefix))
      if (this.#session === session) {
        this.#troubled('refuses some of what is shared', refusal.text)
      }
    } catch (error) {
      const found = refusalOf(error)
      if (found !== undefined) this.#lose(session, found.text, true)
    }
    session.doubted = false
  }

  #troubled(what: string, why: string): void {
    this.#error = why
    this.#lines.troubled(`${what} (${why})`)
  }

  /** A slot may have gone to another node, of which a node that is dead or stuck tells nothing. */
  #map(session: Session, cluster: Cluster): void {
    const now = this.#env.now()
    if (now - session.mappedAt < 1000) return
    session.mappedAt = now
    cluster.refreshSlotsCache(() => {})
  }
}
