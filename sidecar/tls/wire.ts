import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** Type of a record that holds an alert, where that can be seen: with TLS 1.2. */
const alert = 21
/** Lengths of a record of TLS 1.3 that holds one: two bytes, the kind of record, and what proves it whole. */
const alertLengths: ReadonlySet<number> = new Set([19, 11])

/**
 * A connection that TLS is spoken on, looked at while it passes: how it ends is told by no layer above. Whoever cuts a
 * connection can end it, but cannot say in the peer's name that this is the end (`close_notify`, RFC 8446 section 6.1).
 */
export class Wire extends Duplex {
  readonly #socket: Socket
  /** Bytes of the current record's head so far: its type and its length come with five. */
  readonly #head = Buffer.alloc(5)
  #headed = 0
  /** Bytes that the current record still lacks. */
  #left = 0
  #type = 0
  /** How many of the last records in turn could be alerts by their length. */
  #short = 0

  /** @param socket connected, and read by nobody else */
  constructor(socket: Socket) {
    super({ allowHalfOpen: false, decodeStrings: false })
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#look(chunk)
      if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /**
   * Whether the peer has said that it has nothing more to say.
   * @param short how many of the last pieces that came out of TLS, in turn, had two bytes: records of those look alike
   */
  endedCleanly(short: number): boolean {
    if (this.#headed > 0 || this.#left > 0) return false
    return this.#type === alert || this.#short > short
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(
    chunk: Buffer | string,
    encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.write(chunk, encoding, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  #look(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, chunk.length - at)
        this.#left -= passed
        at += passed
        continue
      }
      const copied = chunk.copy(this.#head, this.#headed, at)
      this.#headed += copied
      at += copied
      if (this.#headed < 5) return
      this.#headed = 0
      this.#type = this.#head[0]!
      this.#left = this.#head.readUInt16BE(3)
      this.#short = alertLengths.has(this.#left) ? this.#short + 1 : 0
    }
  }
}
