import type { Call } from './call.ts'
import { Counted } from './counted.ts'
import type { Attempt } from './outcome.ts'
import type { ServerZone } from './server-zone.ts'

/*
 * Bytes of what goes on for long: some sessions last for days, and their bytes are to be seen meanwhile. What was counted
 * so is left out when they end.
 */

/** Counts what has passed between a peer and an attempt since the last time. @param attempt with its bytes so far */
export function countAttempt(attempt: Attempt): void {
  const { peer, bytesSent, bytesReceived } = attempt
  if (peer === undefined || !attempt.reserved) return
  const { counted } = attempt
  const sent = Counted.rest(bytesSent, counted?.sent)
  const received = Counted.rest(bytesReceived, counted?.received)
  if (sent === 0 && received === 0) return
  const { zone, index } = peer
  zone.enter()
  zone.peers.bytesSent[index]! += sent
  zone.peers.bytesReceived[index]! += received
  zone.leave()
  attempt.counted ??= new Counted()
  attempt.counted.sent += sent
  attempt.counted.received += received
}

/**
 * The same for the client's side.
 * @param call with its bytes so far
 * @param zones all that it is counted in
 */
export function countCall(call: Call, zones: readonly ServerZone[]): void {
  for (const zone of zones) zone.passed(call)
  call.counted ??= new Counted()
  call.counted.sent = Math.max(call.counted.sent, call.bytesSent)
  call.counted.received = Math.max(call.counted.received, call.requestLength)
}
