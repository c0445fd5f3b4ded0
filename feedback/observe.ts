import { returned } from './backup-switch.ts'
import type { Call } from './call.ts'
import { type PeerStateEvent, peerStateChannel } from './channels.ts'
import { Counted } from './counted.ts'
import { ewma } from './ewma.ts'
import { exemplarSize, writeExemplar } from './exemplar.ts'
import { fail, succeed, unchoose } from './health.ts'
import { holdConn } from './held.ts'
import { bucketOf, count, wholeBounds } from './histogram.ts'
import { learnBegin, learnEnd, learnHeader } from './learn.ts'
import { endLesson, headerLesson, type Lesson } from './lesson.ts'
import type { Attempt } from './outcome.ts'
import type { Peer } from './peer.ts'
import { attemptReasons, type DenialReason, denialReasons } from './reasons.ts'
import { shadowEnded, shadowMeasured } from './shadow.ts'
import type { Upstream } from './upstream.ts'

/*
 * The one writer of what happened. Each attempt passes here twice or three times: when its peer was chosen, when
 * its header was accepted to be passed on, and when it has ended.
 */

const reasonIndex = new Map(attemptReasons.map((reason, index) => [reason, index]))
const denialIndex = new Map(denialReasons.map((reason, index) => [reason, index]))

/**
 * The peer has been chosen: from now on the attempt counts among its requests in progress. Where several threads share
 * the zone, to be called before `leave` of the choice, so that nobody else comes between.
 */
export function begin(attempt: Attempt, now: number): void {
  const { peer, upstream } = attempt
  if (peer === undefined || attempt.reserved) return
  attempt.reserved = true
  attempt.startedAt = now
  const numbers = peer.zone.peers
  holdConn(peer.zone, peer.index, 1)
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
  const lesson = headerLesson(attempt, call, now)
  const { zone, index } = peer
  zone.enter()
  try {
    // A failed answer never makes a peer look fast.
    if (!attempt.failed && !attempt.next) {
      const { headerTime } = zone.peers
      headerTime[index] = ewma(headerTime[index]!, attempt.headerMs, upstream.responseTimeFactor)
    }
    countHeader(attempt, peer)
    learnHeader(attempt, lesson, now)
  } finally {
    zone.leave()
  }
  shadowMeasured(attempt, call, now)
  upstream.sessions?.measured(attempt, call, now)
  if (attempt.returning && !attempt.failed && !attempt.next) comeBack(attempt, now)
}

/** A primary works again, as one request was to find out. */
export function comeBack(attempt: Attempt, now: number): void {
  attempt.returning = false
  returned(attempt.upstream, now)
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
  peer.zone.enter()
  let change: PeerStateEvent | undefined
  try {
    change = ended(attempt, peer, lesson, now)
  } finally {
    peer.zone.leave()
  }
  peer.zone.wake()
  shadowEnded(attempt, call, now)
  attempt.upstream.sessions?.ended(attempt, call, now)
  if (attempt.returning && !attempt.failed && !attempt.next && isAnswer(attempt)) comeBack(attempt, now)
  if (change !== undefined) peerStateChannel.publish(change)
}

function isAnswer({ ending }: Attempt): boolean {
  return ending === 'ok' || ending === 'http'
}

/** @returns the change of the peer's state that came of it */
function ended(
  attempt: Attempt,
  peer: Peer,
  lesson: Lesson | undefined,
  now: number,
): PeerStateEvent | undefined {
  const { zone, index } = peer
  const numbers = zone.peers
  holdConn(zone, index, -1)
  const { counted } = attempt
  numbers.bytesSent[index]! += Counted.rest(attempt.bytesSent, counted?.sent)
  numbers.bytesReceived[index]! += Counted.rest(attempt.bytesReceived, counted?.received)
  if (attempt.reason === undefined) numbers.succeeded[index]! += 1
  else zone.reasons[reasonIndex.get(attempt.reason)!]![index]! += 1
  const { peerStatus, grpcStatus } = attempt
  if (grpcStatus !== undefined) zone.grpcStatuses[grpcStatus]![index]! += 1
  if (peerStatus !== undefined) {
    const known = peerStatus >= 100 && peerStatus <= 599
    zone.statuses[known ? peerStatus - 100 : zone.statuses.length - 1]![index]! += 1
  }
  // Of a session it was counted as soon as it was there: some last for days.
  if (!attempt.accepted || attempt.upstream.kind === 'http') countConnection(attempt, peer)
  sampleTrack(attempt, peer)
  if (attempt.headerMs !== undefined && !attempt.accepted) countHeader(attempt, peer)
  countResponse(attempt, peer)
  learnEnd(attempt, lesson, now)
  return judge(attempt, peer, now)
}

/** Counts a request of the group that gets no attempt, or no further one. */
export function deny(upstream: Upstream, reason: DenialReason): void {
  const { zone } = upstream
  zone.enter()
  zone.denials[denialIndex.get(reason)!]! += 1
  zone.leave()
}

/**
 * A request has ended, whoever answered it. One that asked no group is none of theirs.
 * @param call its record, complete
 */
