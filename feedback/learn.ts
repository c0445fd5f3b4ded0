import type { Call } from './call.ts'
import { ewma } from './ewma.ts'
import { endWait, holdWait } from './held.ts'
import { type Lesson, lessonOf, measuredAtConnect, measuredAtHeader } from './lesson.ts'
import type { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import { longestRecord, remains } from './remains.ts'
import { ignore, keepReport } from './report.ts'
import { setShare, totalShare, walkLimit } from './share-tree.ts'
import { isCurrent } from './signal.ts'
import type { Learning, Upstream } from './upstream.ts'
import type { Zone } from './zone.ts'

/*
 * What a method that goes by times or by reports keeps of every attempt, in the zone's columns: `avg` learns from
 * successful answers and from time-outs, `ok` from success and failure, `report` from what the peers say of
 * themselves, and `waiting` and `startSum` tell how long those that wait have waited. Nothing here does anything for
 * a group whose method learns nothing.
 */

/** An attempt has been reserved: it waits now for the event that is measured. */
export function learnBegin(attempt: Attempt, now: number): void {
  const { upstream, peer } = attempt
  if (upstream.learning === undefined || peer === undefined || attempt.waiting) return
  attempt.waiting = true
  attempt.startedAt = now
  holdWait(upstream.zone, peer.index, now)
}

/** The connection is there: keeps what it teaches. To be called with the zone held. */
export function learnConnect(attempt: Attempt, lesson: Lesson | undefined, now: number): void {
  const { upstream, peer } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined || !measuredAtConnect(attempt, learning)) return
  release(attempt, peer)
  if (lesson !== undefined) learn(attempt, peer, learning, lesson, now)
}

/** The header has come: keeps what it teaches. To be called with the zone held. */
export function learnHeader(attempt: Attempt, lesson: Lesson | undefined, now: number): void {
  const { upstream, peer } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined || !measuredAtHeader(attempt, learning)) return
  release(attempt, peer)
  if (lesson !== undefined) learn(attempt, peer, learning, lesson, now)
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
 * Learns from a probe's answer, or its failure, what an ordinary attempt would teach: only where `account` asks about
 * probes and admits this one. The attempt was never begun: it counts nowhere else. Holds the zone itself.
 * @param attempt over, with `peerStatus`, `headers`, `headerMs`, `responseMs`, `ending` and `failed` filled in
 * @param call the probe's, its last attempt being this one
 */
export function learnProbe(attempt: Attempt, call: Call, now: number): void {
  const { upstream, peer } = attempt
  const { learning, zone } = upstream
  upstream.shadow?.probed(attempt, call, now)
  if (learning?.probes !== true || peer === undefined) return
  const lesson = lessonOf(attempt, learning, call, true, now)
  if (lesson === undefined) return
  zone.enter()
  try {
    // Its slot may be another peer's by now.
    if (!peer.retired) learn(attempt, peer, learning, lesson, now)
  } finally {
    zone.leave()
  }
}

/**
 * Total time, milliseconds, that what waits at the peer has waited.
 * @param now monotonic milliseconds
 */
export function waitingAge(peer: Peer, now: number): number {
  const { waiting, startSum } = peer.zone.peers
  return Math.max(0, waiting[peer.index]! * now - startSum[peer.index]!)
}

/** Total time, milliseconds, that what is stuck at the peer at other instances has been there. */
export function stuckAge({ stuckCount, stuckStart }: Zone['peers'], index: number, now: number): number {
  return Math.max(0, stuckCount[index]! * now - stuckStart[index]!)
}

function release(attempt: Attempt, peer: Peer): void {
  if (!attempt.waiting) return
  attempt.waiting = false
  endWait(attempt.upstream.zone, peer.index, attempt.startedAt)
}

function learn(attempt: Attempt, peer: Peer, learning: Learning, lesson: Lesson, now: number): void {
  if (!isCurrent(attempt.upstream)) return
  const { kind, time } = lesson
  if (kind === 'success') attempt.learnt = 'success'
  else if (kind === 'failure' || kind === 'timeout') attempt.learnt = 'failure'
  if (learning.value !== undefined) {
    learnValue(attempt, peer, learning, lesson, now)
  } else if (kind === 'success') {
    teach(attempt, peer, learning, time, 1, now)
  } else if (kind === 'timeout') {
    teach(attempt, peer, learning, time, 0, now)
  } else if (kind === 'answered') {
    teach(attempt, peer, learning, undefined, 1, now)
  } else if (kind === 'aborted') {
    aborted(attempt, peer, learning, time, now)
  } else if (!learning.plain) {
    // Failing fast is no merit: the time of a failure is not looked at.
    teach(attempt, peer, learning, undefined, 0, now)
  }
}

