import { bytes } from '../bytes.ts'
import type { Call } from '../call.ts'
import { type SessionsFullEvent, sessionsFullChannel } from '../channels.ts'
import type { Attempt } from '../outcome.ts'
import type { SessionKey } from './entries.ts'
import { type Sessions, sessionKey } from './sessions.ts'

/** What `sticky learn` says. */
export interface SessionRules {
  /** The first one that is not empty is the id of a session that begins; read anew of each attempt. */
  readonly create: readonly ((call: Call) => string)[]
  /** The same of one that goes on; read once a request. */
  readonly lookup: readonly ((call: Call) => string)[]
  /** How long a session lasts that nobody uses, milliseconds. */
  readonly timeout: number
  /** When an attempt is learnt from: at its end, or as soon as the header has come or the connection is made. */
  readonly at: 'end' | 'header' | 'connect'
  /** Whether use makes a session last longer. */
  readonly refresh: boolean
}

/** The sessions of a group: seen in what passes, and which peer each of them is bound to. */
export class SessionBook {
  /** Label of the group, for people. */
  readonly group: string
  readonly rules: SessionRules
  readonly #table: Sessions
  /** The group's book after a reload. */
  #successor: SessionBook | undefined

  constructor(group: string, rules: SessionRules, table: Sessions) {
    this.group = group
    this.rules = rules
    this.#table = table
  }

  /** Where its sessions are now: what has begun before a reload may end long after it. */
  get table(): Sessions {
    let book: SessionBook = this
    while (book.#successor !== undefined) book = book.#successor
    return book.#table
  }

  /** From now on its sessions are in the table of another one. */
  follow(successor: SessionBook): void {
    this.#successor = successor
  }

  /** The key of the session that a request says it is of; undefined: of none. */
  keyOf(call: Call): SessionKey | undefined {
    const id = firstOf(this.rules.lookup, call)
    return id === '' ? undefined : sessionKey(id)
  }

  /** @returns id of the peer that a session is bound to (latin1); empty: it is not known, or has run out */
  find(key: SessionKey, now: number): string {
    return this.table.find(key, now, this.rules.timeout)
  }

  /** The connection to an attempt's peer has been made. */
  connected(attempt: Attempt, call: Call | undefined, now: number): void {
    if (this.rules.at === 'connect') this.#learn(attempt, call, now)
  }

  /** The header of its answer has come, and goes to the client. */
  measured(attempt: Attempt, call: Call | undefined, now: number): void {
    if (this.rules.at === 'header' && !attempt.failed && !attempt.next) this.#learn(attempt, call, now)
  }

  /** It has ended. What came of one whose client left counts as far as there was an answer. */
  ended(attempt: Attempt, call: Call | undefined, now: number): void {
    const { ending, accepted, failed, next } = attempt
    if (failed || next) return
    // Where the answer gave way to a page of our own its header was not passed on; datagrams have no connection.
    if (this.rules.at !== 'end' && accepted) return
    const well = ending === 'ok' || ending === 'http' || (ending === 'aborted' && accepted)
    if (well) this.#learn(attempt, call, now)
  }

  #learn({ peer, session, boundTo }: Attempt, call: Call | undefined, now: number): void {
    if (peer === undefined || call === undefined) return
    const { create, timeout, refresh } = this.rules
    const id = firstOf(create, call)
    const key = id === '' ? session : sessionKey(id)
    if (key === undefined) return
    const sid = bytes(peer.options.sid)
    const from = session !== undefined && sameKey(key, session) ? boundTo : undefined
    const dropped = this.table.bind(key, sid, now, { timeout, create: id !== '', refresh, from })
    if (dropped === 0) return
    sessionsFullChannel.publish({
      group: this.group,
      zone: this.table.name,
      dropped,
    } satisfies SessionsFullEvent)
  }
}

function sameKey(one: SessionKey, other: SessionKey): boolean {
  return one === other || one.every((word, i) => word === other[i])
}

function firstOf(texts: readonly ((call: Call) => string)[], call: Call): string {
  for (const read of texts) {
    const text = read(call)
    if (text !== '') return text
  }
  return ''
}
