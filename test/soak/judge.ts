import type { Deed } from './deed.ts'
import type { Outages } from './peers.ts'

/** What the harness wants of one request. */
export interface Flow {
  /** For messages: what the client does. */
  readonly name: string
  /** Whether the configuration repeats it until a peer has answered well: then no peer's fault may reach the client. */
  readonly retried: boolean
  /** Whether an error page stands for failures: status 203. */
  readonly page?: boolean
  /** Name of the peer that its session is bound to: nobody else may be asked first. */
  readonly bound?: string | undefined
  /** The status that the program itself must answer with, whatever peers do. */
  readonly own?: number
}

/** What a client saw. */
export type Outcome =
  /** A whole answer, as it was sent. `peer` names who answered; undefined for one of the program's own. */
  | { readonly kind: 'answer'; readonly status: number; readonly peer: string | undefined }
  /** The answer broke off before its end. */
  | { readonly kind: 'cut'; readonly status: number }
  /** It left, as it was meant to. */
  | { readonly kind: 'left' }
  /** No answer, or one that nobody has sent. */
  | { readonly kind: 'wrong'; readonly text: string }

/** A line of the access log, as far as it is judged. */
export interface LogRecord {
  readonly path: string
  readonly status: number
  readonly denial: string | null
  readonly attempts: readonly LoggedAttempt[]
}

export interface LoggedAttempt {
  readonly peer: string
  readonly reason: string | null
  readonly status: number | null
  readonly at_ms: number
  readonly response_ms: number | null
  readonly reused: boolean
}

/** All that is known of a request once it is over. Times are of the machine's monotonic clock. */
export interface Facts {
  readonly flow: Flow
  readonly from: number
  readonly to: number
  readonly outcome: Outcome
  readonly record: LogRecord
  readonly deeds: readonly Deed[]
}

/** `peers`: the client saw a failure that a peer is known to have caused. `ours`: anything that nobody else did. */
export type Judgement =
  | { readonly by: 'nobody' }
  | { readonly by: 'peers'; readonly text: string }
  | { readonly by: 'ours'; readonly text: string }

/** What the judge needs to know of the peers. */
export interface Witness {
  readonly outages: Outages
  /** A peer's name by its address. */
  nameOf(address: string): string | undefined
  readonly readTimeoutMs: number
}

/**
 * How long before a request was sent a peer may have ended the connection that it went on, milliseconds: what the end
 * takes through two event loops.
 */
const endMs = 500
/** How long after its deed a peer that dies may not have told of it. */
const untoldMs = 200

/** Decides who caused what a client saw. Every attempt in the record must be what its peer says that it did. */
export function judge(facts: Facts, witness: Witness): Judgement {
  const { record, outcome, flow } = facts
  const ours = (text: string): Judgement => ({ by: 'ours', text })
  const left = [...facts.deeds]
  const first = record.attempts[0]
  if (flow.bound !== undefined && first !== undefined && witness.nameOf(first.peer) !== flow.bound)
    return ours(`${witness.nameOf(first.peer)} was asked first, and the session is bound to ${flow.bound}`)
  for (const attempt of record.attempts) {
    const peer = witness.nameOf(attempt.peer)
    if (peer === undefined) return ours(`attempt at ${attempt.peer} (${attempt.reason ?? 'ok'})`)
    const unexplained = explain(attempt, peer, facts, witness, left)
    if (unexplained !== undefined) return ours(unexplained)
  }
  if (left.length > 0) {
    return ours(`${left.map(({ peer, did }) => `${peer} ${did}`)} of which the access log does not tell`)
  }
  if (outcome.kind === 'left') return { by: 'nobody' }
  if (outcome.kind === 'wrong') return ours(outcome.text)
  const last = record.attempts.at(-1)
  if (outcome.kind === 'cut') {
    if (last?.reason === 'body_cut' || last?.reason === 'body_timeout')
      return { by: 'peers', text: last.reason }
    return ours(`answer ${outcome.status} broke off after ${last?.reason ?? 'an attempt that went well'}`)
  }
  const { status } = outcome
  if (record.status !== status) return ours(`answered ${status} and logged ${record.status}`)
  if (flow.own !== undefined) {
    return status === flow.own ? { by: 'nobody' } : ours(`answered ${status} instead of ${flow.own}`)
  }
  if (!last) return ours(`answered ${status} without an attempt`)
  const peer = witness.nameOf(last.peer)!
  const failed = last.reason !== null || (last.status ?? 0) >= 500
  const due = !failed ? last.status : flow.page ? 203 : statusOf(last)
  if (status !== due) return ours(`answered ${status} after ${peer} ${last.reason ?? last.status}`)
  const passedOn = (last.reason === null || last.reason.startsWith('http_')) && !(failed && flow.page)
  const speaker = passedOn ? peer : undefined
  if (outcome.peer !== speaker) return ours(`answer of ${outcome.peer}, and not of ${speaker}`)
  if (!failed) return { by: 'nobody' }
  if (flow.retried) return ours(`${peer} ${last.reason ?? last.status} though it could be repeated`)
  return { by: 'peers', text: `${last.reason ?? last.status}` }
}

