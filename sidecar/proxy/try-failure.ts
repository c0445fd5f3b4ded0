import type { Ending } from '../../feedback/outcome.ts'
import type { AttemptReason } from '../../feedback/reasons.ts'
import { connectVerdict, lossReason } from '../../feedback/socket-error.ts'
import type { BodyFault } from './body.ts'

/** Why a try has no (complete) answer. */
export interface TryFailure {
  readonly kind: 'failed'
  readonly ending: Ending
  readonly reason: AttemptReason
  readonly detail: string
  /** This machine could not even try (no file descriptor, no port): says nothing of the peer. */
  readonly local: boolean
}

export function failure(ending: Ending, reason: AttemptReason, detail: string): TryFailure {
  return { kind: 'failed', ending, reason, detail, local: false }
}

/** The client went away before there was an answer. */
export const clientLeft = failure('aborted', 'client_abort', 'client closed the connection')

/** The peer has left its group, and what is under way with it is not to go on. */
export const peerLeft = failure('aborted', 'dropped', 'peer has left its group')

/** The client's request will never be whole. */
export function bodyFailure(why: BodyFault): TryFailure {
  const detail = why === 'aborted' ? 'client closed while sending' : `request body ${why}`
  return failure('aborted', 'client_abort', detail)
}

/** There is no connection. */
export function connectFailure(error: NodeJS.ErrnoException): TryFailure {
  return { kind: 'failed', ...connectVerdict(error), detail: error.message }
}

/**
 * The connection is gone before there was an answer.
 * @param error undefined where the peer closed it in order
 */
export function lostFailure(error: NodeJS.ErrnoException | undefined): TryFailure {
  return failure('error', lossReason(error), lostDetail(error))
}

/** How a connection was lost, in words. */
export function lostDetail(error: NodeJS.ErrnoException | undefined): string {
  return error ? error.message : 'connection closed'
}
