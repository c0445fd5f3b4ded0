import type { Peer } from '../../feedback/peer.ts'

/** Whether a peer is one of these. A reload makes the objects of all peers anew, also of those that stay. */
export function among(peers: readonly Peer[], peer: Peer | undefined): boolean {
  return peer !== undefined && peers.some((one) => one.name === peer.name && one.zone.name === peer.zone.name)
}
