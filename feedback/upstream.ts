import type { Call } from './call.ts'
import { Cohort } from './cohort.ts'
import type { Peer } from './peer.ts'
import type { SessionBook } from './sessions/book.ts'
import type { Shadow } from './shadow.ts'
import { stableTrack, type Track, tracksOf } from './track.ts'
import type { Zone } from './zone.ts'

/** What a method wants learnt of every attempt; see learn.ts. */
export interface Learning {
  /** What is learnt, as a number; see signal.ts. Undefined where nothing else can ever have been. */
  readonly signal?: number
  /** Which event is measured; that of `header` is the first byte in `stream`. */
  readonly mode: 'connect' | 'header' | 'last_byte'
  /** How much of the old average stays, 0 to 0.99 (the directive's 0 to 99, divided by 100). */
  readonly factor: number
  /** Exponent of the success rate; 0 switches failure-awareness off. */
  readonly errors: number
  /** Forgetting, milliseconds; 0 switches it off. */
  readonly decay: number
  /** Which calls are learnt from; undefined: all. An empty answer or `0` means this one is not. */
  readonly account: ((call: Call) => string) | undefined
  /** Whether `account` asks about probes: then it is asked about their answers too, of which otherwise nothing is learnt. */
  readonly probes?: boolean
  /**
   * Angie's rule to the letter: every answer passed on is learnt from, whatever its status, and nothing else; the
   * primaries' shares are kept in the zone's `share` and `tree` columns (see share-tree.ts).
   */
  readonly plain?: boolean
  /** What the peers report of themselves, where the method goes by that; undefined: it goes by times. */
  readonly value?: ReportedValue
}

/** A value that peers report with their answers; see report.ts. */
export interface ReportedValue {
  /** The variable as configured, `$name`. */
  readonly name: string
  /** Empty where an answer has none. */
  readonly read: (call: Call) => string
  /** Whether it is read out of load reports: what is wrong with a report is then what is wrong with the value. */
  readonly orca: boolean
  /** Whether less is better. */
  readonly inverse: boolean
  /** A value that is not renewed for so long counts as not reported, milliseconds; 0: never. */
  readonly expire: number
}

/** Before the name of each group of `stream`. */
export const streamPrefix = 'stream/'

function byTrack({ zone, peers, backups, tracks }: Upstream): Map<string, Cohort> {
  return new Map(
    Array.from(tracks, ([name, track]) => {
      const own = (list: readonly Peer[]) => list.filter(({ options }) => options.track === name)
      return [name, new Cohort(zone, own(peers), own(backups), track.cohort)]
    }),
  )
}

/** Who is alone in `stable`, or in any track where there is no `stable`, to which requests of the others go in need. */
function loners(peers: readonly Peer[]): Peer[] {
  const tracks = Map.groupBy(peers, ({ options }) => options.track)
  const stable = tracks.get(stableTrack)
  const last = stable === undefined ? [...tracks.values()] : [stable]
  return last.flatMap((list) => (list.length === 1 ? list : []))
}

/** What `queue` says of a group. */
export interface QueueOptions {
  /** Most requests that wait in each thread. */
  readonly number: number
  /** How long each waits at most, milliseconds. */
  readonly timeout: number
}

/** A named group of peers with its state. */
export class Upstream {
  /**
   * What tells it from all other groups, in metrics, logs and keys: its name, and `stream/` before that for a group of
   * `stream`, where the same name may stand.
   */
  readonly name: string
  /** Its name as written: what variables and the status tree show. */
  readonly label: string
  readonly kind: 'http' | 'stream'
  readonly zone: Zone
  /** Primaries in configuration order. */
  readonly peers: readonly Peer[]
  /** Backups in configuration order. */
  readonly backups: readonly Peer[]
  /** The balancing method's name: `round_robin`, `least_conn`, … */
  readonly method: string
  readonly learning: Learning | undefined
  /** How much of the old average `headerTime` and `responseTime` keep, 0 to 0.99 (`response_time_factor` / 100). */
  readonly responseTimeFactor: number
  /** One primary and no backup: such a peer is asked whatever its failures, since there is nobody else. */
  readonly single: boolean
  /** Whether instances share what they learn of it; see fleet/. */
  readonly fleet: boolean
  /** By name, in the order of the peers: at least one where there is a peer. */
  readonly tracks: ReadonlyMap<string, Track>
  /** Whether requests are split over the tracks. Otherwise these are labels, and all primaries are one list. */
  readonly split: boolean
  /** A method that is tried beside its own; undefined where there is none. */
  readonly shadow: Shadow | undefined
  /** The sessions that `sticky learn` sees; undefined where it does not. */
  readonly sessions: SessionBook | undefined
  /** How requests wait for a peer; undefined where they do not. */
  readonly queue: QueueOptions | undefined
  /** All its peers, or those of each track by its name, where requests are split. */
  readonly #cohorts: ReadonlyMap<string, Cohort>
  readonly #cohort: Cohort
  /** Peers that are alone in a track whose requests go nowhere else; mostly there is none. */
  readonly #alone: readonly Peer[]

  constructor(options: {
    name: string
    /** Left out: `http`. */
    kind?: 'http' | 'stream'
    zone: Zone
    peers: readonly Peer[]
    backups: readonly Peer[]
    method: string
    learning: Learning | undefined
    responseTimeFactor: number
    fleet?: boolean
    /** Left out: new ones. */
    tracks?: ReadonlyMap<string, Track>
    split?: boolean
    shadow?: Shadow | undefined
    sessions?: SessionBook | undefined
    queue?: QueueOptions | undefined
  }) {
    this.name = options.name
    this.kind = options.kind ?? 'http'
    this.label = this.kind === 'stream' ? options.name.slice(streamPrefix.length) : options.name
    this.zone = options.zone
    this.peers = options.peers
    this.backups = options.backups
    this.method = options.method
    this.learning = options.learning
    this.responseTimeFactor = options.responseTimeFactor
    this.single = options.peers.length === 1 && options.backups.length === 0
    this.fleet = options.fleet ?? false
    const names = [...options.peers, ...options.backups].map((peer) => peer.options.track)
    this.tracks = options.tracks ?? tracksOf(names)
    this.split = options.split ?? false
    this.shadow = options.shadow
    this.sessions = options.sessions
    this.queue = options.queue
    this.#cohort = new Cohort(this.zone, this.peers, this.backups)
    this.#cohorts = this.split ? byTrack(this) : new Map()
    this.#alone = this.split && options.backups.length === 0 ? loners(options.peers) : []
  }

  /** The peers that one is compared with, and what is usual among them; without one those of the whole group. */
  cohort(peer: Peer | undefined): Cohort {
    if (!this.split || peer === undefined) return this.#cohort
    return this.#cohorts.get(peer.options.track) ?? this.#cohort
  }

  /** Whether the peer is asked whatever its failures, since its requests have nobody else: see `single`. */
  isAlone(peer: Peer): boolean {
    return this.single || (this.#alone.length > 0 && this.#alone.includes(peer))
  }
}
