import type { Socket } from 'node:net'
import { FirstBytes } from '../../net/first-bytes.ts'

/** What a client that speaks HTTP/2 begins with (RFC 9113 section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Told once what a connection speaks, unless it has closed before. */
export interface PrefaceEvents {
  /** @param first what it has said, preface included */
  http2(first: Buffer): void
  /** @param first what it has said */
  http1(first: Buffer): void
  closed(): void
}

/** A connection without TLS whose first bytes tell which HTTP it speaks. */
export class Preface extends FirstBytes {
  readonly #told: PrefaceEvents

  constructor(socket: Socket, told: PrefaceEvents) {
    super(socket, () => told.closed())
    this.#told = told
  }

  protected read(first: Buffer): void {
    const length = Math.min(first.length, preface.length)
    const same = first.compare(preface, 0, length, 0, length) === 0
    if (same && length < preface.length) return
    this.leave()
    if (same) this.#told.http2(first)
    else this.#told.http1(first)
  }

  protected late(): void {
    this.refuse()
  }

  /** A connection that was opened and left alone, or with a part of a preface, is no request. */
  protected ended(): void {
    this.refuse()
  }
}
