import { type GrpcRetryWord, grpcRetryWord, isGrpcFailure } from './grpc-status.ts'
import type { Ending } from './outcome.ts'
import type { RetryKind, RetryPolicy } from './policy.ts'
import type { AttemptReason, DenialReason } from './reasons.ts'

/** What happened to an attempt, as soon as it is known whether it may go to another peer. */
export type AttemptEvent =
  /** A complete header came. */
  | {
      readonly kind: 'status'
      readonly status: number
      /** That of gRPC, where the call has ended with the header. */
      readonly grpc?: number | undefined
    }
  /** None came, or the body after it broke off. */
  | {
      readonly kind: 'failure'
      readonly ending: Ending
      readonly reason: AttemptReason
      /** Whether this machine could not even try (no file descriptor, no port), which says nothing of the peer. */
      readonly local?: boolean
    }

/** What is known of the request when it is judged. */
export interface AttemptFacts {
  readonly method: string
  /** Whether any byte of the request may have reached the peer. */
  readonly sent: boolean
  /** Whether any byte of the response came. */
  readonly answered: boolean
  /** Whether the peer has said that it has not looked at the request. */
  readonly unseen?: boolean
  /** Whether the request can be sent again in full: without a body, or with one that is still at hand. */
  readonly replayable: boolean
  /** Attempts that are left after this one. */
  readonly triesLeft: number
  /** Since the first attempt of this request began, milliseconds. */
  readonly elapsedMs: number
  /** Whether the retry budget has room; asked last, when all else speaks for another attempt. */
  mayRetry(): boolean
}

export interface Verdict {
  /** Whether the attempt counts against the peer. */
  readonly failed: boolean
  /** Whether the request goes on to another peer. Where it does not, a status that came is passed to the client. */
  readonly next: boolean
  /** Whether the same peer is to be asked once more on a fresh connection, at no charge. */
  readonly resend: boolean
  /** Undefined for plain success. */
  readonly reason: AttemptReason | undefined
  /** The peer's status, or the one that the failure stands for: 502, 504, or 499 when the client left. */
  readonly status: number
  /** Why it does not go on, where the failure is of a kind that may; undefined otherwise. */
  readonly denial: DenialReason | undefined
}

/** Methods that may do something twice when sent twice. */
const oneShot: ReadonlySet<string> = new Set(['POST', 'LOCK', 'PATCH'])

/** Statuses that `proxy_next_upstream` can list, with the word of each. */
const statusReasons: ReadonlyMap<number, AttemptReason & RetryKind> = new Map([
  [403, 'http_403'],
  [404, 'http_404'],
  [429, 'http_429'],
  [500, 'http_500'],
  [502, 'http_502'],
  [503, 'http_503'],
  [504, 'http_504'],
])

/**
 * Judges an attempt: does it count against the peer, and may another peer be tried? Transport failures, time-outs and
 * broken headers always count against the peer, whatever is listed; statuses only where they are listed, and 403 and
 * 404 never; those of gRPC where they say that the peer did not do its work.
 */
export function classify(event: AttemptEvent, policy: RetryPolicy, facts: AttemptFacts): Verdict {
  if (event.kind === 'status') {
    const { status } = event
    const reason = statusReasons.get(status)
    if (reason === undefined || !policy.on.has(reason)) return judgeGrpc(event.grpc, status, policy, facts)
    return goOn(status !== 403 && status !== 404, reason, reason, status, policy, facts)
  }
  const { ending, reason } = event
  // What a peer has begun and was not let end is nobody's failure, and goes on as one that an error has ended.
  if (reason === 'dropped') return goOn(false, reason, 'error', 502, policy, facts)
  if (ending === 'aborted') return verdict(false, reason, 499)
  if (ending === 'stale') return stale(policy, facts)
  const status = ending === 'timeout' ? 504 : 502
  // Part of the answer is with the client already: there is no taking it back.
  if (reason === 'body_cut' || reason === 'body_timeout') return verdict(true, reason, status)
  const kind = ending === 'timeout' || ending === 'invalid_header' ? ending : 'error'
  return goOn(event.local !== true, reason, kind, status, policy, facts)
}

/**
 * Every call of gRPC is a POST: it is who lists a status that says that calls which end with it may be sent again, as
 * the retry policies of its clients do.
 */
function judgeGrpc(
  grpc: number | undefined,
  status: number,
  policy: RetryPolicy,
  facts: AttemptFacts,
): Verdict {
  const word = grpc === undefined ? undefined : listedGrpc(grpc, policy)
  if (word === undefined) return verdict(false, undefined, status)
  return goOn(isGrpcFailure(grpc!), word, word, status, { ...policy, nonIdempotent: true }, facts)
}

/** The word of a status of gRPC, where it is listed. */
export function listedGrpc(grpc: number, policy: RetryPolicy): GrpcRetryWord | undefined {
  const word = grpcRetryWord(grpc)
  return word !== undefined && policy.on.has(word) ? word : undefined
}

function verdict(failed: boolean, reason: AttemptReason | undefined, status: number): Verdict {
  return { failed, next: false, resend: false, reason, status, denial: undefined }
}

function goOn(
  failed: boolean,
  reason: AttemptReason,
  kind: RetryKind | GrpcRetryWord,
  status: number,
  policy: RetryPolicy,
  facts: AttemptFacts,
): Verdict {
  const stays = verdict(failed, reason, status)
  if (!policy.on.has(kind)) return stays
  const denial = obstacle(policy, facts)
  return denial === undefined ? { ...stays, next: true } : { ...stays, denial }
}

/** What forbids another attempt of a request whose failure is of a listed kind. */
function obstacle(policy: RetryPolicy, facts: AttemptFacts): DenialReason | undefined {
  if (!repeatable(policy, facts)) return 'not_replayable'
  if (facts.triesLeft <= 0) return 'tries'
  if (policy.timeout > 0 && facts.elapsedMs >= policy.timeout) return 'deadline'
  return facts.mayRetry() ? undefined : 'budget'
}

/** Whether the request may and can be sent once more. One that never left this machine always can. */
function repeatable(policy: RetryPolicy, facts: AttemptFacts): boolean {
  if (!facts.sent) return true
  const harmless = facts.unseen === true || policy.nonIdempotent || !oneShot.has(facts.method)
  return facts.replayable && harmless
}

/**
 * The peer had closed a kept connection when it was reused. That is no failure of anyone, so it costs no try, no
 * budget and no mark, and is no matter of `proxy_next_upstream`: the request goes to the same peer again, unless it
 * may have been executed and must not be twice.
 */
function stale(policy: RetryPolicy, facts: AttemptFacts): Verdict {
  const base = verdict(false, 'stale', 502)
  if (facts.answered || !repeatable(policy, facts)) return { ...base, denial: 'not_replayable' }
  return { ...base, resend: true }
}