export function observeRequest(call: Call): void {
  const attempt = call.attempts.at(-1)
  // One that ended before a peer was picked for it, as when its body did not come, is the group's all the same.
  const upstream = attempt?.upstream ?? call.group
  if (upstream === undefined) return
  const { tracks, zone } = upstream
  const track = tracks.get(attempt?.peer?.options.track ?? call.track) ?? tracks.values().next().value
  if (track === undefined) return
  const { endStatus: status, traceId, spanId } = call
  const ms = call.endedAt - call.startedAt
  const exemplar = traceId === '' ? undefined : { traceId, spanId, ms, wallAt: Date.now() }
  // What a client who got a whole answer of no error did not see of it.
  const rescued = status < 500 && status !== 499 && !attempt?.failed
  const hidden = rescued ? call.attempts.filter((one) => one.failed && one.upstream === upstream) : []
  zone.enter()
  track.answered(status, status === 101 ? undefined : ms, exemplar, wholeBounds(upstream.kind))
  // Of the tracks that failed it, and not of the one that made it good.
  for (const [i, { peer }] of hidden.entries()) {
    const own = tracks.get(peer?.options.track ?? '')
    if (i === 0) own?.add('rescued', 1)
    own?.add('hidden', 1)
  }
  zone.leave()
}

/** Counts a time to the header. To be called with the zone held. */
export function countHeader(attempt: Attempt, peer: Peer): void {
  const { headerHistogram, headerSum, headerExemplars } = peer.zone
  const ms = attempt.headerMs!
  count(headerHistogram, headerSum, peer.index, ms)
  const { traceId, spanId } = attempt
  if (traceId === '') return
  const at = exemplarSize * peer.index
  writeExemplar(headerExemplars[bucketOf(ms)]!, at, { traceId, spanId, ms, wallAt: Date.now() })
}

/** Counts the connection that an attempt was made on. To be called with the zone held. */
export function countConnection({ reused, connectMs }: Attempt, { zone, index }: Peer): void {
  const numbers = zone.peers
  if (reused) numbers.reuses[index]! += 1
  else if (connectMs !== undefined) {
    numbers.connects[index]! += 1
    numbers.connectMs[index]! += connectMs
  }
}

/**
 * Counts how it ended for its track, and keeps it for a comparison. An attempt that a retry made good is a failure of its
 * track, though its client saw none; one that said nothing of the peer is left out. A connection that was closed as it was
 * used again says nothing where the same peer is asked once more; where it cannot be, the client has got an error of it.
 * Times are those of whole answers, tunnels left out; of a session, whose length is up to its client, that to the peer's
 * first byte.
 */
function sampleTrack(attempt: Attempt, peer: Peer): void {
  const track = attempt.upstream.tracks.get(peer.options.track)
  const { ending, peerStatus = 0, failed, next, resent } = attempt
  if (track === undefined || ending === 'aborted' || (ending === 'stale' && resent)) return
  const bad = failed || next || ending === 'stale' || peerStatus >= 500
  track.add('judged', 1)
  if (bad) track.add('bad', 1)
  const { reservoir } = track
  if (reservoir === undefined) return
  const timed = !bad && ending === 'ok' && peerStatus !== 101
  const ms = attempt.upstream.kind === 'stream' ? attempt.headerMs : attempt.responseMs
  reservoir.add(bad, timed ? ms : undefined, Date.now(), Math.random)
}

/** Only whole answers that the client got say how long an answer takes. A tunnel's end says nothing of that. */
function countResponse(attempt: Attempt, peer: Peer): void {
  const { ending, next, accepted, peerStatus, responseMs } = attempt
  if (!accepted || next || peerStatus === 101 || (ending !== 'ok' && ending !== 'http')) return
  const { responseHistogram, responseSum } = peer.zone
  count(responseHistogram, responseSum, peer.index, responseMs!, wholeBounds(attempt.upstream.kind))
  if (attempt.failed) return
  const { responseTime } = peer.zone.peers
  responseTime[peer.index] = ewma(responseTime[peer.index]!, responseMs!, attempt.upstream.responseTimeFactor)
}

/** Lets passive health know. @returns the change, where the peer was set aside or taken back by it */
function judge(attempt: Attempt, peer: Peer, now: number): PeerStateEvent | undefined {
  const { upstream } = attempt
  const { fails } = peer.zone.peers
  if (attempt.failed) {
    if (!fail(peer, upstream.isAlone(peer), now)) return undefined
    return { upstream, peer, state: 'unavailable', fails: fails[peer.index]!, downtimeMs: 0 }
  }
  if (isAnswer(attempt)) {
    peer.zone.peers.goodAt[peer.index] = now
    return recovered(attempt, peer, now)
  }
  // Nothing was learnt of the peer, so a half-open attempt must not keep the next one waiting.
  unchoose(peer, attempt.startedAt)
  return undefined
}

/**
 * Counts an attempt as one that says that its peer works. To be called with the zone held.
 * @returns the change, where the peer was taken back by it
 */
export function recovered(attempt: Attempt, peer: Peer, now: number): PeerStateEvent | undefined {
  const { upstream } = attempt
  const { downtimeMs } = peer.zone.peers
  const before = downtimeMs[peer.index]!
  if (!succeed(peer, now, attempt.startedAt) || upstream.isAlone(peer)) return undefined
  return { upstream, peer, state: 'up', fails: 0, downtimeMs: downtimeMs[peer.index]! - before }
}
