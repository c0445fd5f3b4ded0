/** How sessions are bound to peers: exactly one of the three keys stands. `learn` alone may stand in `stream` beside `route`. */
export type StickyLine =
  | { readonly cookie: StickyCookie }
  | { readonly route: readonly string[] }
  | { readonly learn: StickyLearn }

/** A cookie with the id of the peer, written on each response. */
export interface StickyCookie {
  readonly name: string
  /** In the order written: `httponly`, `domain=$x`, `expires=1h`, … Values may have variables. */
  readonly attributes?: readonly string[]
}

/** Ids of sessions seen in what passes, kept in a table of their own. */
export interface StickyLearn {
  /** `NAME:SIZE` in nginx syntax; the size bounds the table. No other group has a table of that name. */
  readonly zone: { readonly name: string; readonly size: string }
  /** Texts with variables; the first one that is not empty is the id of a new session. */
  readonly create: readonly string[]
  /** The same of a session that goes on. */
  readonly lookup: readonly string[]
  /** `1h` where absent. */
  readonly timeout?: string
  /** Learns as soon as the header has come (in `http`). */
  readonly header?: true
  /** Learns as soon as the connection is made (in `stream`). */
  readonly connect?: true
  readonly norefresh?: true
}
