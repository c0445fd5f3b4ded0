import type { BodyListener, IncomingRequest } from '../client-side.ts'
import type { ClientHead } from './request-head.ts'

/** The connection that a request comes on, as far as its body is concerned. */
export interface BodySource {
  /** There is somebody to take more. */
  advance(): void
}

/** A request as it comes: its head, and its body to whoever takes it. */
export class ClientRequest implements IncomingRequest {
  readonly head: ClientHead
  /** Whether all of it has been read. */
  complete: boolean
  trailers: readonly string[] | undefined = undefined
  /** Whether the body is to be read now. */
  flowing = false
  #source: BodySource
  #listener: BodyListener | undefined = undefined
  #aborted = false

  constructor(head: ClientHead, source: BodySource) {
    this.head = head
    this.complete = head.framing === 'none'
    this.#source = source
  }

  /** Gives the body to a listener, from `resume` on. */
  take(listener: BodyListener): void {
    this.#listener = listener
    if (this.#aborted) listener.aborted()
  }

  /** Tells no more of the body until `resume`. */
  pause(): void {
    this.flowing = false
  }

  resume(): void {
    if (this.flowing || this.complete) return
    this.flowing = true
    this.#source.advance()
  }

  /** Nobody wants the rest of the body: it is read and dropped. */
  drop(): void {
    this.#listener = undefined
    this.flowing = true
  }

  // What the connection tells.

  data(chunk: Buffer): void {
    this.#listener?.data(chunk)
  }

  end(): void {
    this.complete = true
    this.flowing = false
    this.#listener?.end()
  }

  abort(): void {
    if (this.complete || this.#aborted) return
    this.#aborted = true
    this.flowing = false
    this.#listener?.aborted()
  }
}
