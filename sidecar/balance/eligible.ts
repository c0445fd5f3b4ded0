import { exclusion as excluded } from '../../feedback/health.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { ExclusionReason } from '../../feedback/reasons.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { Group } from './group.ts'

/** Whom a request has been at. */
interface Tried {
  tried(peer: Peer): boolean
}

/**
 * Why a peer gets no share now.
 * @param now monotonic milliseconds
 * @param selection the request in question, if there is one: peers it has tried are out for it
 * @returns undefined when it is eligible
 */
export function exclusion(
  peer: Peer,
  upstream: Upstream,
  now: number,
  selection?: Tried,
): ExclusionReason | undefined {
  if (!upstream.single && selection?.tried(peer)) return 'tried'
  return excluded(peer, upstream.isAlone(peer), now)
}

/**
 * How many attempts the group allows one request: its peers, backups included, that are not marked `down` or `drain`
 * (nginx's `tries`).
 * @param track of the request, where requests are split: peers that it could not go to do not count
 */
export function tries(group: Group, track = ''): number {
  let count = 0
  for (const peer of within(group, track)) if (countsAsTry(peer)) count += 1
  return count
}

/** Whether an attempt at the peer is among those that the group allows. */
export function countsAsTry({ options }: Peer): boolean {
  return !options.down && !options.drain
}

/** The peers that are kept from a request by nothing but their `max_conns`. */
export function busyPeers(group: Group, track: string, now: number, selection: Tried): Peer[] {
  return [...within(group, track)].filter(
    (peer) => exclusion(peer, group.upstream, now, selection) === 'busy',
  )
}

/** The peers that a request may go to, and its backups. */
function* within({ upstream, split }: Group, track: string): Generator<Peer> {
  yield* split?.within(track) ?? upstream.peers
  yield* upstream.backups
}
