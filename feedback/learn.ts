import type { Call } from './call.ts'
import { ewma, staleness } from './ewma.ts'
import { endWait, holdWait } from './held.ts'
import type { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import { setShare, totalShare, walkLimit } from './share-tree.ts'
import type { Learning, Upstream } from './upstream.ts'

/*
 * What a method that goes by times keeps of every attempt, in the zone's columns: `avg` learns from successful
 * answers and from time-outs, `ok` from success and failure, and `waiting` and `startSum` tell how long those that
 * wait have waited. Nothing here does anything for a group whose method learns nothing.
 */

/** An attempt has been reserved: it waits now for the event that is measured. */
export function learnBegin(attempt: Attempt, now: number): void {
  const { upstream, peer } = attempt
  if (upstream.learning === undefined || peer === undefined || attempt.waiting) return
  attempt.waiting = true
  attempt.startedAt = now
  holdWait(upstream.zone, peer.index, now)
}

/** What an attempt teaches, read of it and of its call before anybody holds the group's numbers. */
export interface Lesson {
  /** `answered` is a success without a time worth keeping. */
  readonly kind: 'success' | 'answered' | 'failure' | 'timeout' | 'aborted'
  /** What was measured, or how long was waited; milliseconds. */
  readonly time: number
}

/**
 * What the header teaches, which is the measured event of `header` mode, and in every mode that of a switch of
 * protocols, which has no last byte worth waiting for. To be called once the answer has been classified: `peerStatus`,
 * `headerMs`, `ending` and `failed` are read.
 * @param call what `account` is asked about; undefined where no call is behind the attempt
 * @returns undefined for nothing
 */
export function headerLesson(attempt: Attempt, call: Call | undefined, now: number): Lesson | undefined {
  const { learning } = attempt.upstream
  if (learning === undefined || !measuredAtHeader(attempt, learning) || !counts(learning, call))
    return undefined
  const time = attempt.headerMs ?? now - attempt.startedAt
  if (failedAnswer(attempt, learning)) return { kind: 'failure', time }
  return { kind: learning.mode === 'header' ? 'success' : 'answered', time }
}

/** The header has come: keeps what it teaches. To be called with the zone held. */
export function learnHeader(attempt: Attempt, lesson: Lesson | undefined, now: number): void {
  const { upstream, peer } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined || !measuredAtHeader(attempt, learning)) return
  release(attempt, peer)
  if (lesson !== undefined) learn(attempt, peer, learning, lesson, now)
}

/**
 * What the end of an attempt teaches, with `ending`, `failed` and `responseMs` filled in.
 * @param call as for `headerLesson`
 * @returns undefined for nothing
 */
export function endLesson(attempt: Attempt, call: Call | undefined, now: number): Lesson | undefined {
  const { ending, waiting: unmeasured } = attempt
  const { learning } = attempt.upstream
  if (learning === undefined || attempt.peer === undefined) return undefined
  // These say nothing of the peer.
  if (ending === undefined || ending === 'stale' || ending === 'no_live') return undefined
  const time = attempt.responseMs ?? now - attempt.startedAt
  if (ending === 'aborted') {
    return unmeasured && !learning.plain && counts(learning, call) ? { kind: 'aborted', time } : undefined
  }
  if (learning.plain && ending !== 'ok') return undefined
  const broken = ending === 'error' || ending === 'timeout' || ending === 'invalid_header'
  // A failure that does not count against the peer is this machine's own: no descriptor, no port.
  if (broken && !attempt.failed) return undefined
  // What was measured at the header is learnt; only a break in the body after a good header has more to say.
  if (!unmeasured && !(broken && attempt.learnt === 'success')) return undefined
  if (!counts(learning, call)) return undefined
  if (ending === 'timeout' && unmeasured) return { kind: 'timeout', time }
  if (broken || failedAnswer(attempt, learning)) return { kind: 'failure', time }
  const header = learning.mode === 'header' ? attempt.headerMs : undefined
  return { kind: 'success', time: header ?? time }
}

/** The attempt has ended: keeps what that teaches. To be called with the zone held. */
export function learnEnd(attempt: Attempt, lesson: Lesson | undefined, now: number): void {
  const { upstream, peer } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined) return
  release(attempt, peer)
  if (lesson !== undefined) learn(attempt, peer, learning, lesson, now)
}

/**
 * Total time, milliseconds, that what waits at the peer has waited.
 * @param now monotonic milliseconds
 */
export function waitingAge(peer: Peer, now: number): number {
  const { waiting, startSum } = peer.zone.peers
  return Math.max(0, waiting[peer.index]! * now - startSum[peer.index]!)
}

