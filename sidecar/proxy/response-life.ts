import type { ResponseWriter } from './client-side.ts'

/** How far a response to a client has come, whatever the version of HTTP, and who is told that it is over. */
export abstract class ResponseLife {
  headersSent = false
  /** Bytes written, interim responses included. */
  bytes = 0
  /** Whether `end` was called: nothing more will be written. */
  ended = false
  /** Whether all of it has been handed to the system. */
  finished = false
  /** Whether it is over: finished, or cut off by the end of what carries it. */
  closed = false
  /** Who writes the body. */
  writer: ResponseWriter | undefined = undefined
  #listeners: (() => void)[] | undefined = undefined

  /** Calls once, when it is over; at once when it is. */
  whenClosed(listener: () => void): void {
    if (this.closed) {
      listener()
      return
    }
    this.#listeners ??= []
    this.#listeners.push(listener)
  }

  // What the connection, or the stream, tells.

  /** The system has taken what there was. */
  drained(): void {
    if (!this.ended) this.writer?.drained()
  }

  /** It has closed, or somebody else has it now. */
  close(): void {
    if (this.closed) return
    this.closed = true
    this.writer = undefined
    const listeners = this.#listeners
    this.#listeners = undefined
    if (listeners) for (const listener of listeners) listener()
    this.over()
  }

  /** All of it has been handed to the system. */
  protected finish(): void {
    if (this.closed) return
    this.finished = true
    this.close()
  }

  /** Everybody has been told that it is over. */
  protected abstract over(): void
}
