import type { Peer } from '../../feedback/peer.ts'
import { type AttemptReason, attemptReasons, type ExclusionReason } from '../../feedback/reasons.ts'

/** How a peer has failed, and until when that keeps it out. */
export interface PeerFailures {
  /** Failures that count towards `max_fails` now. */
  readonly fails: number
  /** How attempts have ended that did not end plainly well, since the start; undefined where all of them did. */
  readonly reasons: Readonly<Partial<Record<AttemptReason, number>>> | undefined
  /** Milliseconds until a request tries it again that failures have set aside; undefined where they have not. */
  readonly tried_in: number | undefined
}

/** @param excluded why it may not be picked; undefined: it may */
export function explainFailures(
  peer: Peer,
  excluded: ExclusionReason | undefined,
  now: number,
): PeerFailures {
  const { zone, index, options } = peer
  const counts = attemptReasons
    .map((reason, r) => [reason, zone.reasons[r]![index]!] as const)
    .filter(([, count]) => count > 0)
  const left = zone.peers.checkedAt[index]! + options.fail_timeout - now
  return {
    fails: zone.peers.fails[index]!,
    reasons: counts.length === 0 ? undefined : Object.fromEntries(counts),
    tried_in: excluded === 'unavailable' ? Math.max(0, Math.round(left)) : undefined,
  }
}

/** The same for people, a few words each. */
export function* failureNotes({ fails, reasons = {}, tried_in: left }: PeerFailures): Generator<string> {
  if (fails > 0) yield `${fails} failed`
  if (left === undefined) return
  yield `tried again in ${Math.ceil(left / 1000)} s`
  const counts = Object.entries(reasons).map(([reason, count]) => `${count} ${reason}`)
  if (counts.length > 0) yield `since the start ${counts.join(' ')}`
}
