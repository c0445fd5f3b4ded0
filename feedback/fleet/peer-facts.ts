import type { Peer } from '../peer.ts'
import type { FleetPeerFacts } from './facts.ts'
import { leased } from './held-lease.ts'
import type { PeerRecord } from './told.ts'

/**
 * What is shown of a peer that something has been heard of.
 * @param now monotonic milliseconds
 */
export function peerFacts(peer: Peer, record: PeerRecord, now: number): FleetPeerFacts {
  const { stuckCount, stuckStart } = peer.zone.peers
  const { index } = peer
  return {
    members: record.members,
    answers: record.answers,
    good: record.good,
    average: record.weight > 0 ? record.weighted / record.weight : undefined,
    conns: record.conns,
    stuck: stuckCount[index]!,
    stuckAge: Math.max(0, stuckCount[index]! * now - stuckStart[index]!),
    lease: leased(peer),
    ejections: record.ejections,
  }
}
