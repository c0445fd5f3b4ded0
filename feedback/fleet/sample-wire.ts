import { type Minute, reservoirSize } from '../reservoir.ts'

/*
 * The bytes that an instance tells of a minute of a track: attempts, errors and times that came as doubles, then times
 * as floats, low byte first.
 */

const countBytes = 8 * 3

export function packMinute({ attempts, errors, timed, times }: Minute): Buffer {
  const bytes = Buffer.allocUnsafe(countBytes + 4 * times.length)
  bytes.writeDoubleLE(attempts, 0)
  bytes.writeDoubleLE(errors, 8)
  bytes.writeDoubleLE(timed, 16)
  for (const [i, ms] of times.entries()) bytes.writeFloatLE(ms, countBytes + 4 * i)
  return bytes
}

/** @returns undefined where that cannot be right, or says nothing: anybody may have written it */
export function readMinute(minute: number, bytes: Buffer): Minute | undefined {
  const kept = (bytes.length - countBytes) / 4
  if (!Number.isInteger(kept) || kept < 0 || kept > reservoirSize) return undefined
  const attempts = bytes.readDoubleLE(0)
  const errors = bytes.readDoubleLE(8)
  const timed = bytes.readDoubleLE(16)
  const counts = [attempts, errors, timed].every((count) => Number.isSafeInteger(count) && count >= 0)
  if (!counts || attempts === 0 || errors > attempts || timed > attempts) return undefined
  if (kept > timed || (timed > 0 && kept === 0)) return undefined
  const times = new Float32Array(kept)
  for (let i = 0; i < kept; i++) {
    const ms = bytes.readFloatLE(countBytes + 4 * i)
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) return undefined
    times[i] = ms
  }
  return { minute, attempts, errors, timed, times }
}

/** The field of an instance and track in a minute's hash. */
export function sampleField(track: string, id: string): string {
  // Encoded it has no slash.
  return `${encodeURIComponent(track)}/${id}`
}

/** Id of the instance of a field. */
export function instanceOf(field: string): string {
  return field.slice(field.indexOf('/') + 1)
}
