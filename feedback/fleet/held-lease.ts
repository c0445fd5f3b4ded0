import type { Peer } from '../peer.ts'
import type { PeerRecord, Update } from './told.ts'

/*
 * What this instance holds of a peer's limit that is the fleet's, as its zone has it: one more than may be in progress, so
 * that 0 is left to say that the limit is its own. How much to ask for is decided in leases.ts.
 */

/** Whether the peer has a limit that is the fleet's. */
export function isCommon({ options }: Peer): boolean {
  return options.max_conns_scope === 'fleet'
}

/** How many requests may be in progress; undefined: the limit is this instance's own. */
export function leased({ zone, index }: Peer): number | undefined {
  const held = zone.peers.lease[index]!
  return held > 0 ? held - 1 : undefined
}

/** From now on so many requests may be in progress. To be called with the zone held. */
export function lease({ zone, index }: Peer, conns: number): void {
  zone.peers.lease[index] = conns + 1
}

/** The limit is this instance's own again. To be called with the zone held. */
export function unlease({ zone, index }: Peer): void {
  zone.peers.lease[index] = 0
}

/**
 * How many may be in progress from now on. What is in progress counts as leased even where that makes more than the limit
 * in all, as after an instance was thought dead; then nothing more is begun until enough has ended.
 */
export function allowed({ limit, want }: Update, granted: number, record: PeerRecord | undefined): number {
  const others = record === undefined ? 0 : record.leased - granted
  return Math.max(0, Math.min(granted, want, limit - others))
}
