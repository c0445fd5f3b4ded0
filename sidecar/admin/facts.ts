import type { RecentBatch } from '../../feedback/feed.ts'
import type { FleetFacts } from '../../feedback/fleet/facts.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { RetryBudget } from '../../feedback/policy.ts'
import type { ExclusionReason } from '../../feedback/reasons.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { ResolverFacts } from './resolver-facts.ts'
import type { RuntimeFacts } from './runtime-facts.ts'

/**
 * What the admin server shows, given by the process that it sits in. Everything is read at the moment of a
 * request, so a reload needs to tell the admin server nothing. All functions are cheap, and none throws.
 */
export interface Facts {
  /** The program's own version, `0.1.0`. */
  readonly version: string
  readonly clock: Clock
  /** Wall clock milliseconds at which the process began. */
  readonly startedAt: number
  /** How many configurations have been loaded; 1 is the first. */
  generation(): number
  /** Wall clock milliseconds at which the running configuration was loaded. */
  loadedAt(): number
  /** The running configuration as plain data. The admin server masks secrets when it shows it. */
  model(): unknown
  connections(): Connections
  /** Threads that serve now, and how many have died and were replaced. */
  threads(): { readonly running: number; readonly replaced: number }
  /** Every group, with or without `zone`, in configuration order: those of `http`, and then those of `stream`. */
  upstreams(): Iterable<UpstreamFacts>
  /** `status_zone` of servers and of locations, by name, in configuration order. */
  serverZones(): ReadonlyMap<string, ServerZone>
  locationZones(): ReadonlyMap<string, ServerZone>
  /** The same of servers in `stream`, whose sessions they count. */
  streamZones(): ReadonlyMap<string, ServerZone>
  /** Who looks up names that are followed; none in threads that leave that to another. */
  resolvers(): Iterable<ResolverFacts>
  /** What instances share; undefined where no fleet is configured, and in threads that leave that to another. */
  fleet(): FleetFacts | undefined
  /** What was changed of groups since the start, and how to; undefined in threads that leave that to another. */
  runtime(): RuntimeFacts | undefined
  /** True from the last listener's opening until the drain begins. Peers do not count. */
  ready(): boolean
  /** Whether the drain has begun. */
  draining(): boolean
  /** Reads the configuration anew and runs it. A configuration that fails leaves the old one running. */
  reload(): Promise<Reloaded>
  /** How the last attempt to reload ended, and when by the wall clock; undefined when there was none since the start. */
  lastReload(): (Reloaded & { readonly at: number }) | undefined
  /** `prometheus_template` blocks of the configuration; `all` is built in unless one of that name is here. */
  templates(): ReadonlyMap<string, Template>
  /** Host names of `admin_host`, lower case, without port. */
  hosts(): readonly string[]
  /** Content of `admin_token_file`, trimmed; undefined when none is configured. */
  token(): string | undefined
  /**
   * Tells of attempts as they end, a batch now and then, from all threads. While nobody listens nothing is gathered.
   * @returns stops listening
   */
  watch(hear: (batch: RecentBatch) => void): () => void
}

/** Time as the admin server reads it; tests put their own in its place. */
export interface Clock {
  /** Monotonic milliseconds, as in the zones. */
  now(): number
  /** Wall clock milliseconds. */
  wall(): number
}

/** Connections of clients, over all listeners and threads. */
export interface Connections {
  /** Ever accepted. */
  readonly accepted: number
  /** Accepted and closed at once because a limit was reached. */
  readonly dropped: number
  /** Datagrams that were not passed on. */
  readonly lost: number
  /** With a request in progress now. */
  readonly active: number
  /** Open between two requests now. */
  readonly idle: number
}

/**
 * One group and what only its live balancer can say of it. Peers that only finish their calls are read from
 * `upstream.zone.retired`; a group that the configuration no longer has is listed as long as it has some there.
 */
export interface UpstreamFacts {
  readonly upstream: Upstream
  /**
   * Chance of each peer if a request came now, in the order of `upstream.peers`, and of `upstream.backups` as
   * they would share what the primaries leave to them. Each list sums to 1, or is all 0 when nobody in it is ready.
   * Where requests are split the primaries' may sum to anything in between: what a track and `stable` lack peers for
   * is left to the backups. It goes by the percentages then, whatever a variable may say. Where `backup_switch` has
   * requests go to the backups first, and one of them is ready, the primaries' are all 0 likewise.
   */
  shares(now: number): { readonly primary: readonly number[]; readonly backup: readonly number[] }
  /** Why the peer would get no request now; undefined when it would. */
  exclusion(peer: Peer, now: number): ExclusionReason | undefined
  /** What the method expects an answer of the peer to take now, milliseconds; undefined: it does not estimate. */
  expected(peer: Peer, now: number): number | undefined
  /** Whether what is stuck at a peer at other instances adds to what the method expects. */
  readonly heedsStuck: boolean
  /** How requests are split over the tracks; undefined where they are not. */
  readonly split: SplitFacts | undefined
  /** The method that is tried beside the group's own; undefined where there is none. */
  readonly shadow: ShadowFacts | undefined
  /** Retry budgets of the locations that send to this group; empty where all of them are `off`. */
  budgets(): readonly BudgetFacts[]
  /** Whether probes ask its peers. */
  readonly probed: boolean
  /** What each probe knows of a peer; empty where none asks it, and in threads that leave that to another. */
  probes(peer: Peer): readonly ProbeFacts[]
  /** `service=` of the line that a peer comes from; undefined where it has none. */
  service(peer: Peer): string | undefined
  /** Names of its lines whose addresses are followed, lower case; none in most groups. */
  readonly followed: readonly { readonly host: string; readonly service: string | undefined }[]
  /** How sessions are bound to its peers; undefined where they are not. */
  readonly sticky: StickyFacts | undefined
  /** Undefined where requests for which nobody is ready do not wait. */
  readonly queue: QueueFacts | undefined
  /** Undefined where requests try the primaries first, whatever happened. */
  readonly backupSwitch: SwitchFacts | undefined
}

