import { isDeepStrictEqual } from 'node:util'
import { firstPauseMs, goodForMs, pauseMs } from './holding.ts'
import type { Lookup } from './lookup.ts'
import { askable } from './message.ts'
import type { Resolver } from './resolver.ts'

/** What a name comes to at the moment. */
export type Answer =
  | {
      readonly kind: 'found'
      /** At least one IP address. The same object for as long as they are the same. */
      readonly hosts: readonly string[]
    }
  | {
      readonly kind: 'failed'
      /** In nginx's words, with its number before them: `3: Host not found`. */
      readonly why: string
    }

export interface AnswersEnv {
  /** Monotonic milliseconds. */
  now(): number
  /** Uniform in [0, 1). */
  random(): number
  /**
   * Runs something once, after so many milliseconds. Must keep no process alive.
   * @returns keeps it from running
   */
  after(ms: number, run: () => void): () => void
}

interface Entry {
  readonly host: string
  /** The last one; undefined as long as there was none. */
  answer: Answer | undefined
  /** How long that holds, and when it was asked for last; monotonic milliseconds. */
  until: number
  usedAt: number
  failures: number
  looking: boolean
  /** What those who ask now wait for; undefined: nothing, they have the last answer. */
  waiting: Promise<Answer> | undefined
}

/** Names that are remembered at most, and those that are looked up at once. */
export const mostNames = 1024
export const mostLooking = 128
/** So many addresses of a name are used at most. */
export const mostHosts = 64
/** How long is waited for news of a name whose last addresses are known, milliseconds. */
const patienceMs = 1000

const notFound: Answer = { kind: 'failed', why: '3: Host not found' }
const tooMany: Answer = { kind: 'failed', why: 'too many names are being looked up' }

/**
 * Addresses of names that requests bring along, looked up when the first one asks and remembered for as long as they are
 * good. Whatever clients make of it, it stays small: there are so many names and no more, the longest unused goes first,
 * and so many look-ups at a time.
 */
export class Answers {
  readonly #resolver: Pick<Resolver, 'spec' | 'lookUp'>
  readonly #env: AnswersEnv
  readonly #entries = new Map<string, Entry>()
  #looking = 0

  constructor(resolver: Pick<Resolver, 'spec' | 'lookUp'>, env: AnswersEnv) {
    this.#resolver = resolver
    this.#env = env
  }

  /** How many names are remembered. */
  get size(): number {
    return this.#entries.size
  }

  /**
   * What a name comes to. One that is no longer good is looked up again; until that is known, a second at most, it has to
   * be waited for, and where it fails the last addresses stand in, unless the name is there no more.
   * @param name lower case
   * @returns a promise that never rejects where it has to be waited for
   */
  of(name: string): Answer | Promise<Answer> {
    const now = this.#env.now()
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      const host = name.replace(/\.$/, '')
      if (!askable(host)) return notFound
      if (this.#looking >= mostLooking) return tooMany
      entry = this.#enter(name, host)
    }
    entry.usedAt = now
    if (entry.answer !== undefined && now < entry.until) return entry.answer
    if (!entry.looking) {
      if (this.#looking >= mostLooking) return entry.answer?.kind === 'found' ? entry.answer : tooMany
      this.#look(entry)
    }
    // There is something to wait for, or there was an answer before.
    return entry.waiting ?? entry.answer!
  }

  #enter(name: string, host: string): Entry {
    if (this.#entries.size >= mostNames) this.#forgetOne()
    const entry: Entry = {
      host,
      answer: undefined,
      until: 0,
      usedAt: 0,
      failures: 0,
      looking: false,
      waiting: undefined,
    }
    this.#entries.set(name, entry)
    return entry
  }

  #forgetOne(): void {
    let oldest: string | undefined
    let usedAt = Number.POSITIVE_INFINITY
    for (const [name, entry] of this.#entries) {
      if (entry.looking || entry.usedAt >= usedAt) continue
      oldest = name
      usedAt = entry.usedAt
    }
    if (oldest !== undefined) this.#entries.delete(oldest)
  }

  #look(entry: Entry): void {
    const old = entry.answer
    this.#looking += 1
    entry.looking = true
    const news = this.#ask(entry)
    if (old?.kind !== 'found') {
      entry.waiting = news
      return
    }
    const { promise: enough, resolve } = Promise.withResolvers<Answer>()
    const cancel = this.#env.after(patienceMs, () => {
      entry.waiting = undefined
      resolve(old)
    })
    void news.then(cancel)
    entry.waiting = Promise.race([news, enough])
  }

  async #ask(entry: Entry): Promise<Answer> {
    // Its last good addresses stand in as a whole, so that parts of them need not be remembered.
    const how = await this.#resolver
      .lookUp({ host: entry.host, service: undefined }, new Map())
      .catch((error: unknown): Lookup => ({ kind: 'failed', error: String(error) }))
    const answer = this.#answer(entry, how)
    entry.answer = answer
    entry.looking = false
    entry.waiting = undefined
    this.#looking -= 1
    return answer
  }

  /** Takes what a look-up came to, and says for how long that holds. */
  #answer(entry: Entry, how: Lookup): Answer {
    const { spec } = this.#resolver
    const old = entry.answer
    const now = this.#env.now()
    if (how.kind === 'found') {
      entry.failures = 0
      entry.until = now + goodForMs(how.ttl, spec)
      const hosts = how.found.slice(0, mostHosts).map(({ host }) => host)
      return old?.kind === 'found' && isDeepStrictEqual(old.hosts, hosts) ? old : { kind: 'found', hosts }
    }
    if (old?.kind === 'found' && how.kind !== 'absent') {
      entry.until = now + pauseMs(entry.failures, spec, this.#env.random())
      entry.failures += 1
      return old
    }
    // Long enough that nobody can have a name server asked without end, and no longer: it may be there soon.
    entry.until = now + firstPauseMs
    return how.kind === 'failed' ? { kind: 'failed', why: wordsOf(how.error) } : notFound
  }
}

/** What a server answers, or that it does not, in nginx's words. */
const words: readonly (readonly [beginning: string, words: string])[] = [
  ['timed out', '110: Operation timed out'],
  ['FORMERR', '1: Format error'],
  ['SERVFAIL', '2: Server failure'],
  ['NOTIMP', '4: Unimplemented'],
  ['REFUSED', '5: Operation refused'],
]

function wordsOf(error: string): string {
  return words.find(([beginning]) => error.startsWith(beginning))?.[1] ?? error
}
