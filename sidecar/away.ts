import type { Peer } from '../feedback/peer.ts'
import type { Upstream } from '../feedback/upstream.ts'
import type { Away } from './balance/drops.ts'

/**
 * Who is gone from these groups, or marked `down` there. Several lines may have one address. Of another group, as one that
 * a reload has taken away, nothing is known: nobody of it has left.
 */
export function awayFrom(groups: Iterable<{ readonly balancing: { readonly upstream: Upstream } }>): Away {
  let zones: Map<string, Upstream> | undefined
  return ({ name, zone }: Peer) => {
    zones ??= new Map([...groups].map(({ balancing: { upstream } }) => [upstream.zone.name, upstream]))
    const now = zones.get(zone.name)
    const there = (peer: Peer) => peer.name === name && !peer.options.down
    return now !== undefined && !(now.peers.some(there) || now.backups.some(there))
  }
}
