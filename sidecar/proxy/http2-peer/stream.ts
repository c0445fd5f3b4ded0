import { type ClientHttp2Stream, constants } from 'node:http2'
import { onWhole } from '../../../feedback/http2-whole.ts'
import { maxTrailers } from '../http1/body-decoder.ts'
import type { HeadFault } from '../http1/head.ts'
import { collected } from '../http2/fields.ts'
import { ownFields, requestFields, statusOf, textLength } from './fields.ts'
import { breach, cancel, resetError } from './reset.ts'
import type { StreamContext, StreamEvents, StreamHome } from './stream-home.ts'
import type { RequestTrailers } from './trailers.ts'

const { NGHTTP2_PROTOCOL_ERROR, NGHTTP2_REFUSED_STREAM } = constants

/** Interim responses before a final one, as of peers that speak HTTP/1.1. */
const mostInterims = 32

/** One request and its response on a session: what a connection of HTTP/1.1 is to one exchange. */
export class PeerStream {
  /** Whether its session was opened for it. */
  readonly fresh: boolean
  /** Whether the peer has sent any part of the response. */
  answered = false
  /** Heads counted as the text that they would be. */
  bytesWritten = 0
  bytesRead = 0
  readonly #home: StreamHome
  #events: StreamEvents | undefined = undefined
  #maxHead = 0
  #own: RequestTrailers | undefined = undefined
  #stream: ClientHttp2Stream | undefined = undefined
  #error: NodeJS.ErrnoException | undefined = undefined
  /** The peer has said that its answer is whole. */
  #whole = false
  /** The head has been told of. */
  #headed = false
  #finished = false
  #over = false
  #readBefore = 0
  #interims = 0
  #trailers: string[] | undefined = undefined

  constructor(home: StreamHome, fresh: boolean) {
    this.#home = home
    this.fresh = fresh
  }

  /**
   * Whether nothing at all has come on the session since the exchange began: the request may never have arrived where a
   * connection was closed that was kept. It is the peer that has failed where it was given up.
   */
  get untouched(): boolean {
    return !this.answered && !this.#home.deaf && this.#home.bytesRead === this.#readBefore
  }

  /** What comes from now on is told of. */
  begin(events: StreamEvents, { trailers }: StreamContext, maxHead: number): void {
    this.#events = events
    this.#own = trailers
    this.#maxHead = maxHead
  }

