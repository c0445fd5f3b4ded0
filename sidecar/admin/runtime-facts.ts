/*
 * What can be changed of a group while the program runs, and what has been. Such a change holds until it is taken back,
 * until the file says something else of that very thing, or until the program ends.
 */

/** What operators make of a peer, whatever its health. */
export const peerOrders = ['up', 'down', 'drain'] as const
export type PeerOrder = (typeof peerOrders)[number]

const changeKinds = ['state', 'weight', 'max_conns', 'added', 'removed'] as const
export type ChangeKind = (typeof changeKinds)[number]

/** A change that holds. */
export interface Change {
  /** Name of the group as it is in metrics and logs; see `Upstream.name`. */
  readonly upstream: string
  readonly kind: ChangeKind
  /** Name of a peer; where `whole`, the text of a `server` line, which stands for all its addresses, later ones too. */
  readonly target: string
  readonly whole: boolean
  /** What holds now. Of what was added, its line in nginx's words; undefined of what was removed. */
  readonly value: string | number | undefined
  /** What the file says instead. Undefined of what was added; of what was removed, its line. */
  readonly file: string | number | undefined
  /** Wall clock milliseconds. */
  readonly at: number
  /** Address of who asked for it. */
  readonly by: string
}

/** What is wanted of a peer: a key that is absent stays as it is, and null takes back what was changed. */
export interface PeerWish {
  readonly state?: PeerOrder | null
  readonly weight?: number | null
  readonly max_conns?: number | null
}

/** A `server` line with its parameters as they came, to be read as the file's are. */
export type NewServer = Readonly<Record<string, unknown>>

/** How a wish ended. Where it was granted, every thread serves by it. */
export type Granted =
  | {
      readonly ok: true
      /** Names of the peers that it was about; those that were removed among them. */
      readonly peers: readonly string[]
      /** Whether anything is another than before. */
      readonly changed: boolean
    }
  | { readonly ok: false; readonly status: 404 | 409 | 422 | 503; readonly error: string }

/** What is counted of changes, by group: wishes by what they were, and changes that a reload has dropped. */
export const deeds = ['state', 'weight', 'max_conns', 'add', 'remove', 'reset', 'dropped'] as const
export type Deed = (typeof deeds)[number]

/** The changes of a program, and how to make some. Wishes are granted one after the other. */
export interface RuntimeFacts {
  /** All that hold, in the order in which they were made. */
  list(): readonly Change[]
  /** What holds of one peer. @param upstream `Upstream.name` */
  of(upstream: string, peer: { readonly name: string; readonly server: string }): readonly Change[]
  /** The text of the peer's line, where that stands for several addresses; undefined: for this one alone. */
  line(upstream: string, peer: { readonly name: string; readonly server: string }): string | undefined
  /** The group's `zone`, as the file names it; undefined: it has none, and peers can neither be added nor removed. */
  zone(upstream: string): string | undefined
  /** How often what was done, since the start. */
  counts(): Iterable<{ readonly upstream: string; readonly deed: Deed; readonly count: number }>
  /** @param address name of a peer, or the text of a `server` line */
  change(upstream: string, address: string, wish: PeerWish, by: string): Promise<Granted>
  add(upstream: string, server: NewServer, by: string): Promise<Granted>
  remove(upstream: string, address: string, by: string): Promise<Granted>
  /** Takes back all changes of a group. */
  reset(upstream: string, by: string): Promise<Granted>
}
