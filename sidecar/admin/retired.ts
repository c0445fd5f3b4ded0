import type { Peer } from '../../feedback/peer.ts'
import type { Upstream } from '../../feedback/upstream.ts'

/**
 * Peers that only finish their calls. One whose address is configured again is left out: two peers of one name
 * would be one key with two values.
 */
export function retiredOf(upstream: Upstream): Peer[] {
  const { retired } = upstream.zone
  if (retired.length === 0) return []
  const taken = new Set([...upstream.peers, ...upstream.backups].map((peer) => peer.name))
  const left: Peer[] = []
  for (const peer of retired) {
    if (taken.has(peer.name)) continue
    taken.add(peer.name)
    left.push(peer)
  }
  return left
}