/** What a client is told of an attempt that failed. */
function statusOf({ reason, status }: LoggedAttempt): number | null {
  if (reason === 'timeout_read' || reason === 'timeout_connect' || reason === 'timeout_send') return 504
  return reason === null || reason.startsWith('http_') ? status : 502
}

/**
 * Finds the deed or the outage that an attempt tells of.
 * @param left deeds that no attempt has told of yet; the one found is taken out
 * @returns undefined, or what nobody did
 */
function explain(
  attempt: LoggedAttempt,
  peer: string,
  facts: Facts,
  { outages, readTimeoutMs }: Witness,
  left: Deed[],
): string | undefined {
  const { reason, status } = attempt
  let taken = false
  const take = (fits: (deed: Deed) => boolean) => {
    const at = left.findIndex((deed) => deed.peer === peer && fits(deed))
    if (at >= 0) taken = true
    return at < 0 ? undefined : left.splice(at, 1)[0]
  }
  const from = facts.from + attempt.at_ms - endMs
  const to = facts.to
  const away = () => outages.shut.overlaps(peer, from, to) || outages.dead.overlaps(peer, from, to)
  /** It ended a connection that was idle, with a request under way: of that it may have seen a part. */
  const crossed = () => {
    if (!attempt.reused || !outages.hungUp.overlaps(peer, from, to)) return false
    take((deed) => deed.did === 'gone')
    return true
  }
  const did = (...words: Deed['did'][]) => take((deed) => words.includes(deed.did)) !== undefined
  if (reason === null || reason.startsWith('http_')) {
    // The rest of an answer that another peer's stands for is not waited for.
    const ends: Deed['did'][] = reason === null ? ['answered', 'tunnel'] : ['answered', 'gone']
    const deed = take((one) => one.status === status && ends.includes(one.did))
    if (!deed) {
      // Its last words went with it.
      if (outages.dead.overlaps(peer, from, to + untoldMs)) return undefined
      return `${peer} is said to have answered ${status}`
    }
    return deed.bodyGood === false ? `the body that ${peer} got was another one` : undefined
  }
  let good: boolean
  switch (reason) {
    case 'client_abort':
      good = facts.outcome.kind === 'left'
      take(() => true)
      break
    case 'refused':
    case 'unreachable':
      good = away()
      break
    case 'reset':
    case 'closed':
      good = did('reset', 'close') || away() || crossed()
      break
    case 'stale':
      good = attempt.reused && (did('reset', 'close') || away() || crossed())
      break
    case 'timeout_connect':
      good = away()
      break
    case 'timeout_read':
      good =
        did('stall') || take((deed) => deed.to - deed.from >= readTimeoutMs * 0.9) !== undefined || away()
      break
    case 'invalid_header':
      good = did('garbage')
      break
    case 'header_overflow':
      good = did('huge_head')
      break
    case 'body_cut':
      good = did('cut', 'short') || away()
      break
    case 'body_timeout':
      good = outages.dead.overlaps(peer, from, to)
      take((deed) => deed.did === 'gone' || deed.did === 'answered')
      break
    default:
      good = false
  }
  // Whatever it meant to do, it did not get to the end of it.
  if (good && !taken && away()) take(() => true)
  return good ? undefined : `${peer} did not do what is called ${reason}`
}
