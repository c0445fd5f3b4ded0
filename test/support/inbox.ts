import type { Socket } from 'node:net'

/** How the other side of a connection ended it: FIN, or RST (and any other error of the socket). */
export type End = 'fin' | 'reset'

/** More unread bytes than this stop the reading of the socket, so that the other side feels it. */
const readAhead = 256 * 1024

/**
 * What has come in on a socket and was not yet taken. It reads on by itself, so the end of the connection is
 * seen at once, and stops only when too much lies unread.
 */
export class Inbox {
  /** Settles when the other side has ended the connection; it never rejects. */
  readonly closed: Promise<End>
  /** Undefined while the other side may still send. */
  ended: End | undefined = undefined
  /** Bytes that have come in, ever. */
  total = 0
  #socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #wake: (() => void)[] = []

  constructor(socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => {
      const finish = (end: End) => {
        this.ended ??= end
        this.#notify()
        resolve(this.ended)
      }
      socket.on('end', () => finish('fin'))
      socket.on('error', () => finish('reset'))
      socket.on('close', () => finish('fin'))
    })
    socket.on('data', (chunk: Buffer) => {
      this.total += chunk.length
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
      if (this.#bytes.length > readAhead) socket.pause()
      this.#notify()
    })
  }

  /** What lies unread now. */
  get unread(): Buffer {
    return this.#bytes
  }

  /** Stops reading until `resume`, so that the other side meets a full window. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /**
   * Bytes up to and including `mark`.
   * @returns undefined when the connection ended before it came; what came stays unread
   */
  async until(mark: string): Promise<Buffer | undefined> {
    let from = 0
    for (;;) {
      const at = this.#bytes.indexOf(mark, from)
      if (at >= 0) return this.#take(at + mark.length)
      from = Math.max(0, this.#bytes.length - mark.length)
      if (!(await this.#more())) return undefined
    }
  }

  /**
   * Exactly `count` bytes.
   * @returns undefined when the connection ended before they came; what came stays unread
   */
  async take(count: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < count) if (!(await this.#more())) return undefined
    return this.#take(count)
  }

  /**
   * Whatever there is, at least one byte and at most `limit`.
   * @returns undefined when the connection has ended and all was taken
   */
  async some(limit = Number.POSITIVE_INFINITY): Promise<Buffer | undefined> {
    while (this.#bytes.length === 0) if (!(await this.#more())) return undefined
    return this.#take(Math.min(limit, this.#bytes.length))
  }

  #take(count: number): Buffer {
    const taken = this.#bytes.subarray(0, count)
    this.#bytes = this.#bytes.subarray(count)
    if (this.#bytes.length <= readAhead && this.#socket.isPaused()) this.#socket.resume()
    return taken
  }

  /** Waits for bytes; false at once when none can come any more. */
  async #more(): Promise<boolean> {
    const before = this.total
    if (this.#socket.isPaused()) this.#socket.resume()
    while (this.total === before) {
      if (this.ended) return false
      await new Promise<void>((resolve) => this.#wake.push(resolve))
    }
    return true
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }
}
