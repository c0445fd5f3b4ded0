import type { SessionBook } from '../sessions/book.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { type GroupKeys, sessionKeys } from './keys.ts'
import type { Link, LinkEnv } from './link.ts'
import { shareSessions } from './session-scripts.ts'
import { packSessions, readSessions } from './session-wire.ts'

/** So many sessions are told, and heard, in one exchange at most. */
const atOnce = 500
/** So many exchanges are made in one round at most while there is more to tell or to hear. */
const exchanges = 20
/** The same when this instance ends, and somebody waits for that. */
const lastExchanges = 4

/** What it takes to share sessions. */
export interface SessionShareEnv extends Pick<LinkEnv, 'now'> {
  readonly link: Pick<Link, 'up' | 'run'>
  readonly tally: { failed(error: unknown): void }
  readonly keys: GroupKeys
}

/**
 * The sessions that a group learns, shared with other instances: tells what has been bound here, and takes in what others
 * have bound since it asked last; a new instance hears everything, piece by piece. Redis forgets what nobody uses after the
 * time of the table. Where Redis is away every instance goes by what it knows, and tells it later.
 */
export class SharedSessions {
  /** How many sessions were told and heard, ever. */
  told = 0
  heard = 0
  readonly #env: SessionShareEnv
  #table: Sessions | undefined
  #epoch = ''
  #since = '0'
  #running: Promise<void> | undefined
  #most = exchanges

  constructor(env: SessionShareEnv) {
    this.#env = env
  }

  /**
   * An interval has passed. Never rejects.
   * @param book as the configuration has it now
   */
  round(book: SessionBook): Promise<void> {
    this.#running ??= this.#round(book).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Tells what there is, for the last time. Never rejects. */
  async end(book: SessionBook): Promise<void> {
    this.#most = 0
    await this.#running
    this.#most = lastExchanges
    await this.round(book)
  }

  async #round({ table, rules }: SessionBook): Promise<void> {
    const { link, tally } = this.#env
    if (table !== this.#table) this.#begin(table)
    for (let i = 0; i < this.#most && link.up; i++) {
      const news = table.news(atOnce)
      try {
        const more = await this.#exchange(table, news, rules.timeout)
        if (!more && news.length < atOnce) return
      } catch (error) {
        table.untold(news)
        tally.failed(error)
        return
      }
    }
  }

  /** All of it is to be told, and to be heard. */
  #begin(table: Sessions): void {
    this.#table = table
    this.#epoch = ''
    this.#since = '0'
    table.tellAll()
  }

  /** @returns whether there is more to hear */
  async #exchange(table: Sessions, news: ReturnType<Sessions['news']>, timeout: number): Promise<boolean> {
    const { link, now, keys } = this.#env
    const from = now()
    const answer = await link.run(shareSessions, sessionKeys(keys, table.name), [
      this.#epoch,
      this.#since,
      timeout,
      table.slots,
      atOnce,
      news.length,
      packSessions(news, from),
    ])
    const to = now()
    const { epoch, since, more, records, lost } = readSessions(answer, news, (from + to) / 2)
    this.told += news.length
    // What was shared is gone: everybody tells what there is.
    if (epoch !== this.#epoch && this.#epoch !== '') table.tellAll()
    this.#epoch = epoch
    this.#since = since
    this.heard += records.length
    if (records.length > 0) table.merge(records.filter(({ usedAt }) => usedAt + timeout > to))
    for (const { told, newest } of lost) table.yieldTo(newest, told.boundAt)
    return more
  }
}
