import { constants, type ServerHttp2Stream } from 'node:http2'
import { monotonic } from '../../../feedback/clock.ts'
import type { Carrier } from '../client-side.ts'
import type { Exchange } from '../exchange.ts'
import { maxTrailers } from '../http1/body-decoder.ts'
import type { StreamHead } from './head.ts'
import { StreamRequest } from './request.ts'
import { reset, StreamResponse } from './response.ts'

/** About how often it is looked whether clients take what is sent, milliseconds. */
const look = 500

/** The connection that streams are on, as they see it. */
export interface StreamHost {
  /** Bytes of a request's body, or of what follows it, have come. */
  received(bytes: number): void
}

/** A stream: a request, the response to it, and what becomes of both. */
export class Stream implements Carrier {
  readonly request: StreamRequest
  readonly response: StreamResponse
  exchange: Exchange | undefined = undefined
  /** Whether it is this side that has ended it before its time. */
  broken = false
  /** Whether that was the client's fault. */
  faulty = false
  /** Whether it was ended with its client taking nothing for as long as it may. */
  stalled = false
  readonly #stream: ServerHttp2Stream
  readonly #host: StreamHost
  /** Bytes that the client had not taken when it was last looked at, and since when it has taken none. */
  #backlog = 0
  #since = 0

  constructor(stream: ServerHttp2Stream, head: StreamHead, host: StreamHost) {
    this.#stream = stream
    this.#host = host
    this.request = new StreamRequest(head, stream)
    this.response = new StreamResponse(stream, head, this)
    attach(stream, this)
  }

  cut(): void {
    this.#break()
    reset(this.#stream)
  }

  breakOff(): void {
    const { response } = this
    if (!response.headersSent || response.finished) {
      this.cut()
      return
    }
    this.#break()
    response.breakOff()
  }

  /** As nginx does: the connection and what else runs on it go on. */
  hangUp(): void {
    this.#break()
    this.#stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
  }

  /** The work on the request is over. What the client still sends of it is not wanted (RFC 9113 section 8.1). */
  finish(): void {
    if (this.request.complete) return
    const stream = this.#stream
    // Node holds a stream open, and its session, for what has come and is not read.
    stream.off('data', onData).resume()
    // Not before the head has gone out: nghttp2 drops one that still waits.
    setImmediate(() => stream.close(constants.NGHTTP2_NO_ERROR))
  }

  /** Ends it where the client takes nothing for too long. To be called from time to time. */
  check(now: number): void {
    const { backlog } = this.response
    if (backlog === 0 || backlog !== this.#backlog) {
      this.#backlog = backlog
      this.#since = now
    } else if (this.#late(now)) this.cut()
  }

  #late(now: number): boolean {
    return this.exchange !== undefined && now - this.#since >= this.exchange.settings.sendTimeout
  }

  /** The response is over: see `StreamResponseEnd`. */
  over(): void {
    this.exchange?.over()
  }

  // What the stream tells.

  data(chunk: Buffer): void {
    this.#host.received(chunk.length)
    this.request.data(chunk)
  }

  trailers(fields: readonly string[]): void {
    let bytes = 0
    for (const text of fields) bytes += text.length + 2
    if (bytes > maxTrailers) {
      this.faulty = true
      this.cut()
      return
    }
    this.#host.received(bytes)
    this.request.trailers = fields
  }

  closed(): void {
    if (!this.broken) this.#end()
  }

  #break(): void {
    if (this.broken) return
    this.broken = true
    const { backlog } = this.response
    // Whoever else watches what is sent may be a look earlier.
    this.stalled = backlog > 0 && backlog === this.#backlog && this.#late(monotonic() + look)
    // Node tells of it at once: whoever breaks it off is to note why first.
    process.nextTick(() => this.#end())
  }

  #end(): void {
    // That it has left comes first: it is why its body breaks off.
    this.response.close()
    this.request.abort()
  }
}

// A function of its own on each stream would make V8 take all of the request for alive until its next full collection:
// the same ones hang on all of them, and find what the stream stands for by this.
const owner = Symbol('owner')

interface Owned extends ServerHttp2Stream {
  [owner]: Stream
}

function attach(stream: ServerHttp2Stream, of: Stream): void {
  // From here on it has what `Owned` says.
  const owned = stream as Owned
  owned[owner] = of
  if (!of.request.complete) {
    // Nothing is read until somebody takes it.
    stream.pause()
    stream.on('data', onData)
    stream.on('trailers', onTrailers)
    stream.on('end', onEnd)
  }
  stream.on('drain', onDrain)
  stream.on('finish', onFinish)
  stream.on('wantTrailers', onWantTrailers)
  stream.on('aborted', onClosed)
  stream.on('close', onClosed)
}

function onData(this: Owned, chunk: Buffer): void {
  this[owner].data(chunk)
}

function onTrailers(this: Owned, _fields: unknown, _flags: number, raw: readonly string[]): void {
  this[owner].trailers(raw)
}

function onEnd(this: Owned): void {
  this[owner].request.end()
}

function onDrain(this: Owned): void {
  this[owner].response.drained()
}

function onFinish(this: Owned): void {
  this[owner].response.wrote()
}

function onWantTrailers(this: Owned): void {
  this[owner].response.wantTrailers()
}

function onClosed(this: Owned): void {
  this[owner].closed()
}
