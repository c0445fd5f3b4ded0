import type { Call } from './call.ts'
import { type PeerStateEvent, peerStateChannel } from './channels.ts'
import { ewma } from './ewma.ts'
import { learnConnect, learnHeader } from './learn.ts'
import { connectLesson, headerLesson } from './lesson.ts'
import { comeBack, countConnection, countHeader, recovered } from './observe.ts'
import type { Attempt } from './outcome.ts'
import { shadowConnected, shadowMeasured } from './shadow.ts'

/*
 * What sessions of `stream` tell between `begin` and `observe`: the connection that is there, by which a peer is known to
 * work, and the first byte that it sent.
 */

/**
 * The connection to the peer of an attempt is established.
 * @param attempt `connectMs` is filled in where it is not
 * @param call what conditions of learning are asked about
 */
export function connected(attempt: Attempt, call: Call, now: number): void {
  const { peer, upstream } = attempt
  if (peer === undefined || !attempt.reserved || attempt.accepted) return
  attempt.accepted = true
  attempt.connectMs ??= now - attempt.startedAt
  const lesson = connectLesson(attempt, call)
  const { zone, index } = peer
  let change: PeerStateEvent | undefined
  zone.enter()
  try {
    const { connectTime, goodAt } = zone.peers
    connectTime[index] = ewma(connectTime[index]!, attempt.connectMs, upstream.responseTimeFactor)
    goodAt[index] = now
    countConnection(attempt, peer)
    learnConnect(attempt, lesson, now)
    change = recovered(attempt, peer, now)
  } finally {
    zone.leave()
  }
  shadowConnected(attempt, call, now)
  works(attempt, call, now)
  if (change !== undefined) peerStateChannel.publish(change)
}

/**
 * The peer's first byte has come.
 * @param attempt connected; `headerMs` is filled in here
 */
export function firstByte(attempt: Attempt, call: Call, now: number): void {
  const { peer, upstream } = attempt
  if (peer === undefined || !attempt.accepted || attempt.headerMs !== undefined) return
  attempt.headerMs = now - attempt.startedAt
  const lesson = headerLesson(attempt, call, now)
  const { zone, index } = peer
  zone.enter()
  try {
    const { headerTime } = zone.peers
    headerTime[index] = ewma(headerTime[index]!, attempt.headerMs, upstream.responseTimeFactor)
    countHeader(attempt, peer)
    learnHeader(attempt, lesson, now)
  } finally {
    zone.leave()
  }
  shadowMeasured(attempt, call, now)
  // Datagrams have no connection: the first one that comes back says as much.
  if (call.protocol === 'UDP') works(attempt, call, now)
}

/** The peer of an attempt is known to be there: a session may be bound to it, and others may come back to its list. */
function works(attempt: Attempt, call: Call, now: number): void {
  attempt.upstream.sessions?.connected(attempt, call, now)
  if (attempt.returning) comeBack(attempt, now)
}
