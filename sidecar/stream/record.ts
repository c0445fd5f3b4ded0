import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { observe, observeRequest } from '../../feedback/observe.ts'
import { countAttempt, countCall } from '../../feedback/observe-bytes.ts'
import type { Attempt, Ending } from '../../feedback/outcome.ts'
import type { AttemptReason } from '../../feedback/reasons.ts'
import { publishAttempt, publishRequest } from '../telemetry/channels.ts'
import type { SessionHost } from './host.ts'
import type { StreamServer } from './settings.ts'

/** How a session ended, as far as its peer goes. */
export interface End {
  readonly ending: Ending
  readonly reason?: AttemptReason
  /** For people. */
  readonly detail?: string
}

/** The peer has left its group, and what is under way with it is not to go on. */
export const peerLeft: End = { ending: 'aborted', reason: 'dropped', detail: 'peer has left its group' }

/** Counts a session that begins. A drain waits for it as for a tunnel. */
export function begun({ zone }: StreamServer, { counts }: Pick<SessionHost, 'counts'>): void {
  zone?.begin()
  counts.active += 1
  counts.requests += 1
  counts.tunnels += 1
}

/** Counts the bytes of a session that goes on. @param call and attempt with their bytes so far */
export function passed(call: Call, attempt: Attempt, { zone }: StreamServer): void {
  countAttempt(attempt)
  countCall(call, zone === undefined ? [] : [zone])
}

/**
 * Writes down that a session is over.
 * @param call with `bytesSent`, and with `status` where it is not 200
 * @param attempt the one with a connection, or that was on its way to one; undefined: there is none that has not ended
 */
export function ended(
  call: Call,
  attempt: Attempt | undefined,
  { ending, reason, detail = '' }: End,
  { zone, accessLogs }: StreamServer,
  { counts }: Pick<SessionHost, 'counts'>,
): void {
  const now = monotonic()
  call.status ||= 200
  call.endedAt = now
  call.completed = ending === 'ok'
  if (attempt !== undefined && attempt.ending === undefined) {
    attempt.ending = ending
    attempt.reason = reason
    attempt.detail = detail
    observe(attempt, call, now)
    publishAttempt(call, attempt)
  }
  counts.active -= 1
  counts.requests -= 1
  counts.tunnels -= 1
  zone?.endSession(call)
  observeRequest(call)
  for (const log of accessLogs) log(call)
  publishRequest(call)
}
