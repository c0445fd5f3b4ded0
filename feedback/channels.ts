import { channel } from 'node:diagnostics_channel'
import type { Peer } from './peer.ts'
import type { ProbeChange } from './probe-health.ts'
import type { Upstream } from './upstream.ts'

/** Told once when a peer is set aside for its failures, and once when it is taken back. */
export interface PeerStateEvent {
  readonly upstream: Upstream
  readonly peer: Peer
  /** `unavailable`: failures reached `max_fails`; `up`: a success after the quiet time ended that. */
  readonly state: 'unavailable' | 'up'
  /** Failures counted when it was set aside; 0 when it comes back. */
  readonly fails: number
  /** How long it was away, milliseconds; 0 when it is set aside now. */
  readonly downtimeMs: number
  /** Set aside because another instance reported it; left out: by what this one has seen. */
  readonly heard?: true
}

/**
 * Changes of a peer's state, for logs and traces; the payload is a `PeerStateEvent`. A peer that is alone in its group
 * is never set aside, so nothing is told of it.
 */
export const peerStateChannel = channel('evenkeel:peer:state')

/** Told once when requests of a group go to its other list of peers first, as `backup_switch` has it. */
export interface ListSwitchEvent {
  readonly upstream: Upstream
  readonly to: 'primaries' | 'backups'
}

/** Such switches, for logs; the payload is a `ListSwitchEvent`. */
export const listSwitchChannel = channel('evenkeel:upstream:switch')

/** Told now and then while sessions are dropped since there is no room for more. */
export interface SessionsFullEvent {
  /** Label of the group. */
  readonly group: string
  /** The `zone=` of `sticky learn`. */
  readonly zone: string
  /** How many sessions were dropped since that was told last. */
  readonly dropped: number
}

/** Of sessions that are dropped, for logs; the payload is a `SessionsFullEvent`. */
export const sessionsFullChannel = channel('evenkeel:sessions:full')

/** Told once when probes, or an agent that they ask, change what a peer may get. */
export interface ProbeStateEvent extends ProbeChange {
  readonly upstream: Upstream
  readonly peer: Peer
  /** The probe whose result made the difference; empty where a reload did. */
  readonly probe: string
  /** What it saw, or why it did not pass, for people; peers may have written it. */
  readonly detail: string
  /** Id of the instance whose probe it was; undefined or left out: this one. */
  readonly by?: string | undefined
}

/** Changes of that kind, for logs and traces; the payload is a `ProbeStateEvent`. */
export const probeStateChannel = channel('evenkeel:peer:probe')