/** How sessions are bound to peers. The sessions that are learnt are in `upstream.sessions`. */
export interface StickyFacts {
  readonly mode: 'cookie' | 'route' | 'learn'
  /** Whether a request whose peer cannot take it is refused instead of going elsewhere. */
  readonly strict: boolean
  /**
   * Peers that a session is bound to: in the order in which they are looked for, whether they are ready or not.
   * @param session its id where sessions are learnt, otherwise what its cookie, or variable, says
   * @returns undefined where that cannot be told without a request
   */
  bound(session: string, now: number): readonly Peer[] | undefined
}

/** The queue of a group. */
export interface QueueFacts {
  /** Most requests that wait in each thread. */
  readonly number: number
  /** How long each waits at most, milliseconds. */
  readonly timeout: number
}

/** `backup_switch` of a group. */
export interface SwitchFacts {
  /** How long after a switch the primaries are tried again, milliseconds; undefined: not before the backups have nobody. */
  readonly after: number | undefined
}

/** How a group's requests are split over its tracks. */
export interface SplitFacts {
  /** Whose value sends a request to the track that it names, as configured: `$cookie_track`; undefined: none does. */
  readonly variable: string | undefined
  /** Where the others go: percent by track, which sum to 100; 0 for a track that only the variable sends to. */
  readonly percents: ReadonlyMap<string, number>
  /** What the percentages are taken of, as configured: `$cookie_id`; undefined: each request is drawn by itself. */
  readonly key: string | undefined
}

/** What a shadow method would have done, since it is tried. */
export interface ShadowFacts {
  /** Its name: `least_time`. */
  readonly method: string
  /** With its arguments as nginx would have them written: `least_time header best`. */
  readonly words: string
  /** Picks that both methods made and that the times below are of. */
  readonly picks: number
  /** Those of them that fell on the same peer. */
  readonly same: number
  /** Sums over those picks: the average time of the peer that was picked, and of the one it would have been; milliseconds. */
  readonly pickedMs: number
  readonly shadowMs: number
  /** How often it would have picked the peer. */
  picksOf(peer: Peer): number
  /** As `UpstreamFacts.shares` of the primaries, under this method. */
  shares(now: number): readonly number[]
  /** As `UpstreamFacts.expected`, under this method and by what it has learnt. */
  expected(peer: Peer, now: number): number | undefined
}

/** What one probe knows of one peer. Times in milliseconds. */
export interface ProbeFacts {
  readonly probe: {
    readonly name: string
    /** The location that it stands in, as written. */
    readonly location: string
    readonly kind: { readonly name: string }
    readonly mode: string
    readonly interval: number
    readonly essential: boolean
  }
  /** Results in a row up to now, and how many of them decide. */
  readonly standing: {
    readonly fails: number
    readonly passes: number
    readonly rule: { readonly fails: number; readonly passes: number }
  }
  /** Undefined before the first since the configuration was read. */
  readonly last: LastProbing | undefined
  /** Whether one instance of the fleet asks for all. */
  readonly shared: boolean
  /** For how long this instance leaves it to the others, since it fails from here alone; 0: it does not. */
  readonly leavesMs: number
  /** Whether the peer is being asked now, by this instance. */
  readonly asking: boolean
  /** Until it is due; where it is shared, until this instance asks if no other has. */
  readonly nextMs: number
}

export interface LastProbing {
  /** Undefined: it said nothing of the peer. */
  readonly passed: boolean | undefined
  readonly detail: string
  /** When it ended: wall clock, and monotonic. */
  readonly at: number
  readonly endedAt: number
  readonly tookMs: number
  /** Id of the instance of the fleet that asked; undefined: this one. */
  readonly by: string | undefined
}

/** A `proxy_next_upstream_budget` in force. */
export interface BudgetFacts extends RetryBudget {
  /** The location as written: `/api/`. */
  readonly location: string
}

export type Reloaded = { readonly ok: true } | { readonly ok: false; readonly error: string }

/** A `prometheus_template`: its metrics in order. */
export interface Template {
  readonly metrics: readonly TemplateMetric[]
}

/** One line of a template. */
export interface TemplateMetric {
  /** Name and labels as written, `name{label="$1"}`; `$1` to `$9` and `${1}` are captures of the path. */
  readonly metric: string
  /** From the raw value at the path to the printed one; an empty result leaves the sample out. */
  readonly value: (raw: string) => string
  /** Which values of the status tree: an exact path, a pattern, or undefined for one sample without a path. */
  readonly path: string | RegExp | undefined
  readonly type: string | undefined
  readonly help: string | undefined
}
