import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { ProxiedAddresses } from '../../../feedback/call.ts'
import { monotonic } from '../../../feedback/clock.ts'
import { Http2Lifetime } from '../../../feedback/http2-lifetime.ts'
import type { Place } from '../../net/addresses.ts'
import type { ClientAddress } from '../../net/client-address.ts'
import type { ClientTls } from '../../tls/client-tls.ts'
import type { Unserved } from '../client-side.ts'
import { Exchange } from '../exchange.ts'
import type { Caller, ClientGreeting, Host, Served } from '../host.ts'
import type { ListenSpec } from '../listen-spec.ts'
import { unservedCall } from '../refusal.ts'
import { makeCall } from '../request-call.ts'
import { readHead } from './head.ts'
import { Resets } from './resets.ts'
import { sessionOptions, windowBytes } from './session-options.ts'
import { Stream, type StreamHost } from './stream.ts'

/** How long a client has to learn that no more streams are wanted, before those that it opens are refused, milliseconds. */
const notice = 400
/** How long it may keep the connection after its last stream, milliseconds. */
const lingering = 5000
/** The highest number of a stream: a GOAWAY with it says that there will be another one. */
const highestStream = 2 ** 31 - 1
/** Bytes that no request needs, before their share is looked at. */
const spare = 1_048_576

const nothing = () => {}

/** A client that speaks HTTP/2: its connection, and the exchanges in progress on it. */
export class Http2Client implements Served, Caller, StreamHost {
  /** Its serial number, and requests so far. */
  readonly connection: { readonly serial: number; requests: number }
  readonly address: ClientAddress
  readonly proxied: ProxiedAddresses | undefined
  readonly tls: ClientTls | undefined
  readonly #socket: Socket
  readonly #session: ServerHttp2Session
  readonly #lifetime: Http2Lifetime
  readonly #place: Place<ListenSpec>
  readonly #host: Host
  readonly #streams = new Set<Stream>()
  readonly #resets: Resets
  /** Bytes that requests and responses consist of, so far. */
  #payload = 0
  /** Since when it has no stream, monotonic milliseconds. */
  #since: number
  /** When it was told that no more streams are wanted, monotonic milliseconds; undefined: it was not. */
  #noticedAt: number | undefined = undefined
  /** A stream was ended because its client took nothing, since it was looked at last. */
  #stalled = false
  /** Bytes that had been written as that was seen; undefined: it was not. */
  #stuckAt: number | undefined = undefined
  /** When it was seen to be over but for its connection, monotonic milliseconds. */
  #endedAt: number | undefined = undefined
  /** Why it is being closed, where its client is to blame. */
  #fault: string | undefined = undefined

  /** @param socket whatever has come of it has been put back */
  constructor(
    socket: Socket,
    serial: number,
    place: Place<ListenSpec>,
    host: Host,
    greeting: ClientGreeting,
  ) {
    this.connection = { serial, requests: 0 }
    this.address = greeting.address
    this.proxied = greeting.proxied
    this.tls = greeting.tls
    this.#place = place
    this.#host = host
    this.#socket = socket
    this.#since = monotonic()
    this.#resets = new Resets(this.#since)
    // There is no half of a session: whoever ends its side has gone.
    socket.allowHalfOpen = false
    this.#lifetime = new Http2Lifetime(socket)
    this.#session = performServerHandshake(socket, sessionOptions(place.spec))
    this.#lifetime.begun()
    this.#session.on('stream', (stream, _headers, flags, raw) => this.#begin(stream, flags, raw))
    this.#session.on('error', (error: Error) => this.#failed(error))
    // Node tells of it twice where the connection closes while the session waits for a write.
    this.#session.once('close', () => host.gone(this))
  }

  get spec(): ListenSpec {
    return this.#place.spec
  }

  // What the listener tells.