function release(attempt: Attempt, peer: Peer): void {
  if (!attempt.waiting) return
  attempt.waiting = false
  endWait(attempt.upstream.zone, peer.index, attempt.startedAt)
}

function measuredAtHeader(attempt: Attempt, learning: Learning): boolean {
  return attempt.waiting && (learning.mode === 'header' || attempt.peerStatus === 101)
}

function counts(learning: Learning, call: Call | undefined): boolean {
  if (learning.account === undefined) return true
  if (call === undefined) return false
  const answer = learning.account(call)
  return answer !== '' && answer !== '0'
}

/**
 * Whether the answer, complete as it may be, is no success: a status that counts as a failure or is handed on, and
 * of those passed through every 5xx but 501, and 429. The request and not the peer is to blame for other 4xx.
 */
function failedAnswer(attempt: Attempt, learning: Learning): boolean {
  if (attempt.ending === 'http' || attempt.failed) return true
  if (learning.plain) return false
  const status = attempt.peerStatus ?? 0
  return (status >= 500 && status <= 599 && status !== 501) || status === 429
}

function learn(attempt: Attempt, peer: Peer, learning: Learning, { kind, time }: Lesson, now: number): void {
  if (kind === 'aborted') {
    aborted(attempt, peer, learning, time, now)
  } else if (kind === 'failure') {
    attempt.learnt = 'failure'
    // Failing fast is no merit: the time of a failure is not looked at.
    if (!learning.plain) teach(attempt, peer, learning, undefined, 0, now)
  } else if (kind === 'timeout') {
    attempt.learnt = 'failure'
    teach(attempt, peer, learning, time, 0, now)
  } else if (kind === 'success') {
    attempt.learnt = 'success'
    teach(attempt, peer, learning, time, 1, now)
  } else {
    teach(attempt, peer, learning, undefined, 1, now)
  }
}

/**
 * A client that leaves says nothing, unless it had waited longer than usual: the answer would have taken at least
 * as long. A peer without an average is held to the group's.
 */
function aborted(attempt: Attempt, peer: Peer, learning: Learning, waited: number, now: number): void {
  const usual = base(attempt, peer) || attempt.upstream.zone.get('lastAverage')
  if (usual > 0 && waited > usual) teach(attempt, peer, learning, waited, undefined, now)
}

/** The average from which to go on: the one the pick had seen, unless another answer came in between. */
function base(attempt: Attempt, peer: Peer): number {
  const { avg, answeredAt } = peer.zone.peers
  const untouched = answeredAt[peer.index]! <= attempt.startedAt
  return attempt.drifted > 0 && untouched ? attempt.drifted : avg[peer.index]!
}

/**
 * @param time milliseconds for the average; undefined leaves it
 * @param good 1 for a success, 0 for a failure; undefined leaves the rate of success
 */
function teach(
  attempt: Attempt,
  peer: Peer,
  learning: Learning,
  time: number | undefined,
  good: 0 | 1 | undefined,
  now: number,
): void {
  const { upstream } = attempt
  const { zone } = upstream
  const { index } = peer
  const { avg, ok, answeredAt, answersMark } = zone.peers
  const before = avg[index]!
  const answers = zone.get('answers')
  let keep = learning.factor
  if (learning.decay > 0 && answeredAt[index]! > 0) {
    // After a gap a new answer counts for more.
    const list = peer.options.backup ? upstream.backups : upstream.peers
    const since = answers - answersMark[index]!
    const idle = now - answeredAt[index]!
    keep = Math.min(keep, Math.exp(-staleness(idle / learning.decay, since / (100 * list.length))))
  }
  const from = base(attempt, peer)
  avg[index] = time === undefined ? from : ewma(from, time, keep)
  if (good !== undefined) ok[index] = ok[index]! * keep + good * (1 - keep)
  answeredAt[index] = now
  answersMark[index] = answers + 1
  zone.set('answers', answers + 1)
  if (avg[index] !== before) share(upstream, learning, peer, before)
}

/** Passes a changed average on to what is drawn from it. */
function share(upstream: Upstream, learning: Learning, peer: Peer, before: number): void {
  const { zone } = upstream
  const trees = learning.plain === true && upstream.peers.length > walkLimit
  // A first average moves the group's mean, by which peers without one are measured: take it anew at the next pick.
  if (before === 0 && (trees || zone.get('lastAverage') === 0)) zone.set('medianAt', 0)
  if (!trees || peer.options.backup || peer.retired) return
  const floor = totalShare(zone) / upstream.peers.length / 100
  setShare(zone, peer.index, Math.max(1 / zone.peers.avg[peer.index]!, floor))
}
