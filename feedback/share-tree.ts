import type { Zone } from './zone.ts'

/*
 * Shares of peers in a tree of partial sums (Fenwick's), so that a weighted draw over thousands of peers costs a
 * few steps, and so does a change of one share. Both are kept in the zone: `share` by the peer's index, `tree` at
 * i − 1 the sum of the shares that end at i, as many as the lowest set bit of i says.
 */

/** Groups up to this size are drawn from by a walk, which is no slower and exact about who is ready. */
export const walkLimit = 64

/** Changes one share. */
export function setShare(zone: Zone, index: number, value: number): void {
  const { share, tree } = zone.peers
  const change = value - share[index]!
  if (change === 0) return
  share[index] = value
  for (let i = index + 1; i <= zone.capacity; i += i & -i) tree[i - 1]! += change
}

/** Sums up all shares afresh, which also ends the rounding errors of many changes. */
export function sumShares(zone: Zone): void {
  const { share, tree } = zone.peers
  tree.set(share)
  for (let i = 1; i <= zone.capacity; i++) {
    const above = i + (i & -i)
    if (above <= zone.capacity) tree[above - 1]! += tree[i - 1]!
  }
}

/** The sum of all shares. */
export function totalShare(zone: Zone): number {
  const { tree } = zone.peers
  let total = 0
  for (let i = zone.capacity; i > 0; i -= i & -i) total += tree[i - 1]!
  return total
}

/**
 * The peer in whose share a point lies, shares laid end to end.
 * @param point 0 up to the total, the total excluded
 * @returns a peer's index; by rounding at the very end it may be one past the last
 */
export function peerAt(zone: Zone, point: number): number {
  const { tree } = zone.peers
  const { capacity } = zone
  let index = 0
  for (let step = 1 << (31 - Math.clz32(capacity)); step > 0; step >>= 1) {
    if (index + step > capacity) continue
    const sum = tree[index + step - 1]!
    if (sum > point) continue
    index += step
    point -= sum
  }
  return index
}
