import type { Call } from '../../feedback/call.ts'
import type { Verdict } from '../../feedback/classify.ts'
import { monotonic } from '../../feedback/clock.ts'
import { deny, observe } from '../../feedback/observe.ts'
import { Attempt } from '../../feedback/outcome.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { publishAttempt } from '../telemetry/channels.ts'
import { tracing } from '../telemetry/tracing.ts'
import type { Try } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import type { PeerGroup } from './pools.ts'
import type { TryFailure } from './try-failure.ts'

/** Why a request gets no peer. */
export type NoPeer = 'overflow' | 'no_live' | 'queue_full' | 'queue_timeout'

/** Writes on the attempt what became of it. */
export function settle(trial: Try, verdict: Verdict, failure: TryFailure | undefined): void {
  const { attempt } = trial
  attempt.failed = verdict.failed
  attempt.next = verdict.next
  attempt.resent = verdict.resend
  attempt.reason = verdict.reason
  attempt.status = verdict.status
  if (failure) {
    attempt.ending = failure.ending
    attempt.detail = failure.detail
  } else {
    attempt.ending = verdict.failed || verdict.next ? 'http' : 'ok'
  }
}

/** Keeps the connection of a try for another one, where that can be; closes it otherwise. */
export function keep(group: PeerGroup, trial: Try, persistent: boolean): void {
  const { connection } = trial
  if (!connection) return
  if (persistent && trial.finished && trial.sentAll) group.pool.put(connection, monotonic())
  else connection.destroy()
}

/** Tells the memory, and whoever listens, that an attempt has ended. */
export function finish(exchange: Exchange, attempt: Attempt): void {
  const now = monotonic()
  attempt.responseMs ??= now - attempt.startedAt
  observe(attempt, exchange.call, now)
  tracing?.ended(exchange.call, attempt)
  publishAttempt(exchange.call, attempt)
}

/**
 * Notes that a request gets no peer, and why.
 * @param detail for people
 * @param sticky what became of its session; empty where the group binds none
 */
export function leaveUnasked(
  call: Call,
  upstream: Upstream,
  denial: NoPeer,
  detail: string,
  sticky = '',
): void {
  const attempt = new Attempt(upstream, undefined, monotonic(), '')
  attempt.ending = 'no_live'
  attempt.status = 502
  attempt.detail = detail
  attempt.sticky = sticky
  call.attempts.push(attempt)
  call.denial = denial
  deny(upstream, denial)
  publishAttempt(call, attempt)
}
