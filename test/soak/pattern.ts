/*
 * Bodies whose every byte is known beforehand, so that one that was cut, mixed with another's or written twice is seen
 * wherever it happens. Text of requests and answers begins at a place of the pattern that the request's name says.
 */

/** Prime, so that no buffer size of anybody falls in step with it. */
const period = 65_521

const pattern = Buffer.alloc(period + 64 * 1024)
for (let i = 0, x = 1; i < pattern.length; i += 1) {
  if (i % period === 0) x = 1
  // Lehmer's generator, whose period is longer than the pattern.
  x = (x * 48_271) % 2_147_483_647
  pattern[i] = 33 + (x % 90)
}

/** Where the body of a request begins in the pattern. */
function offset(name: string): number {
  let hash = 0
  for (let i = 0; i < name.length; i += 1) hash = (hash * 31 + name.charCodeAt(i)) % period
  return hash
}

/** Most bytes that `piece` gives at once. */
const pieceBytes = 64 * 1024

/** Bytes of a body from a place on. The buffer is shared: not to be written to. */
function piece(name: string, from: number, length: number): Buffer {
  const at = (offset(name) + from) % period
  return pattern.subarray(at, at + Math.min(length, pieceBytes))
}

/** Takes a body piece by piece and knows whether it is the one that was sent. */
export class PatternCheck {
  readonly name: string
  bytes = 0
  /** Where the first other byte was, and how many bytes of the body were skipped or came again there, if it goes on. */
  fault: string | undefined = undefined

  constructor(name: string) {
    this.name = name
  }

  get good(): boolean {
    return this.fault === undefined
  }

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.good; at += pieceBytes) {
      const part = chunk.subarray(at, at + pieceBytes)
      const wanted = piece(this.name, this.bytes + at, part.length)
      if (!part.equals(wanted)) this.fault = difference(part, wanted, this.bytes + at)
    }
    this.bytes += chunk.length
  }
}

function difference(part: Buffer, wanted: Buffer, from: number): string {
  let at = 0
  while (part[at] === wanted[at]) at += 1
  const there = pattern.indexOf(part.subarray(at, at + 16))
  const due = pattern.indexOf(wanted.subarray(at, at + 16))
  const jump = there < 0 ? 'what is no body' : `byte ${from + at + there - due}`
  return `byte ${from + at} is followed by ${jump}: ${JSON.stringify(part.toString('latin1', at, at + 40))}`
}

/** A body in pieces of at most 64 KiB. */
export function* pieces(name: string, length: number, size = pieceBytes): Generator<Buffer> {
  for (let at = 0; at < length; at += size) yield piece(name, at, Math.min(size, length - at))
}
