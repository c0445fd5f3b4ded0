import type { Peer } from '../../feedback/peer.ts'
import type { UpstreamFacts } from './facts.ts'

/**
 * Peers that only finish their calls. One whose address is configured again is left out: two peers of one name
 * would be one key with two values.
 */
export function retiredOf(group: UpstreamFacts): Peer[] {
  if (group.retired.length === 0) return []
  const taken = new Set([...group.upstream.peers, ...group.upstream.backups].map((peer) => peer.name))
  const left: Peer[] = []
  for (const peer of group.retired) {
    if (taken.has(peer.name)) continue
    taken.add(peer.name)
    left.push(peer)
  }
  return left
}
