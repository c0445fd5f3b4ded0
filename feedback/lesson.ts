import type { Call } from './call.ts'
import { isGrpcFailure } from './grpc-status.ts'
import type { Attempt } from './outcome.ts'
import type { SignalReason } from './reasons.ts'
import { reported } from './report.ts'
import type { Learning } from './upstream.ts'

/** What an attempt teaches, read of it and of its call before anybody holds the group's numbers. */
export interface Lesson {
  /** `answered` is a success without a time worth keeping; `reported` has nothing to say but `value`. */
  readonly kind: 'success' | 'answered' | 'failure' | 'timeout' | 'aborted' | 'reported'
  /** What was measured, or how long was waited; milliseconds. */
  readonly time: number
  /** What the peer reported, or why that is not taken; undefined where it was not asked. */
  readonly value?: number | SignalReason | undefined
}

/**
 * What the header teaches, which is the measured event of `header` mode, and in every mode that of a switch of
 * protocols, which has no last byte worth waiting for. To be called once the answer has been classified: `peerStatus`,
 * `headerMs`, `ending` and `failed` are read.
 * @param call what `account` and the reported value are read of, the attempt being its last one; undefined where no
 *   call is behind the attempt
 * @returns undefined for nothing
 */
export function headerLesson(attempt: Attempt, call: Call | undefined, now: number): Lesson | undefined {
  const { learning } = attempt.upstream
  if (learning === undefined || !measuredAtHeader(attempt, learning) || !admits(learning, call))
    return undefined
  const time = attempt.headerMs ?? now - attempt.startedAt
  let value = reportOf(attempt, learning, call)
  if (value === 'absent') {
    // It may come with the trailers.
    attempt.awaitsValue = true
    value = undefined
  }
  if (failedAnswer(attempt, learning)) return { kind: 'failure', time, value }
  return { kind: learning.mode === 'header' ? 'success' : 'answered', time, value }
}

/**
 * What an established connection teaches: in `connect` mode, which is of `stream` alone, it is the measured event.
 * @returns undefined for nothing
 */
export function connectLesson(attempt: Attempt, call: Call | undefined): Lesson | undefined {
  const { learning } = attempt.upstream
  if (learning === undefined || !measuredAtConnect(attempt, learning) || !admits(learning, call))
    return undefined
  return { kind: 'success', time: attempt.connectMs ?? 0 }
}

/**
 * What the end of an attempt teaches, with `ending`, `failed` and `responseMs` filled in.
 * @param call as for `headerLesson`
 * @returns undefined for nothing
 */
export function endLesson(attempt: Attempt, call: Call | undefined, now: number): Lesson | undefined {
  const { learning } = attempt.upstream
  if (learning === undefined || attempt.peer === undefined) return undefined
  const lesson = lessonOf(attempt, learning, call, attempt.waiting, now)
  if (!attempt.awaitsValue || attempt.ending === 'aborted') return lesson
  attempt.awaitsValue = false
  const value = reportOf(attempt, learning, call)
  return lesson ? { ...lesson, value } : { kind: 'reported', time: 0, value }
}

/**
 * What an attempt that is over teaches.
 * @param unmeasured whether the measured event has not come before
 */
export function lessonOf(
  attempt: Attempt,
  learning: Learning,
  call: Call | undefined,
  unmeasured: boolean,
  now: number,
): Lesson | undefined {
  const { ending } = attempt
  // These say nothing of the peer.
  if (ending === undefined || ending === 'stale' || ending === 'no_live') return undefined
  const time = attempt.responseMs ?? now - attempt.startedAt
  if (ending === 'aborted') {
    return unmeasured && !learning.plain && admits(learning, call) ? { kind: 'aborted', time } : undefined
  }
  if (learning.plain && ending !== 'ok') return undefined
  const broken = ending === 'error' || ending === 'timeout' || ending === 'invalid_header'
  // A failure that does not count against the peer is this machine's own: no descriptor, no port.
  if (broken && !attempt.failed) return undefined
  // What was measured at the header is learnt; only a break in the body after a good header has more to say, or how a
  // call of gRPC ends, whose header says nothing.
  const worse = broken || (unwell(attempt) && !learning.plain)
  if (!unmeasured && !(worse && attempt.learnt === 'success')) return undefined
  if (!admits(learning, call)) return undefined
  const value = unmeasured ? reportOf(attempt, learning, call) : undefined
  if (ending === 'timeout' && unmeasured) return { kind: 'timeout', time, value }
  if (broken || failedAnswer(attempt, learning)) return { kind: 'failure', time, value }
  const event = eventTime(attempt, learning, call)
  // A session may end before its peer has said anything: that took so long at least, and nobody knows how long.
  const silent = learning.mode !== 'last_byte' && event === undefined && attempt.upstream.kind === 'stream'
  if (silent) return learning.plain ? undefined : { kind: 'aborted', time }
  return { kind: 'success', time: event ?? time, value }
}

/** When the measured event came; undefined where that is the end, or where it did not come. */
function eventTime(
  { headerMs, connectMs }: Attempt,
  { mode }: Learning,
  call: Call | undefined,
): number | undefined {
  if (mode === 'last_byte') return undefined
  // Datagrams have no connection: the first that comes back shows that somebody is there.
  return mode === 'header' || call?.protocol === 'UDP' ? headerMs : connectMs
}

/** What the peer reports; undefined where nobody wants to know it, or where there is no answer that could say it. */
function reportOf(
  attempt: Attempt,
  { value }: Learning,
  call: Call | undefined,
): number | SignalReason | undefined {
  if (value === undefined || call === undefined) return undefined
  const { upstream } = attempt
  const answered =
    upstream.kind === 'stream' ? attempt.connectMs !== undefined : attempt.peerStatus !== undefined
  if (!answered) return undefined
  return reported(value, attempt, call)
}

/** Whether the header is the event that is measured, and has not been before. */
export function measuredAtHeader(attempt: Attempt, learning: Learning): boolean {
  return attempt.waiting && (learning.mode === 'header' || attempt.peerStatus === 101)
}

/** Whether the connection is the event that is measured, and has not been before. */
export function measuredAtConnect(attempt: Attempt, learning: Learning): boolean {
  return attempt.waiting && learning.mode === 'connect'
}

/** Whether `account` lets the answer count. */
function admits(learning: Learning, call: Call | undefined): boolean {
  if (learning.account === undefined) return true
  if (call === undefined) return false
  const answer = learning.account(call)
  return answer !== '' && answer !== '0'
}

/**
 * Whether the answer, complete as it may be, is no success: a status that counts as a failure or is handed on, and
 * of those passed through every 5xx but 501, 429, and the failures of gRPC. The request and not the peer is to blame for
 * other 4xx.
 */
function failedAnswer(attempt: Attempt, learning: Learning): boolean {
  if (attempt.ending === 'http' || attempt.failed) return true
  if (learning.plain) return false
  const status = attempt.peerStatus ?? 0
  return (status >= 500 && status <= 599 && status !== 501) || status === 429 || unwell(attempt)
}

/** Whether it is a call of gRPC that has ended with the peer's failure. */
function unwell({ grpcStatus }: Attempt): boolean {
  return grpcStatus !== undefined && isGrpcFailure(grpcStatus)
}
