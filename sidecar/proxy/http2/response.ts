import type { ServerHttp2Stream } from 'node:http2'
import type { OutgoingResponse } from '../client-side.ts'
import { token } from '../http1/fields.ts'
import { ResponseLife } from '../response-life.ts'
import { collected, ofConnections, trimmed } from './fields.ts'
import type { StreamHead } from './head.ts'

/** Bytes of the head of a frame. */
const frameHead = 9
/** How long what was written before a response breaks off has to get to the client, milliseconds. */
const lingering = 1000

/**
 * Resets a stream whose response is not whole. `close` would not do: it lets the stream end in order first, and what
 * has come of the body would look like all of it.
 */
export function reset(stream: ServerHttp2Stream): void {
  // With an error it is an internal one that the client is told of.
  stream.destroy(new Error('response is not whole'))
}

/** Told when a response is over. */
export interface StreamResponseEnd {
  /** All of it has been handed to the system, or the stream has closed first. */
  over(): void
}

/** The response to a request on a stream. */
export class StreamResponse extends ResponseLife implements OutgoingResponse {
  /** Means nothing here: what else runs on the connection goes on. */
  last = false
  readonly #stream: ServerHttp2Stream
  readonly #head: StreamHead
  readonly #end: StreamResponseEnd
  /** Whether no body may follow the head. */
  #bodyless = false
  /** Whether trailers may follow the body: the stream asks for them when its time has come. */
  #waits = false
  #trailers: readonly string[] | undefined = undefined

  constructor(stream: ServerHttp2Stream, head: StreamHead, end: StreamResponseEnd) {
    super()
    this.#stream = stream
    this.#head = head
    this.#end = end
  }

  get backlog(): number {
    return this.#stream.writableLength
  }

  interim(status: number, _phrase: string, headers: readonly string[]): void {
    // RFC 9113 section 8.6: there is no switching of protocols.
    if (this.headersSent || !this.#open || status === 101) return
    const fields = collected(headers)
    fields[':status'] = status
    this.bytes += size(headers)
    this.#stream.additionalHeaders(fields)
  }

  writeHead(status: number, _phrase: string, headers: readonly string[], alone = false): void {
    this.headersSent = true
    // A client of gRPC looks for a status in the head where that ends the stream, and nowhere else.
    const empty = status === 204 || status === 205
    this.#bodyless = alone || empty || status === 304 || this.#head.method === 'HEAD'
    if (!this.#open) return
    const fields = [':status', `${inRange(status)}`]
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!.toLowerCase()
      // RFC 9110 sections 8.6 and 15.3.6; Node sends no body after a 205 either.
      if (ofConnections.has(name) || (name === 'content-length' && empty)) continue
      if (token.test(name)) fields.push(name, trimmed(headers[i + 1]!))
    }
    this.#waits = this.#head.takesTrailers && !this.#bodyless
    this.bytes += size(fields)
    this.#stream.respond(fields, {
      endStream: this.#bodyless,
      waitForTrailers: this.#waits,
    })
  }

  // Frames of one turn of the loop go out together in any case.
  hold(): void {}
  release(): void {}

  write(chunk: Buffer): boolean {
    if (this.#bodyless || this.closed || this.ended || !this.#open || chunk.length === 0) return true
    this.bytes += frameHead + chunk.length
    return this.#stream.write(chunk)
  }

  end(trailers?: readonly string[]): void {
    if (this.ended || this.closed) return
    this.ended = true
    this.#trailers = trailers
    if (!this.#open) return
    if (!this.#stream.writableEnded) this.#stream.end()
    if (this.#stream.writableFinished) this.wrote()
  }

  /** Ends it so that the client can tell that it is not whole, once what was written has gone out. */
  breakOff(): void {
    const stream = this.#stream
    const end = () => {
      clearTimeout(timer)
      reset(stream)
    }
    const timer = setTimeout(end, lingering)
    if (this.ended || stream.writableLength === 0) end()
    else stream.write(Buffer.alloc(0), end)
  }

  // What the stream tells.

  /** All that was written has been handed to the system. */
  wrote(): void {
    // The stream of a HEAD request has ended before it is answered.
    if (this.ended && !this.#waits) this.finish()
  }

  /** The body has been written: it is the trailers' turn. */
  wantTrailers(): void {
    const trailers = this.#trailers ?? []
    this.bytes += size(trailers)
    this.#stream.sendTrailers(collected(trailers))
    // They are written a turn later.
    setImmediate(() => this.finish())
  }

  protected over(): void {
    this.#end.over()
  }

  get #open(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed
  }
}

/** Node sends no statuses that nobody knows, as a configuration may return them. */
function inRange(status: number): number {
  return status >= 200 && status <= 599 ? status : 500
}

/** Bytes of a head as HTTP/1.1 would count them: what they are compressed to is not known. */
function size(headers: readonly string[]): number {
  let bytes = frameHead
  for (const text of headers) bytes += text.length + 2
  return bytes
}
