import { holdGroup } from './held.ts'
import type { Zone } from './zone.ts'

/*
 * What is counted of a group's queue: requests for which no peer was ready and that wait for one. How long they have
 * waited in all is counted as they end, so that `queueMs` by those that wait no more is the mean.
 */

/** How a request's time in the queue ended. `closed`: its group is no more. */
export type WaitEnd = 'picked' | 'left' | 'timeout' | 'closed'

/**
 * A request begins to wait.
 * @param others how many wait already, as far as the one who asks knows of them: those of this thread
 * @returns whether some wait in other threads
 */
export function enterQueue(zone: Zone, others: number): boolean {
  zone.enter()
  const elsewhere = zone.get('queueWaiting') > others
  zone.add('queued', 1)
  holdGroup(zone, 'queueWaiting', 1)
  zone.leave()
  return elsewhere
}

/** A request waits no more. @param ms how long it has waited */
export function leaveQueue(zone: Zone, end: WaitEnd, ms: number): void {
  zone.enter()
  holdGroup(zone, 'queueWaiting', -1)
  zone.add('queueMs', ms)
  if (end === 'left') zone.add('queueDropped', 1)
  else if (end === 'timeout') zone.add('queueTimedout', 1)
  zone.leave()
}

/** A request has found the queue full. */
export function overflowQueue(zone: Zone): void {
  zone.enter()
  zone.add('queueOverflows', 1)
  zone.leave()
}

/** Whether requests wait, in any thread. */
export function anyWaiting(zone: Zone): boolean {
  return zone.get('queueWaiting') > 0
}
