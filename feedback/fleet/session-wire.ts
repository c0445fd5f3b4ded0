import { longestSid, type SessionKey, type SessionRecord } from '../sessions/entries.ts'
import { keyBytes, momentBytes } from './session-scripts.ts'

/** What is further ahead than that cannot be right, milliseconds. */
const aheadMs = 2000

/** What one exchange of sessions has brought. */
export interface HeardSessions {
  readonly epoch: string
  /** Up to which change all has been heard. */
  readonly since: string
  /** Whether there is more. */
  readonly more: boolean
  readonly records: readonly SessionRecord[]
  /** Of what was told, what others have bound to another peer later. */
  readonly lost: readonly { readonly told: SessionRecord; readonly newest: SessionRecord }[]
}

/**
 * Sessions as the script takes them: with ages in place of moments.
 * @param now monotonic milliseconds
 */
export function packSessions(records: readonly SessionRecord[], now: number): Buffer {
  const bytes = Buffer.allocUnsafe(records.length * (keyBytes + momentBytes + 1 + longestSid))
  let at = 0
  for (const { key, sid, boundAt, usedAt } of records) {
    for (let i = 0; i < 4; i++) at = bytes.writeInt32LE(key[i]!, at)
    at = bytes.writeDoubleLE(now - boundAt, at)
    at = bytes.writeDoubleLE(now - usedAt, at)
    at = bytes.writeUInt8(sid.length, at)
    at += bytes.write(sid, at, 'latin1')
  }
  return bytes.subarray(0, at)
}

/**
 * @param news what was told
 * @param now monotonic milliseconds of the moment when the server gave the answer, as far as is known
 * @throws TypeError when that is no answer of the script
 */
export function readSessions(answer: unknown, news: readonly SessionRecord[], now: number): HeardSessions {
  if (!Array.isArray(answer) || answer.length !== 7) throw new TypeError('not an answer with sessions')
  const [epoch, since, more, at, keys, values, losses] = answer
  const shift = now - Number(at)
  const records: SessionRecord[] = []
  for (let i = 0; i < keys.length; i++) {
    const record = keys[i].length === keyBytes ? readSession(keyOf(keys[i]), values[i], shift) : undefined
    // By another clock a moment may lie a little ahead.
    if (record !== undefined && record.usedAt < now + aheadMs) records.push(record)
  }
  const lost = []
  for (let i = 0; i < losses.length; i += 2) {
    const told = news[Number(losses[i])]
    const newest = told && readSession(told.key, losses[i + 1], shift)
    if (newest !== undefined) lost.push({ told: told!, newest })
  }
  return { epoch: String(epoch), since: String(since), more: Number(more) === 1, records, lost }
}

function keyOf(bytes: Buffer): SessionKey {
  return Int32Array.from({ length: 4 }, (_, i) => bytes.readInt32LE(4 * i))
}

/** What others have written is left out where it cannot be right. */
function readSession(key: SessionKey, value: Buffer, shift: number): SessionRecord | undefined {
  const length = value.length - momentBytes
  if (length < 1 || length > longestSid) return undefined
  const boundAt = value.readDoubleLE(0) + shift
  const usedAt = value.readDoubleLE(8) + shift
  if (!Number.isFinite(boundAt) || !Number.isFinite(usedAt)) return undefined
  return { key, sid: value.toString('latin1', momentBytes), boundAt, usedAt }
}
