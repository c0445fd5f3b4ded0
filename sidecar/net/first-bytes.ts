import type { Socket } from 'node:net'
import { monotonic } from '../../feedback/clock.ts'

/** A connection whose first bytes are waited for: they tell whose it is to be. */
export abstract class FirstBytes {
  readonly socket: Socket
  readonly #since = monotonic()
  readonly #closed: () => void
  #first: Buffer | undefined = undefined

  /** @param closed told when it closes while it is waited for */
  constructor(socket: Socket, closed: () => void) {
    this.socket = socket
    this.#closed = closed
    socket.on('data', this.#data)
    socket.on('end', this.#end)
    socket.on('close', this.#close)
    // Every error ends in `close`.
    socket.on('error', () => {})
  }

  /** Looks whether the client has taken too long. @param timeout milliseconds for all of it */
  check(now: number, timeout: number): void {
    if (now - this.#since >= timeout) this.late()
  }

  /** More has come. @param first all that has */
  protected abstract read(first: Buffer): void

  /** It has not come in time. */
  protected abstract late(): void

  /** The client has ended its side before. */
  protected abstract ended(): void

  /** Whoever has the connection from now on is told of what comes, and of its end. */
  protected leave(): void {
    this.#stop()
    this.socket.off('close', this.#close)
  }

  /** Closes it: nothing that comes is read any more. */
  protected refuse(): void {
    this.#stop()
    this.socket.destroy()
  }

  readonly #data = (chunk: Buffer): void => {
    this.#first = this.#first ? Buffer.concat([this.#first, chunk]) : chunk
    this.read(this.#first)
  }

  readonly #end = (): void => this.ended()

  readonly #close = (): void => this.#closed()

  #stop(): void {
    this.socket.off('data', this.#data)
    this.socket.off('end', this.#end)
  }
}
