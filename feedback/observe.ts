import type { Call } from './call.ts'
import { release } from './carry.ts'
import { type PeerStateEvent, peerStateChannel } from './channels.ts'
import { ewma } from './ewma.ts'
import { fail, succeed, unchoose } from './health.ts'
import { count } from './histogram.ts'
import { endLesson, headerLesson, learnBegin, learnEnd, learnHeader } from './learn.ts'
import type { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import { attemptReasons, type DenialReason, denialReasons } from './reasons.ts'
import type { Upstream } from './upstream.ts'

/*
 * The one writer of what happened. Each attempt passes here twice or three times: when its peer was chosen, when
 * its header was accepted to be passed on, and when it has ended.
 */

const reasonIndex = new Map(attemptReasons.map((reason, index) => [reason, index]))
const denialIndex = new Map(denialReasons.map((reason, index) => [reason, index]))

/** The peer has been chosen: from now on the attempt counts among its requests in progress. */
export function begin(attempt: Attempt, now: number): void {
  const { peer, upstream } = attempt
  if (peer === undefined || attempt.reserved) return
  attempt.reserved = true
  attempt.startedAt = now
  const numbers = peer.zone.peers
  numbers.conns[peer.index]! += 1
  numbers.selected[peer.index]! += 1
  numbers.selectedWallAt[peer.index] = Date.now()
  // The choice itself starts the wait for the next half-open attempt of a peer that is set aside.
  numbers.checkedAt[peer.index] = now
  upstream.zone.add('tries', 1)
  learnBegin(attempt, now)
}

/**
 * The peer's header has come and goes to the client. Not for an attempt whose answer is dropped, for another peer or
 * for a page of our own.
 * @param attempt judged already: `peerStatus`, `failed`, `next` and `ending` are read
 * @param call what conditions of learning are asked about; undefined where no call is behind the attempt
 * @param now moment of the header
 */
export function measured(attempt: Attempt, call: Call | undefined, now: number): void {
  const { peer, upstream } = attempt
  if (peer === undefined || !attempt.reserved || attempt.accepted) return
  attempt.accepted = true
  attempt.headerMs ??= now - attempt.startedAt
  // What reads variables comes before any number is changed.
  const lesson = headerLesson(attempt, call, now)
  // A failed answer never makes a peer look fast.
  if (!attempt.failed && !attempt.next) {
    const { headerTime } = peer.zone.peers
    headerTime[peer.index] = ewma(headerTime[peer.index]!, attempt.headerMs, upstream.responseTimeFactor)
  }
  countHeader(attempt, peer)
  learnHeader(attempt, lesson, now)
}

/**
 * The attempt has ended. A second call for the same attempt does nothing.
 * @param attempt with `ending`, `reason`, `failed`, `next`, `peerStatus` and the bytes filled in; `responseMs` is
 *   filled in here where it is not
 * @param call as for `measured`
 */
export function observe(attempt: Attempt, call: Call | undefined, now: number): void {
  const { peer } = attempt
  attempt.responseMs ??= now - attempt.startedAt
  if (peer === undefined || !attempt.reserved) return
  attempt.reserved = false
  const lesson = endLesson(attempt, call, now)
  const { zone, index } = peer
  const numbers = zone.peers
  numbers.conns[index]! -= 1
  numbers.bytesSent[index]! += attempt.bytesSent
  numbers.bytesReceived[index]! += attempt.bytesReceived
  if (attempt.reason === undefined) numbers.succeeded[index]! += 1
  else zone.reasons[reasonIndex.get(attempt.reason)!]![index]! += 1
  const { peerStatus } = attempt
  if (peerStatus !== undefined) {
    const known = peerStatus >= 100 && peerStatus <= 599
    zone.statuses[known ? peerStatus - 100 : zone.statuses.length - 1]![index]! += 1
  }
  if (attempt.headerMs !== undefined && !attempt.accepted) countHeader(attempt, peer)
  countResponse(attempt, peer)
  learnEnd(attempt, lesson, now)
  judge(attempt, peer, now)
  if (peer.life.retired && numbers.conns[index] === 0) release(peer)
}

/** Counts a request of the group that gets no attempt, or no further one. */
export function deny(upstream: Upstream, reason: DenialReason): void {
  upstream.zone.denials[denialIndex.get(reason)!]! += 1
}

function countHeader(attempt: Attempt, peer: Peer): void {
  const { headerHistogram, headerSum } = peer.zone
  count(headerHistogram, headerSum, peer.index, attempt.headerMs!)
}

/** Only whole answers that the client got say how long an answer takes. A tunnel's end says nothing of that. */
function countResponse(attempt: Attempt, peer: Peer): void {
  const { ending, next, accepted, peerStatus, responseMs } = attempt
  if (!accepted || next || peerStatus === 101 || (ending !== 'ok' && ending !== 'http')) return
  const { responseHistogram, responseSum } = peer.zone
  count(responseHistogram, responseSum, peer.index, responseMs!)
  if (attempt.failed) return
  const { responseTime } = peer.zone.peers
  responseTime[peer.index] = ewma(responseTime[peer.index]!, responseMs!, attempt.upstream.responseTimeFactor)
}

/** Lets passive health know, and tells of the change where the peer was set aside or taken back by it. */
function judge(attempt: Attempt, peer: Peer, now: number): void {
  const { upstream, ending } = attempt
  const { fails, downtimeMs } = peer.zone.peers
  if (attempt.failed) {
    if (fail(peer, upstream.single, now)) tell(upstream, peer, 'unavailable', fails[peer.index]!, 0)
  } else if (ending === 'ok' || ending === 'http') {
    const before = downtimeMs[peer.index]!
    const back = succeed(peer, now, attempt.startedAt)
    if (back && !upstream.single) tell(upstream, peer, 'up', 0, downtimeMs[peer.index]! - before)
  } else {
    // Nothing was learnt of the peer, so a half-open attempt must not keep the next one waiting.
    unchoose(peer, attempt.startedAt)
  }
}

function tell(
  upstream: Upstream,
  peer: Peer,
  state: PeerStateEvent['state'],
  fails: number,
  downtimeMs: number,
): void {
  if (!peerStateChannel.hasSubscribers) return
  const event: PeerStateEvent = { upstream, peer, state, fails, downtimeMs }
  peerStateChannel.publish(event)
}
