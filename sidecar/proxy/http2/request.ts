import type { ServerHttp2Stream } from 'node:http2'
import type { BodyListener, IncomingRequest } from '../client-side.ts'
import type { StreamHead } from './head.ts'

/**
 * A request on a stream. Its body comes no faster than it is taken: what is not taken stays in the stream's window, and
 * the client sends no more than that.
 */
export class StreamRequest implements IncomingRequest {
  readonly head: StreamHead
  complete: boolean
  trailers: readonly string[] | undefined = undefined
  readonly #stream: ServerHttp2Stream
  #listener: BodyListener | undefined = undefined
  #aborted = false

  constructor(head: StreamHead, stream: ServerHttp2Stream) {
    this.head = head
    this.complete = head.framing === 'none'
    this.#stream = stream
  }

  take(listener: BodyListener): void {
    this.#listener = listener
    if (this.#aborted) listener.aborted()
  }

  pause(): void {
    if (!this.complete) this.#stream.pause()
  }

  resume(): void {
    if (!this.complete && !this.#aborted) this.#stream.resume()
  }

  // What the stream tells.

  data(chunk: Buffer): void {
    if (!this.#aborted) this.#listener?.data(chunk)
  }

  end(): void {
    if (this.complete || this.#aborted) return
    this.complete = true
    this.#listener?.end()
  }

  abort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    this.#listener?.aborted()
  }
}
