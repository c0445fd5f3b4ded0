import type { Unserved } from '../client-side.ts'
import { BodyDecoder } from './body-decoder.ts'
import { bareLineFeed } from './fields.ts'
import { type ClientHead, readRequestHead, unserved } from './request-head.ts'

/** What a connection of TLS begins with (RFC 8446 section 5.1). */
const handshakeRecord = 0x16

/** What has come of a client's requests and was not looked at yet; heads and bodies are read off it, one at a time. */
export class RequestReader {
  /** Of the last head that was read. */
  readonly body = new BodyDecoder()
  /** Whether a head has begun to come and is not complete. */
  begun = false
  /** From `#at` on it was not looked at. */
  #rest: Buffer | undefined = undefined
  #at = 0
  /** Up to where the end of a head was looked for. */
  #searched = 0

  /** Bytes that wait to be looked at. */
  get waiting(): number {
    return this.#rest ? this.#rest.length - this.#at : 0
  }

  /** Adds what has come. */
  add(chunk: Buffer): void {
    if (this.#rest) {
      this.#rest = Buffer.concat([this.#at === 0 ? this.#rest : this.#rest.subarray(this.#at), chunk])
      this.#searched = Math.max(0, this.#searched - this.#at)
    } else {
      this.#rest = chunk
      this.#searched = 0
    }
    this.#at = 0
  }

  /** Gives away what waits. */
  clear(): Buffer | undefined {
    const rest = this.#rest?.subarray(this.#at)
    this.#rest = undefined
    this.#at = 0
    return rest
  }

  /**
   * Reads a head. Its body comes next: see `readBody`.
   * @param maxHead most bytes of it
   * @returns undefined while it is not complete
   */
  readHead(maxHead: number): ClientHead | Unserved | undefined {
    const rest = this.#rest
    if (!rest) return undefined
    let from = this.#at
    // RFC 9112 section 2.2: clients of old put a line break after a body.
    while (rest[from] === 13 && rest[from + 1] === 10) from += 2
    this.#take(rest, from)
    if (!this.#rest) return undefined
    this.begun = true
    const end = rest.indexOf('\r\n\r\n', Math.max(from, this.#searched - 3), 'latin1')
    if (end - from > maxHead || (end < 0 && rest.length - from > maxHead)) {
      // A line that alone is too long is a target that is.
      const line = rest.indexOf('\r\n', from, 'latin1')
      const whole = line >= 0 && line - from <= maxHead
      return whole ? unserved(431, 'header too large') : unserved(414, 'request line too long')
    }
    if (end < 0) {
      this.#searched = rest.length
      // What cannot become a request line is refused at once instead of waited for.
      if (mayBegin(rest, from) && !bareLineFeed(rest, from)) return undefined
      const isTls = rest[from] === handshakeRecord
      return unserved(400, isTls ? 'TLS where HTTP is spoken (see "listen ... ssl")' : 'invalid request line')
    }
    const head = readRequestHead(rest.toString('latin1', from, end))
    this.#take(rest, end + 4)
    this.begun = false
    if (!('status' in head)) this.body.begin(head.framing, head.bodyLength)
    return head
  }

  /**
   * Reads on in the body, up to a part of it that `body.take()` gives.
   * @returns false for a body that cannot be read: `body.fault` says why, and nothing waits any more
   */
  readBody(): boolean {
    const rest = this.#rest
    if (!rest) return true
    const at = this.body.next(rest, this.#at)
    this.#take(rest, at < 0 ? rest.length : at)
    return at >= 0
  }

  /** What is before `at` has been looked at. */
  #take(rest: Buffer, at: number): void {
    if (at < rest.length) {
      this.#at = at
      return
    }
    this.#rest = undefined
    this.#at = 0
  }
}

const firstLetters = /^[A-Z][A-Z0-9_-]*(?: |$)/

/** Whether bytes may be the beginning of a request line. */
function mayBegin(rest: Buffer, from: number): boolean {
  const text = rest.toString('latin1', from, from + 32)
  return text === '\r' || firstLetters.test(text)
}
