import { Cluster } from 'ioredis'
import { Calls } from './calls.ts'
import type { FleetOptions } from './options.ts'
import { runScript, type Standing, standing, trial } from './redis-check.ts'
import { type Client, oneClient } from './redis-client.ts'
import { failureText, refusalOf } from './redis-error.ts'
import type { Script } from './script.ts'

/** The nodes of a cluster are asked for anew at most so often, milliseconds. */
const mapEvery = 1000

/** Why a session cannot go on. */
export interface Cause {
  /** For people. */
  readonly text: string
  /** Redis was reached, and cannot be used. */
  readonly refused: boolean
}

/** One client, from the attempt to connect to its end. */
export class Session {
  readonly #options: FleetOptions
  readonly #now: () => number
  readonly #client: Client
  readonly #calls: Calls
  readonly #deadline: NodeJS.Timeout
  /** What the client complained of last. */
  #complaint: unknown
  #opened = false
  #mappedAt = Number.NEGATIVE_INFINITY

  /**
   * @param attempt counts the sessions since a good one
   * @param lost it cannot go on; told at least once
   */
  constructor(options: FleetOptions, attempt: number, now: () => number, lost: (cause: Cause) => void) {
    this.#options = options
    this.#now = now
    const { timeout } = options
    const within = Math.max(1000, 5 * timeout)
    const silence = Math.max(3 * timeout, 500)
    const quiet = (ms: number, word: string) =>
      lost({ text: this.#hinted(`no answer ${word} ${ms} ms`), refused: false })
    this.#client = oneClient(options, attempt, within, 2 * silence)
    this.#calls = new Calls({ timeout, silence }, now, () => quiet(silence, 'for'))
    this.#deadline = setTimeout(() => setImmediate(quiet, within, 'within'), within)
    this.#deadline.unref()
    const complain = (error: unknown) => {
      this.#complaint = error
    }
    this.#client.redis.on('error', complain)
    this.#client.redis.on('node error', complain)
    this.#client.redis.once('end', () => lost(this.cause(new Error('Connection is closed.'))))
  }

  get clustered(): boolean {
    return this.#client.redis instanceof Cluster
  }

  /** Connects, and looks whether what is found will do. */
  async open(): Promise<Standing> {
    await this.#client.redis.connect()
    const found = await standing(this.#client.redis, this.#options.prefix, this.#options.timeout)
    clearTimeout(this.#deadline)
    this.#complaint = undefined
    this.#opened = true
    return found
  }

  /** What the client complained of says more than how it ended. */
  cause(error: unknown): Cause {
    const refusal = refusalOf(error) ?? refusalOf(this.#complaint)
    if (refusal !== undefined) return { text: refusal.text, refused: true }
    const text = failureText(this.#complaint ?? error)
    const { failure } = this.#client.sockets
    // A cluster's client does not tell what became of its connections.
    const vague = text === 'connection closed' && !this.#opened && failure !== undefined
    return { text: this.#hinted(vague ? failureText(failure) : text), refused: false }
  }

  /** Who listens without TLS may wait for more than a greeting. */
  #hinted(text: string): string {
    const { ungreeted } = this.#client.sockets
    if (this.#opened || !ungreeted || !text.startsWith('no answer')) return text
    return text.replace('no answer', 'no answer to TLS, which it may not speak,')
  }

  /** Rejects with what the client does, or with a LinkError. */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    return this.#calls.run(() => runScript(this.#client.redis, script, keys, args))
  }

  /** Rejects where nothing is to be had from this server any more. */
  async try(): Promise<void> {
    await this.#calls.run(() => trial(this.#client.redis, this.#options.prefix))
  }

  /** Resolves once everything that runs has ended. */
  idle(): Promise<void> {
    return this.#calls.idle()
  }

  /** A slot may have gone to another node, of which a node that is dead or stuck tells nothing. */
  map(): void {
    const now = this.#now()
    if (!(this.#client.redis instanceof Cluster) || now - this.#mappedAt < mapEvery) return
    this.#mappedAt = now
    this.#client.redis.refreshSlotsCache(() => {})
  }

  /** Ends everything at once, whatever Redis does. Never rejects. */
  async end(why: string): Promise<void> {
    clearTimeout(this.#deadline)
    this.#calls.end(why)
    this.#client.redis.disconnect()
    await this.#client.sockets.close()
  }
}
