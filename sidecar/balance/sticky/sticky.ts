import type { Call } from '../../../feedback/call.ts'
import type { Peer } from '../../../feedback/peer.ts'
import type { SessionBook } from '../../../feedback/sessions/book.ts'
import type { SessionKey } from '../../../feedback/sessions/entries.ts'
import { PeerIds } from './peer-ids.ts'
import { type CookieRules, cookieFor } from './sticky-cookie.ts'

type Read = (call: Call) => string

/** How the sessions of a group are bound to its peers. */
export interface StickyRules {
  /** The first that is not empty names the peer; none where sessions are learnt. */
  readonly hints: readonly Read[]
  /** Mixed into the names; undefined: there is none. */
  readonly secret: Read | undefined
  /** Undefined where no cookie is written. */
  readonly cookie: CookieRules | undefined
  /** Where sessions are learnt, what is known of them. */
  readonly book: SessionBook | undefined
  /** Whether a request whose peer cannot take it is refused instead of going elsewhere. */
  readonly strict: boolean
}

/** Sessions that stay with their peers, whatever the method says. */
export class Sticky {
  readonly rules: StickyRules
  readonly ids: PeerIds

  /** @param peers primaries, then backups */
  constructor(rules: StickyRules, peers: readonly Peer[]) {
    this.rules = rules
    this.ids = new PeerIds(peers)
  }
}

const nobody: readonly Peer[] = []

/** What one request's session has to do with whom it goes to. */
export class StickyAsk {
  /** As `$upstream_sticky_status`, of the last choice. */
  status: '' | 'NEW' | 'HIT' | 'MISS' = ''
  /** The session that the request says it is of, where sessions are learnt. */
  readonly session: SessionKey | undefined
  /** What names its peer; empty: nothing does. */
  hint = ''
  /** Whom it names. */
  bound: readonly Peer[] = nobody
  readonly #sticky: Sticky
  readonly #call: Call
  readonly #secret: string | undefined
  #looked = false

  /** Reads of the call, so it is to be made before anybody holds the group's state. */
  constructor(sticky: Sticky, call: Call, now: number) {
    this.#sticky = sticky
    this.#call = call
    const { hints, secret, book } = sticky.rules
    this.#secret = secret?.(call)
    this.session = book?.keyOf(call)
    for (let i = 0; i < hints.length && this.hint === ''; i++) this.hint = hints[i]!(call)
    this.#look(now)
  }

  /** Before another choice: what is learnt may have changed. Not to be called with the zone held. */
  look(now: number): void {
    if (this.#looked && this.session !== undefined) this.#look(now)
    this.#looked = true
  }

  #look(now: number): void {
    const { ids, rules } = this.#sticky
    if (this.session !== undefined) this.hint = rules.book!.find(this.session, now)
    this.bound = this.hint === '' ? nobody : ids.find(this.hint, this.#secret)
  }

  /** @param ready whether a peer that the session is bound to may be asked */
  find(ready: (peer: Peer) => boolean): Peer | undefined {
    const peer = this.bound.find(ready)
    this.status = this.hint === '' ? 'NEW' : peer === undefined ? 'MISS' : 'HIT'
    return peer
  }

  /** Whether the request may go nowhere else. */
  get refused(): boolean {
    return this.status === 'MISS' && this.#sticky.rules.strict
  }

  /** Whether the request may go to a peer alone that the group has not, or no more. */
  get lost(): boolean {
    return this.hint !== '' && this.bound.length === 0 && this.#sticky.rules.strict
  }

  /** The peer has been selected: the answer tells the client so, whatever becomes of it. */
  selected(peer: Peer): void {
    const { rules, ids } = this.#sticky
    if (rules.cookie === undefined) return
    this.#call.stickyCookie = cookieFor(ids.of(peer, this.#secret), rules.cookie, this.#call, Date.now())
  }
}
