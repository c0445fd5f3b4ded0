import { type ProbeStateEvent, probeStateChannel } from '../feedback/channels.ts'
import type { Peer } from '../feedback/peer.ts'
import type { Checkup, ProbeChange, Standing } from '../feedback/probe-health.ts'
import type { Upstream } from '../feedback/upstream.ts'
import type { Recurring } from './due-queue.ts'
import type { LiveProbe } from './live-probe.ts'
import type { Probing } from './run.ts'

/** How the last probing of a peer by one probe ended. */
export interface LastProbing {
  /** Undefined: it said nothing of the peer. */
  readonly passed: boolean | undefined
  /** What was seen, or why it did not pass; empty when there is nothing to say. */
  readonly detail: string
  /** When it ended: wall clock milliseconds, and monotonic ones. */
  readonly at: number
  readonly endedAt: number
  readonly tookMs: number
  /** Id of the instance of the fleet that asked; undefined: this one. */
  readonly by: string | undefined
}

/** What one probe is about with one peer, for people. */
export interface ProbeFacts {
  readonly probe: LiveProbe
  readonly standing: Standing
  readonly last: LastProbing | undefined
  /** Whether one instance of the fleet asks for all, as far as Redis answers. */
  readonly shared: boolean
  /** For how long this instance leaves it to the others, since it fails from here alone; milliseconds, or 0. */
  readonly leavesMs: number
  /** Whether it is being asked now, by this instance. */
  readonly asking: boolean
  /**
   * Milliseconds until it is due; where its mode says so it is left out then. One that is shared is due here where
   * nobody has asked by then.
   */
  readonly nextMs: number
}

/** A question under way. */
export interface Flight {
  readonly control: AbortController
  landed: boolean
}

/** One probe of one peer. */
export interface Entry extends Recurring {
  /** The same after a reload for the same probe of the same peer. */
  readonly key: string
  probe: LiveProbe
  readonly patient: Patient
  readonly standing: Standing
  /** Undefined before the first. After a reload it may be that of the entry before. */
  flight: Flight | undefined
  last: LastProbing | undefined
}

/** How a question has ended. */
export interface Landing {
  /** Undefined: it says nothing of the peer. */
  readonly passed: boolean | undefined
  readonly detail: string
  readonly tookMs: number
  /** Undefined where it never ended by itself. */
  readonly probing: Probing | undefined
}

/** A peer that is probed. */
export interface Patient {
  upstream: Upstream
  peer: Peer
  readonly checkup: Checkup
  readonly entries: Entry[]
  /** The probes by which it has asked for something. */
  readonly orderedBy: Set<string>
  /** Whether the configuration that it was admitted by is in force. */
  current: boolean
}

/**
 * Whether its mode spares the peer this time: never one that probes or failed requests have set aside. Busy is one that
 * was chosen within the last interval; requests that have been there for longer may be hanging.
 */
export function leftOut({ probe, patient: { peer } }: Entry, now: number): boolean {
  const { probeHealth, downAt, selected, checkedAt } = peer.zone.peers
  const { index } = peer
  if (probe.mode === 'always' || probeHealth[index] !== 0 || downAt[index]! > 0) return false
  if (probe.mode === 'onfail') return true
  return selected[index]! > 0 && now - checkedAt[index]! < probe.interval
}

/**
 * Has a patient go on under objects that were made anew for the same group, peer and probes: streaks, rhythm and what
 * is under way stay as they are.
 * @param probes the same ones in the same order
 */
export function carryOn(
  patient: Patient,
  upstream: Upstream,
  peer: Peer,
  probes: readonly LiveProbe[],
): void {
  patient.upstream = upstream
  patient.peer = peer
  patient.checkup.peer = peer
  for (const [i, entry] of patient.entries.entries()) entry.probe = probes[i]!
}

/** Whose orders they are: another kind of the same name gives none. */
export function voice({ kind, name }: LiveProbe): string {
  return `${kind.name} ${name}`
}

/** The same over reloads as long as it is the same peer. */
export function keyOf({ zone, index, tenant }: Peer): string {
  return `${zone.id}:${index}:${tenant}`
}

/** Whether its question is under way. */
export function inAir({ flight }: Entry): boolean {
  return flight?.landed === false
}

/**
 * Publishes a change, where there is one.
 * @param probe the one that made it; empty for a reload
 * @param by id of the instance that asked; undefined: this one
 */
export function tell(
  { upstream, peer }: Patient,
  probe: string,
  change: ProbeChange | undefined,
  detail: string,
  by?: string,
): void {
  if (change === undefined) return
  probeStateChannel.publish({ ...change, upstream, peer, probe, detail, by } satisfies ProbeStateEvent)
}
