import { begin, observe } from '../../feedback/observe.ts'
import { Attempt, type Ending } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { AttemptReason } from '../../feedback/reasons.ts'
import type { Upstream } from '../../feedback/upstream.ts'

/** How an attempt is to end: its ending, or more of it. */
export type End =
  | Ending
  | {
      readonly ending: Ending
      readonly reason?: AttemptReason
      readonly failed?: boolean
      readonly next?: boolean
      readonly resent?: boolean
      readonly peerStatus?: number
      readonly grpcStatus?: number
    }

/** Endings that count against the peer unless said otherwise. */
const failures: readonly Ending[] = ['error', 'timeout', 'invalid_header', 'http']

/** Begins an attempt at a peer, as a choice by the method does. */
export function chosen(upstream: Upstream, peer: Peer, now: number): Attempt {
  const attempt = new Attempt(upstream, peer, now, upstream.method)
  begin(attempt, now)
  return attempt
}

/** Ends an attempt as told. */
export function ended(attempt: Attempt, end: End, now: number): void {
  const more = typeof end === 'string' ? { ending: end } : end
  attempt.ending = more.ending
  attempt.failed = more.failed ?? failures.includes(more.ending)
  attempt.next = more.next ?? false
  attempt.resent = more.resent ?? false
  attempt.reason = more.reason
  if (more.peerStatus !== undefined) attempt.peerStatus = more.peerStatus
  attempt.grpcStatus = more.grpcStatus
  observe(attempt, undefined, now)
}

/** An attempt that begins and ends at once. */
export function attempted(upstream: Upstream, peer: Peer, end: End, now: number): Attempt {
  const attempt = chosen(upstream, peer, now)
  ended(attempt, end, now)
  return attempt
}
