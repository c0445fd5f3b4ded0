import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { Socket } from 'node:net'
import { monotonic } from '../../../feedback/clock.ts'
import { Http2Lifetime } from '../../../feedback/http2-lifetime.ts'
import { PeerStream } from './stream.ts'
import type { Follows, StreamHome } from './stream-home.ts'

/** How much of one response may come before it is read, bytes: what a slow client can make this side hold. */
const streamWindow = 128 * 1024
/** The same of all of a session. What has come is counted as read at once, so that one slow client holds up no other. */
const sessionWindow = 2 * 1024 * 1024
/** A session that has been silent so long, milliseconds, is asked whether it is alive as it is used again. */
const longSilence = 10_000
/** How long it may take to say so, milliseconds. */
const pingTimeout = 5_000

/** Clients' fields go on as they came: Node would refuse some that come twice. Its types know this of servers alone. */
const lenient = { strictSingleValueFields: false }

/** Who holds sessions. */
export interface SessionHolder {
  /** A stream is over. */
  freed(session: PeerSession): void
  /** It takes no more streams: the peer says so, or its connection is gone. */
  closed(session: PeerSession): void
}

/** Who makes a session. */
export interface SessionKeeper extends SessionHolder {
  /** Its peer has said how many streams it takes: it can be used. */
  ready(session: PeerSession): void
}

/** A connection to a peer that speaks HTTP/2: many exchanges at once. */
export class PeerSession implements StreamHome {
  /** The peer's address in text. */
  readonly key: string
  /** Sessions are shared by it. */
  readonly lane: string
  readonly scheme: string
  readonly authority: string
  /** Monotonic milliseconds. */
  readonly openedAt: number
  /** Streams begun on it. */
  begun = 0
  /** Streams that are not over. */
  streams = 0
  /** Moment its last stream ended; monotonic milliseconds. */
  restedAt = 0
  failed: NodeJS.ErrnoException | undefined = undefined
  deaf = false
  readonly #socket: Socket
  readonly #session: ClientHttp2Session
  readonly #lifetime: Http2Lifetime
  readonly #keeper: SessionKeeper
  #capacity = 0
  #ready = false
  #lost = false
  #shut = false
  #doubted = false
  #activeAt: number
  #lastSeen: number | undefined = undefined

  /**
   * @param socket connected, and ready for HTTP/2
   * @param scheme `http`, or `https` inside of TLS
   */
  constructor(socket: Socket, key: string, lane: string, scheme: string, keeper: SessionKeeper) {
    this.key = key
    this.lane = lane
    this.scheme = scheme
    this.authority = key.startsWith('unix:') ? 'localhost' : key
    this.openedAt = monotonic()
    this.#activeAt = this.openedAt
    this.#socket = socket
    this.#keeper = keeper
    // There is no half of a session: a peer that ends its side has gone.
    socket.allowHalfOpen = false
    // Before those of the session, which end the streams.
    socket.once('error', (error) => {
      this.failed ??= error
    })
    socket.once('close', () => {
      this.#lost = true
    })
    // It takes a turn of the loop or two until the connection is closed for that.
    socket.once('end', () => this.#close())
    this.#lifetime = new Http2Lifetime(socket)
    const session = connect(`${scheme}://peer`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: streamWindow },
      // Windows bound what is held; the default would refuse streams for it.
      maxSessionMemory: 1000,
      maxHeaderListPairs: 1000,
      ...lenient,
    })
    this.#lifetime.begun()
    this.#session = session
    session.once('connect', () => session.setLocalWindowSize(sessionWindow))
    session.on('remoteSettings', ({ maxConcurrentStreams }) => {
      this.#capacity = maxConcurrentStreams ?? Number.POSITIVE_INFINITY
      if (this.#ready) return
      this.#ready = true
      keeper.ready(this)
    })
    session.on('goaway', (code, lastStreamId) => {
      this.#lastSeen = lastStreamId
      if (code !== 0) this.failed ??= sessionError(`peer said GOAWAY with code ${code}`)
      this.#close()
    })
    session.on('error', (error) => {
      this.failed ??= error
      this.#close()
    })
    session.on('close', () => {
      this.#lost = true
      this.#close()
    })
  }

  /** Whether another stream can be begun. */
  get open(): boolean {
    return this.usable && this.streams < this.#capacity
  }

  /** Whether it is kept for streams to come. */
  get usable(): boolean {
    return this.#ready && !this.#shut && !this.#doubted && !this.#session.closed
  }

  /** Whether its peer takes no streams at all. */
  get barren(): boolean {
    return this.#capacity <= 0
  }

  get lost(): boolean {
    return this.#lost || this.#session.destroyed
  }

  get bytesRead(): number {
    return this.#socket.bytesRead
  }

  /** Takes a place for a stream. @param fresh whether the session was opened for it */
  stream(fresh: boolean): PeerStream {
    this.begun += 1
    this.streams += 1
    return new PeerStream(this, fresh)
  }

  /** No more streams; those that run go on. */
  retire(): void {
    this.#shut = true
    this.#session.close()
  }

  /** Closes at once. */
  destroy(error?: NodeJS.ErrnoException): void {
    this.#shut = true
    if (error !== undefined) this.failed ??= error
    this.#session.destroy(error)
    // The session would first wait for what is still to be sent.
    this.#socket.destroy()
  }

  // What streams tell.

  request(fields: string[], follows: Follows): ClientHttp2Stream {
    if (monotonic() - this.#activeAt >= longSilence) this.#ping()
    const stream = this.#session.request(fields, { ...follows })
    this.#lifetime.stream(stream, this.#session)
    return stream
  }

  unseen(id: number | undefined): boolean {
    return this.#lastSeen !== undefined && (id === undefined || id > this.#lastSeen)
  }

  mark(): void {
    this.#activeAt = monotonic()
  }

  doubt(): void {
    if (this.#doubted || this.lost) return
    this.#doubted = true
    this.#ping()
  }

  freed(): void {
    this.streams -= 1
    this.#keeper.freed(this)
  }

  #ping(): void {
    if (this.lost) return
    const timer = setTimeout(() => {
      this.deaf = true
      this.destroy(sessionError('peer has not answered a PING'))
    }, pingTimeout)
    timer.unref()
    this.#session.ping((error) => {
      clearTimeout(timer)
      if (error) return
      this.#doubted = false
      this.mark()
    })
  }

  #close(): void {
    this.#shut = true
    this.#keeper.closed(this)
  }
}

function sessionError(text: string): NodeJS.ErrnoException {
  return Object.assign(new Error(text), { code: 'ECONNABORTED' })
}