  /**
   * Begins the request.
   * @param head as HTTP/1.1 has it: see `requestFields`
   * @param body whether a body follows: how it would be framed there
   */
  send(head: string, body: 'none' | 'plain' | 'chunked'): void {
    this.#readBefore = this.#home.bytesRead
    this.#finished = body === 'none'
    this.bytesWritten += head.length
    const waitForTrailers = !this.#finished && this.#own?.possible === true
    let stream: ClientHttp2Stream
    try {
      const fields = requestFields(head, this.#home.scheme, this.#home.authority)
      stream = this.#home.request(fields, { endStream: this.#finished, waitForTrailers })
    } catch (error) {
      // Whoever begins does not expect an end before it has begun.
      process.nextTick(() => this.#unsent(error as Error))
      return
    }
    this.#stream = stream
    onWhole(stream, () => {
      this.#whole = true
    })
    stream.on('headers', (_, __, raw: string[]) => this.#interim(raw))
    stream.on('response', (_, flags, raw: string[]) => this.#head(raw, flags))
    stream.on('data', (chunk: Buffer) => this.#data(chunk))
    stream.on('trailers', (_, __, raw: string[]) => this.#trail(raw))
    if (waitForTrailers) stream.on('wantTrailers', () => this.#follow(stream))
    stream.on('end', () => this.#ended())
    stream.on('drain', () => this.#events?.drain())
    stream.on('error', (error) => {
      this.#error = error
    })
    stream.on('close', () => this.#closed())
  }

  /** @returns false when no more should be written until `drain` */
  write(data: Buffer): boolean {
    const stream = this.#stream
    if (stream === undefined || !stream.writable) return false
    this.bytesWritten += data.length
    return stream.write(data)
  }

  /** The request is whole. */
  finish(): void {
    if (this.#finished) return
    this.#finished = true
    this.#stream?.end()
  }

  pause(): void {
    this.#stream?.pause()
  }

  resume(): void {
    this.#stream?.resume()
  }

  /** Parts go out as they come. */
  cork(): void {
    this.#stream?.cork()
  }

  uncork(): void {
    this.#stream?.uncork()
  }

  /** The peer's time is over: whether it is there at all is to be found out for the streams after this one. */
  late(): void {
    if (this.#home.bytesRead === this.#readBefore) this.#home.doubt()
  }

  /** Ends it at once, the peer is told so; the exchange hears no more. */
  destroy(): void {
    this.#events = undefined
    const stream = this.#stream
    if (stream === undefined) this.#free()
    else cancel(stream)
  }

  // What the session's side tells.

  #interim(raw: string[]): void {
    this.#touch(raw)
    const headers = this.#ownHead(raw)
    if (headers === undefined) return
    this.#interims += 1
    if (this.#interims > mostInterims) this.#fault('invalid_header', 'too many interim responses')
    else this.#events?.interim(statusOf(raw), headers)
  }

  #head(raw: string[], flags: number): void {
    this.#touch(raw)
    const events = this.#events
    if (events === undefined || this.#headed) return
    const headers = this.#ownHead(raw)
    if (headers === undefined) return
    const status = statusOf(raw)
    if (status < 200 || status > 599) {
      this.#fault('invalid_header', 'invalid status')
      return
    }
    this.#headed = true
    // How a body ends is the protocol's matter, and no connection is kept for the sake of one stream.
    const framing = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0 ? 'close' : 'none'
    const head = { headers, framing, bodyLength: 0, persistent: false } as const
    events.head({ status, reasonPhrase: '', ...head })
  }

  /** @returns undefined where it is too large: it is told of */
  #ownHead(raw: readonly string[]): string[] | undefined {
    const headers = ownFields(raw)
    if (textLength(headers) <= this.#maxHead) return headers
    this.#fault('header_overflow', 'response head is too large')
    return undefined
  }

  /** What came is no acceptable response. */
  #fault(reason: HeadFault['reason'], detail: string): void {
    const events = this.#events
    this.destroy()
    events?.fault({ reason, detail })
  }

  #data(chunk: Buffer): void {
    this.bytesRead += chunk.length
    const events = this.#events
    if (events === undefined) return
    this.#home.mark()
    events.activity()
    events.data(chunk)
  }

  #trail(raw: string[]): void {
    this.#touch(raw)
    this.#trailers = ownFields(raw)
    if (textLength(this.#trailers) > maxTrailers) this.#fault('body_cut', 'trailers too long')
  }

  #ended(): void {
    const events = this.#events
    if (events === undefined || !this.#headed || !this.#whole) return
    // Some end a stream both ways at once where they mean that it failed.
    if (this.#trailers === undefined && (this.#stream?.rstCode ?? 0) !== 0) return
    this.#events = undefined
    events.end(this.#trailers)
    // An answer that is whole makes the rest of the request needless.
    if (!this.#finished && this.#stream !== undefined) cancel(this.#stream)
  }

  #closed(): void {
    this.#free()
    const events = this.#events
    if (events === undefined) return
    this.#events = undefined
    const home = this.#home
    const code = this.#stream?.rstCode ?? 0
    if (!this.answered && (code === NGHTTP2_REFUSED_STREAM || home.unseen(this.#stream?.id))) {
      events.refused('peer refused the stream')
    } else if (home.lost) {
      // Others on the session are no less lost than who brought it about.
      events.lost(breach(this.#error) ?? home.failed)
    } else if (code === NGHTTP2_PROTOCOL_ERROR && !this.#headed) {
      events.fault({ reason: 'invalid_header', detail: 'stream ended by PROTOCOL_ERROR' })
    } else {
      events.lost(resetError(code, this.#error))
    }
  }

  /** The body has been written. */
  #follow(stream: ClientHttp2Stream): void {
    // What breaks off ends otherwise.
    if (stream.destroyed || stream.closed) return
    const trailers = this.#finished ? (this.#own?.fields ?? []) : []
    this.bytesWritten += textLength(trailers)
    stream.sendTrailers(collected(trailers))
  }

  /** There is no stream. */
  #unsent(error: Error): void {
    if (this.#home.lost || this.#home.unseen(undefined)) {
      this.#closed()
      return
    }
    this.#free()
    const events = this.#events
    this.#events = undefined
    events?.unsent(error.message)
  }

  #touch(raw: string[]): void {
    this.answered = true
    this.bytesRead += textLength(raw)
    this.#home.mark()
    this.#events?.activity()
  }

  #free(): void {
    if (this.#over) return
    this.#over = true
    this.#home.freed()
  }
}
