import type { Call } from './call.ts'
import { ewma, staleness } from './ewma.ts'
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
  upstream.zone.peers.waiting[peer.index]! += 1
  upstream.zone.peers.startSum[peer.index]! += now
}

/**
 * The header has come: the measured event of `header` mode, and in every mode of a switch of protocols, which has
 * no last byte worth waiting for. To be called once the answer has been classified: `peerStatus`, `headerMs`,
 * `ending` and `failed` are read.
 * @param call what `account` is asked about; undefined where no call is behind the attempt
 */
export function learnHeader(attempt: Attempt, call: Call | undefined, now: number): void {
  const { upstream, peer } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined || !attempt.waiting) return
  const tunnel = attempt.peerStatus === 101
  if (learning.mode !== 'header' && !tunnel) return
  release(attempt, peer)
  if (!counts(learning, call)) return
  if (failedAnswer(attempt, learning)) failure(attempt, peer, learning, now)
  else if (learning.mode === 'header') success(attempt, peer, learning, attempt.headerMs, now)
  else teach(attempt, peer, learning, undefined, 1, now)
}

/**
 * The attempt has ended, with `ending`, `failed` and `responseMs` filled in.
 * @param call as for `learnHeader`
 */
export function learnEnd(attempt: Attempt, call: Call | undefined, now: number): void {
  const { upstream, peer, ending } = attempt
  const { learning } = upstream
  if (learning === undefined || peer === undefined) return
  const unmeasured = attempt.waiting
  release(attempt, peer)
  // These say nothing of the peer.
  if (ending === undefined || ending === 'stale' || ending === 'no_live') return
  if (ending === 'aborted') {
    if (unmeasured && !learning.plain && counts(learning, call)) aborted(attempt, peer, learning, now)
    return
  }
  if (learning.plain && ending !== 'ok') return
  const broken = ending === 'error' || ending === 'timeout' || ending === 'invalid_header'
  // A failure that does not count against the peer is this machine's own: no descriptor, no port.
  if (broken && !attempt.failed) return
  // What was measured at the header is learnt; only a break in the body after a good header has more to say.
  if (!unmeasured && !(broken && attempt.learnt === 'success')) return
  if (!counts(learning, call)) return
  if (ending === 'timeout' && unmeasured) {
    attempt.learnt = 'failure'
    teach(attempt, peer, learning, attempt.responseMs ?? now - attempt.startedAt, 0, now)
  } else if (broken || failedAnswer(attempt, learning)) {
    failure(attempt, peer, learning, now)
  } else {
    const time = learning.mode === 'header' ? attempt.headerMs : attempt.responseMs
    success(attempt, peer, learning, time, now)
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

function release(attempt: Attempt, peer: Peer): void {
  if (!attempt.waiting) return
  attempt.waiting = false
  const { waiting, startSum } = attempt.upstream.zone.peers
  const left = Math.max(0, waiting[peer.index]! - 1)
  waiting[peer.index] = left
  // At none the sum starts afresh, so that its rounding errors never add up.
  startSum[peer.index] = left === 0 ? 0 : startSum[peer.index]! - attempt.startedAt
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

function success(
  attempt: Attempt,
  peer: Peer,
  learning: Learning,
  time: number | undefined,
  now: number,
): void {
  attempt.learnt = 'success'
  teach(attempt, peer, learning, time ?? now - attempt.startedAt, 1, now)
}

/** Failing fast is no merit: the time of a failure is not looked at. */
function failure(attempt: Attempt, peer: Peer, learning: Learning, now: number): void {
  attempt.learnt = 'failure'
  if (learning.plain) return
  teach(attempt, peer, learning, undefined, 0, now)
}

/**
 * A client that leaves says nothing, unless it had waited longer than usual: the answer would have taken at least
 * as long. A peer without an average is held to the group's.
 */
function aborted(attempt: Attempt, peer: Peer, learning: Learning, now: number): void {
  const waited = attempt.responseMs ?? now - attempt.startedAt
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
  if (!trees || peer.options.backup || peer.life.retired) return
  const floor = totalShare(zone) / upstream.peers.length / 100
  setShare(zone, peer.index, Math.max(1 / zone.peers.avg[peer.index]!, floor))
}