/** Where reports are gone by, times are not; success and failure are, and a failed answer may bring a report too. */
function learnValue(
  attempt: Attempt,
  peer: Peer,
  learning: Learning,
  { kind, value }: Lesson,
  now: number,
): void {
  const { zone } = attempt.upstream
  const { index } = peer
  if (kind === 'success' || kind === 'answered') answered(attempt, peer, learning, 1, now)
  else if (kind === 'failure' || kind === 'timeout') answered(attempt, peer, learning, 0, now)
  if (typeof value === 'string') ignore(zone, index, value)
  if (typeof value !== 'number') return
  zone.peers.valueCount[index]! += 1
  zone.peers.valueSum[index]! += value
  const { reportAt, reportMark } = zone.peers
  const keep = remains(attempt.upstream, peer, learning, reportAt[index]!, reportMark[index]!, now)
  keepReport(attempt.upstream, peer, value, keep, learning.value?.expire ?? 0, now)
}

/**
 * A client that leaves says nothing, unless it had waited longer than usual: the answer would have taken at least
 * as long. A peer without an average is held to the group's.
 */
function aborted(attempt: Attempt, peer: Peer, learning: Learning, waited: number, now: number): void {
  const usual = base(attempt, peer) || attempt.upstream.cohort(peer).lastAverage
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
 * @param good as for `answered`
 */
function teach(
  attempt: Attempt,
  peer: Peer,
  learning: Learning,
  time: number | undefined,
  good: 0 | 1 | undefined,
  now: number,
): void {
  const { avg } = peer.zone.peers
  const before = avg[peer.index]!
  const from = base(attempt, peer)
  const keep = answered(attempt, peer, learning, good, now)
  const after = time === undefined ? from : ewma(from, time, keep)
  avg[peer.index] = after
  if (after !== before) share(attempt.upstream, learning, peer, before)
}

/**
 * Counts an answer.
 * @param good 1 for a success, 0 for a failure; undefined leaves the rate of success
 * @returns how much of an old average stays beside it
 */
function answered(
  { upstream, startedAt }: Attempt,
  peer: Peer,
  learning: Learning,
  good: 0 | 1 | undefined,
  now: number,
): number {
  const { zone } = upstream
  const { index } = peer
  const { ok, answeredAt, answersMark } = zone.peers
  // The gap ends when the peer was asked again: while it stood still with requests waiting nobody forgot it, and
  // the late answers, long as they took, are no better evidence than any other.
  const keep = remains(upstream, peer, learning, answeredAt[index]!, answersMark[index]!, startedAt)
  if (good !== undefined) {
    const stays = Math.min(keep, longestRecord)
    ok[index] = ok[index]! * stays + good * (1 - stays)
    zone.peers.answers[index]! += 1
    zone.peers.goodAnswers[index]! += good
  }
  const cohort = upstream.cohort(peer)
  const answers = cohort.answers + 1
  answeredAt[index] = now
  answersMark[index] = answers
  cohort.answers = answers
  return keep
}

/**
 * Whether shares are kept in a tree: those of large groups under `plain`. There is one tree, so where requests are split
 * every track is walked.
 */
export function hasTree({ peers, split }: Upstream, { plain }: Learning): boolean {
  return plain === true && !split && peers.length > walkLimit
}

/** Passes a changed average on to what is drawn from it. */
function share(upstream: Upstream, learning: Learning, peer: Peer, before: number): void {
  const { zone } = upstream
  const trees = hasTree(upstream, learning)
  const cohort = upstream.cohort(peer)
  // A first average moves the mean, by which peers without one are measured: take it anew at the next pick.
  if (before === 0 && (trees || cohort.lastAverage === 0)) cohort.medianAt = 0
  if (!trees || peer.options.backup || peer.retired) return
  const floor = totalShare(zone) / upstream.peers.length / 100
  setShare(zone, peer.index, Math.max(1 / zone.peers.avg[peer.index]!, floor))
}
