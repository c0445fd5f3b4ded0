import { type GroupField, groupIndex } from './fields.ts'
import type { Zone } from './zone.ts'

/*
 * Numbers that go down again: requests in progress, attempts that wait, retries that wait, idle connections, requests
 * in the queue. Where several threads work on a zone, each writes its part down in a row of its own as well. When a
 * thread dies, what it held is known and taken back, and a change that it left half done does not matter, since the sums
 * are made anew.
 *
 * All of these are to be called between `enter` and `leave` of the zone.
 */

/** A request in progress at a peer more, or one less. */
export function holdConn(zone: Zone, index: number, change: 1 | -1): void {
  const { conns, connsPeak } = zone.peers
  const count = conns[index]! + change
  conns[index] = count
  if (count > connsPeak[index]!) connsPeak[index] = count
  const { row } = zone
  if (row !== undefined) row.conns[index]! += change
}

/** An attempt at a peer waits since `startedAt`. */
export function holdWait(zone: Zone, index: number, startedAt: number): void {
  addWait(zone.peers.waiting, zone.peers.startSum, index, startedAt)
  const { row } = zone
  if (row !== undefined) addWait(row.waiting, row.startSum, index, startedAt)
}

/** It waits no more. */
export function endWait(zone: Zone, index: number, startedAt: number): void {
  takeWait(zone.peers.waiting, zone.peers.startSum, index, startedAt)
  const { row } = zone
  if (row !== undefined) takeWait(row.waiting, row.startSum, index, startedAt)
}

function addWait(waiting: Float64Array, startSum: Float64Array, index: number, startedAt: number): void {
  waiting[index]! += 1
  startSum[index]! += startedAt
}

function takeWait(waiting: Float64Array, startSum: Float64Array, index: number, startedAt: number): void {
  const left = Math.max(0, waiting[index]! - 1)
  waiting[index] = left
  // At none the sum starts afresh, so that its rounding errors never add up.
  startSum[index] = left === 0 ? 0 : startSum[index]! - startedAt
}

/** Numbers of the group that threads hold, in the order of their place in a row. */
const groupHeld = ['retriesWaiting', 'keepalive', 'queueWaiting'] as const satisfies readonly GroupField[]

/** Changes a number of the group that goes down again. */
export function holdGroup(zone: Zone, field: (typeof groupHeld)[number], change: number): void {
  zone.group[groupIndex[field]]! += change
  const { row } = zone
  if (row !== undefined) row.group[groupHeld.indexOf(field)]! += change
}

/**
 * Takes back what a thread held that is no more, and makes the sums anew from what the others hold.
 * @param thread its row
 */
export function recall(zone: Zone, thread: number): void {
  const gone = zone.held[thread]
  if (gone === undefined) return
  for (const numbers of [gone.conns, gone.waiting, gone.startSum, gone.group]) numbers.fill(0)
  for (const field of ['conns', 'waiting', 'startSum'] as const) {
    const sums = zone.peers[field]
    for (let index = 0; index < zone.capacity; index++) {
      let sum = 0
      for (const row of zone.held) sum += row[field][index]!
      if (sums[index] !== sum) sums[index] = sum
    }
  }
  for (const [place, field] of groupHeld.entries()) {
    zone.set(
      field,
      zone.held.reduce((sum, row) => sum + row.group[place]!, 0),
    )
  }
}

/** Whether no thread holds anything of the zone. */
export function isLetGo(zone: Zone): boolean {
  return groupHeld.every((field) => zone.get(field) === 0) && zone.peers.conns.every((count) => count <= 0)
}
