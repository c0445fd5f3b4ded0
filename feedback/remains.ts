import { staleness } from './ewma.ts'
import type { Peer } from './peer.ts'
import type { Learning, Upstream } from './upstream.ts'

/**
 * How much of the rate of success stays at most. A high factor makes the average of times calm, but a peer that fails
 * everything at once, and fast, must lose its share in some ten answers and not in fifty.
 */
export const longestRecord = 0.9

/**
 * How much of an old average stays beside a new number, 0 to 1: after a gap the new one counts for more.
 * @param at when the average was last renewed; 0 never
 * @param mark the cohort's count of answers at that moment
 * @param until the end of the gap; before `at` there was none
 */
export function remains(
  upstream: Upstream,
  peer: Peer,
  { factor, decay }: Learning,
  at: number,
  mark: number,
  until: number,
): number {
  if (decay === 0 || at === 0) return factor
  const cohort = upstream.cohort(peer)
  const list = peer.options.backup ? cohort.backups : cohort.peers
  const since = cohort.answers - mark
  return Math.min(factor, Math.exp(-staleness((until - at) / decay, since / (100 * list.length))))
}
