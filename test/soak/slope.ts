/** Change of y for each unit of x, by least squares. @param points x and y; at least two different x */
function slopeOf(points: readonly (readonly [number, number])[]): number {
  const count = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count
  let xx = 0
  let xy = 0
  for (const [x, y] of points) {
    xx += (x - meanX) ** 2
    xy += (x - meanX) * (y - meanY)
  }
  return xy / xx
}

/** What memory may grow by in the second half of a run before it counts as growing: bytes, and a part of its level. */
export interface Bound {
  readonly bytes: number
  readonly part: number
}

export interface Growth {
  /** Bytes over the whole span of the points. */
  readonly grown: number
  readonly allowed: number
  readonly flat: boolean
}

/** Judges the least values of windows. @param points seconds and bytes */
export function growth(points: readonly (readonly [number, number])[], bound: Bound): Growth | undefined {
  if (points.length < 3) return undefined
  const span = points.at(-1)![0] - points[0]![0]
  const level = points.reduce((sum, [, y]) => sum + y, 0) / points.length
  const grown = slopeOf(points) * span
  const allowed = Math.max(bound.bytes, bound.part * level)
  return { grown, allowed, flat: grown <= allowed }
}
