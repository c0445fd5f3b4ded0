import type { Socket } from 'node:net'
import { monotonic } from '../../../feedback/clock.ts'

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

/** A connection without TLS whose first bytes are waited for: they tell which HTTP it speaks. */
export class Preface {
  readonly socket: Socket
  readonly #since = monotonic()
  readonly #told: PrefaceEvents
  #first: Buffer | undefined = undefined

  constructor(socket: Socket, told: PrefaceEvents) {
    this.socket = socket
    this.#told = told
    socket.on('data', this.#data)
    socket.on('end', this.#end)
    socket.on('close', this.#close)
    // Every error ends in `close`.
    socket.on('error', () => {})
  }

  /** Looks whether the client has taken too long. @param timeout milliseconds */
  check(now: number, timeout: number): void {
    if (now - this.#since >= timeout) this.#end()
  }

  readonly #data = (chunk: Buffer): void => {
    const first = this.#first ? Buffer.concat([this.#first, chunk]) : chunk
    this.#first = first
    const length = Math.min(first.length, preface.length)
    const same = first.compare(preface, 0, length, 0, length) === 0
    if (same && length < preface.length) return
    this.#leave()
    if (same) this.#told.http2(first)
    else this.#told.http1(first)
  }

  /** A connection that was opened and left alone, or with a part of a preface, is no request. */
  readonly #end = (): void => {
    this.socket.destroy()
  }

  readonly #close = (): void => this.#told.closed()

  #leave(): void {
    const { socket } = this
    socket.off('data', this.#data)
    socket.off('end', this.#end)
    socket.off('close', this.#close)
  }
}