  check(now: number): void {
    this.#checkWrites(now)
    if (!this.#session.destroyed && this.#socket.bytesRead / 8 > this.#payload + spare) {
      this.#calm('sent far more than its requests consist of')
      return
    }
    if (this.#session.closed || this.#session.destroyed) {
      if (this.#streams.size > 0) return
      // Whoever does not close after the last word, or does not even take it, is not waited for.
      this.#endedAt ??= now
      if (now - this.#endedAt >= lingering) this.#socket.destroy()
      return
    }
    if (this.#place.removed) this.drain()
    if (this.#noticedAt !== undefined && now - this.#noticedAt >= notice) this.#close()
    if (this.#streams.size > 0) return
    const { headerTimeout, keepaliveTimeout } = this.spec
    const timeout = this.connection.requests === 0 ? headerTimeout : keepaliveTimeout
    if (now - this.#since >= timeout) this.#close()
  }

  /** Looks whether the client takes what is sent to it. */
  #checkWrites(now: number): void {
    const { bytesWritten } = this.#socket
    if (this.#stuckAt !== undefined && this.#stuckAt !== bytesWritten) this.#stuckAt = undefined
    // What resets a stream goes out whatever its window says: where it does not, it is the connection that stands still.
    if (this.#stuckAt !== undefined && (this.#session.state.outboundQueueSize ?? 0) > 0) this.#hangUp()
    // What ended the stream may not have been sent when it was ended just now.
    if (this.#stalled) this.#stuckAt = bytesWritten
    this.#stalled = false
    for (const stream of this.#streams) stream.check(now)
  }

  /** Says that no more streams are wanted. Those that are on their way are still served. */
  drain(): void {
    if (this.#noticedAt !== undefined || this.#session.closed || this.#session.destroyed) return
    this.#noticedAt = monotonic()
    this.#session.goaway(constants.NGHTTP2_NO_ERROR, highestStream)
  }

  closeIdle(): void {
    if (this.#streams.size === 0) this.#close()
  }

  shutDown(): void {
    for (const stream of this.#streams) {
      // It is not the client that has gone.
      if (stream.exchange) stream.exchange.call.denial ??= 'shutdown'
      stream.cut()
    }
    this.#hangUp()
  }

  #hangUp(): void {
    this.#session.destroy()
    this.#socket.destroy()
  }

  // What streams tell.

  received(bytes: number): void {
    this.#payload += bytes
  }

  #begin(raw: ServerHttp2Stream, flags: number, fields: readonly string[]): void {
    this.#lifetime.stream(raw, this.#session)
    // Every error ends in `close`.
    raw.on('error', nothing)
    this.connection.requests += 1
    const ended = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    const head = readHead(fields, ended, this.spec.maxHead)
    if ('status' in head) {
      this.#refuse(raw, head, ended)
      return
    }
    this.#payload += head.bytes
    const { counts, handler, draining } = this.#host
    const { spec, removed } = this.#place
    const stream = new Stream(raw, head, this)
    if (this.#streams.size === 0) counts.active += 1
    this.#streams.add(stream)
    const call = makeCall(head, this)
    const exchange = new Exchange(call, stream.request, stream.response, stream, spec.settings, (ended) => {
      this.#payload += call.bytesSent
      // What has come of a body that nobody took was not seen.
      if (!stream.request.complete) this.#payload += windowBytes
      this.#over(stream)
      handler.ended(ended)
      stream.finish()
      this.#rest()
    })
    stream.exchange = exchange
    if (draining || removed || this.connection.requests >= spec.keepaliveRequests) this.drain()
    // Where it was reset together with what began it.
    if (raw.destroyed) stream.closed()
    handler.serve(exchange, spec.key)
  }

  /** Answers what is no request that could be served. */
  #refuse(raw: ServerHttp2Stream, what: Unserved, ended: boolean): void {
    const call = unservedCall(this, what)
    call.httpVersion = '2.0'
    if (raw.destroyed || raw.closed) {
      // Reset together with what began it.
      call.status = 499
    } else {
      const text = `${what.status}\n`
      raw.respond([':status', `${what.status}`, 'server', 'evenkeel', 'content-type', 'text/plain'])
      raw.end(what.method === 'HEAD' ? '' : text)
      // A body that it has is not wanted.
      if (!ended) raw.close(constants.NGHTTP2_NO_ERROR)
      call.bytesSent = text.length
    }
    call.endedAt = monotonic()
    this.#host.handler.malformed(call, this.spec.settings, what.why)
    // Whoever sends many of them has this side work for nothing, too.
    this.#reset()
  }

  #over(stream: Stream): void {
    this.#streams.delete(stream)
    if (stream.stalled) this.#stalled = true
    if (this.#streams.size === 0) {
      this.#host.counts.active -= 1
      this.#since = monotonic()
    }
    if (!stream.faulty && (stream.response.finished || stream.broken)) this.#resets.ended()
    else this.#reset()
  }

  /** A stream has ended before its time. */
  #reset(): void {
    if (!this.#resets.reset(monotonic())) this.#calm('reset too many streams')
  }

  /** No stream is left: whether one more may come. */
  #rest(): void {
    if (this.#streams.size > 0) return
    if (this.spec.keepaliveTimeout === 0) this.drain()
  }

  /** Cuts off a client that asks too much. */
  #calm(why: string): void {
    if (this.#session.destroyed) return
    this.#fault = why
    this.#session.destroy(new Error(why), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  /** Takes no more streams, and closes after those that there are. */
  #close(): void {
    if (this.#session.closed || this.#session.destroyed) return
    this.#session.close()
  }

  #failed(error: NodeJS.ErrnoException): void {
    // A connection that breaks is no fault of anybody.
    if (this.#fault === undefined && !/^ERR_HTTP2/.test(error.code ?? '')) return
    const call = unservedCall(this, { status: 0, method: '', target: '', why: '' })
    this.#host.handler.unruly(call, `client ${this.#fault ?? `broke HTTP/2: ${error.message}`}`)
  }
}
