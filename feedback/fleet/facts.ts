import type { Peer } from '../peer.ts'
import type { Minute } from '../reservoir.ts'
import type { Upstream } from '../upstream.ts'

/** What there is to tell of the fleet, for the admin server. Everything is cheap to ask, and nothing throws. */
export interface FleetFacts {
  /** Names the app. */
  readonly group: string
  /** This instance's name and, over restarts and pauses, the id that others know it by. */
  readonly name: string
  readonly id: string
  /** Where Redis is, without user and password. */
  readonly servers: readonly string[]
  /** Whether Redis answers. */
  readonly up: boolean
  /** Wall clock milliseconds since when that is so. */
  readonly since: number
  /** What went wrong last, for people; undefined while nothing has since Redis was reached. */
  readonly error: string | undefined
  /** Whether Redis was reached when it was last tried, and could not be used. */
  readonly refused: boolean
  /** Milliseconds since anything was heard; undefined: Redis was never reached. */
  readonly silence: number | undefined
  /** Whether readiness asks for it. */
  readonly required: boolean
  /** Milliseconds. */
  readonly interval: number
  readonly ttl: number
  /** Exchanges that succeeded and that did not, ever. */
  readonly exchanges: number
  readonly failures: number
  /** How often Redis has been lost, ever. */
  readonly losses: number
  /** Milliseconds that the last exchange took; undefined before the first. */
  readonly roundTripMs: number | undefined
  /** @returns undefined where the group is not shared */
  upstream(upstream: Upstream): FleetGroupFacts | undefined
  /**
   * Ids of the instances that share a group, this one among them, a hundred at most. To ask is what has the list renewed,
   * so the first answer is empty; it is while Redis is away, too.
   */
  roster(upstream: Upstream): readonly string[]
  /** @returns undefined where nothing has been heard of the peer */
  peer(upstream: Upstream, peer: Peer): FleetPeerFacts | undefined
  /**
   * Asks Redis for what the other instances have told of how attempts ended. It takes some milliseconds, two seconds at
   * most, and never rejects.
   * @param tracks by label
   * @param from, to minutes of the wall clock since 1970, the last included
   * @returns undefined where the group is not shared
   */
  samples(
    upstream: Upstream,
    tracks: readonly string[],
    from: number,
    to: number,
  ): Promise<FleetSamples | undefined>
}

/** Samples of other instances. */
export interface FleetSamples {
  /** By track, and of each one for each minute and instance. */
  readonly parts: ReadonlyMap<string, readonly Minute[]>
  /** Instances that any of it comes from. */
  readonly instances: number
  /** Why they are not all that there are, for people; undefined: nothing went wrong. */
  readonly lack: string | undefined
}

/** What is known of a group over all instances. */
export interface FleetGroupFacts {
  /** Instances that share it, this one among them; 0 while that is not known. */
  readonly members: number
  /** Milliseconds since the last exchange that succeeded; undefined before the first. */
  readonly age: number | undefined
  /** How often the shared state was lost and begun anew, ever. */
  readonly resets: number
  /** Sessions that were told to others and heard from them, ever; left out where none are learnt. */
  readonly sessions?: { readonly told: number; readonly heard: number }
}

/** What the fleet knows of a peer, this instance's part included. */
export interface FleetPeerFacts {
  /** Instances that have the peer. */
  readonly members: number
  /** Answers since the shared state began, and the successes among them. */
  readonly answers: number
  readonly good: number
  /** Weighted average of their averages, milliseconds; undefined when none has one. */
  readonly average: number | undefined
  /** Requests in progress. */
  readonly conns: number
  /** Attempts that are stuck there at other instances, and their age added up, milliseconds. */
  readonly stuck: number
  readonly stuckAge: number
  /** Requests in progress that this instance may have by its lease; undefined: `max_conns` is not the fleet's. */
  readonly lease: number | undefined
  /** How often it was set aside by `max_fails` since the shared state began. */
  readonly ejections: number
}
