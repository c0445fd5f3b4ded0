// What a method that goes by times or by reports learns of its peers from others, who have asked them too.

import type { Peer } from './peer.ts'
import { longestRecord, remains } from './remains.ts'
import { keepReport } from './report.ts'
import { isCurrent } from './signal.ts'
import type { Upstream } from './upstream.ts'

/**
 * Takes in what others have seen of a peer: of their answers, which say as much as one's own, how many succeeded.
 * Times are not taken: what all instances hold for the best peer is flooded by all of them at once. To be called with
 * the zone held.
 * @param answers how many, 1 or more
 * @param good successes among them
 */
export function learnEvidence(upstream: Upstream, index: number, answers: number, good: number): void {
  const { learning, zone } = upstream
  if (learning === undefined || learning.plain || !isCurrent(upstream)) return
  const stays = Math.min(learning.factor, longestRecord) ** answers
  const { ok } = zone.peers
  ok[index] = ok[index]! * stays + (good / answers) * (1 - stays)
}

/**
 * Gives a peer that has no average one to begin with. To be called with the zone held.
 * @param average milliseconds, above 0
 * @returns whether it had none
 */
export function learnStart(upstream: Upstream, peer: Peer, average: number, now: number): boolean {
  const { learning, zone } = upstream
  const { index } = peer
  if (learning === undefined || learning.plain || learning.value !== undefined || !isCurrent(upstream))
    return false
  const { avg, answeredAt, answersMark } = zone.peers
  if (avg[index]! > 0) return false
  avg[index] = average
  answeredAt[index] = now
  const cohort = upstream.cohort(peer)
  answersMark[index] = cohort.answers
  // The mean and the median of all move.
  cohort.medianAt = 0
  return true
}

/**
 * Takes in a value that others were told by a peer, newer than what is known of it here. To be called with the zone
 * held.
 * @param at when it was told, monotonic milliseconds
 */
export function learnReport(upstream: Upstream, peer: Peer, value: number, at: number): void {
  const { learning, zone } = upstream
  if (learning?.value === undefined || !isCurrent(upstream)) return
  const { reportAt, reportMark } = zone.peers
  const { index } = peer
  const keep = remains(upstream, peer, learning, reportAt[index]!, reportMark[index]!, at)
  keepReport(upstream, peer, value, keep, learning.value.expire, at)
}
