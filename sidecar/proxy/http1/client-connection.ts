import type { Socket } from 'node:net'
import { monotonic } from '../../../feedback/clock.ts'
import { BodyDecoder } from './body-decoder.ts'
import { ClientRequest } from './client-request.ts'
import { ClientResponse } from './client-response.ts'
import { bareLineFeed } from './fields.ts'
import { readRequestHead, type Unserved, unserved } from './request-head.ts'

/** What a client's connection obeys. */
export interface ConnectionLimits {
  /** Milliseconds for a whole request head. */
  readonly headerTimeout: number
  /** Most bytes of request line and headers together. */
  readonly maxHead: number
  /** Milliseconds a connection may be idle between two requests. */
  readonly keepaliveTimeout: number
}

/** Told of what comes on clients' connections. */
export interface ClientEvents {
  /** A request's head has been read. None comes before the work on the one before it is over: see `next`. */
  request(connection: ClientConnection, request: ClientRequest, response: ClientResponse): void
  /** What came is no request that can be served. It is answered by whoever is told, with `refuse`. */
  unserved(connection: ClientConnection, what: Unserved): void
  /** The body of the request in progress is none: it is answered by whoever is told, where it still can be. */
  malformed(connection: ClientConnection, status: number): void
  /** The client has ended its side while a whole request of its is in progress. @returns whether it still listens */
  left(connection: ClientConnection): boolean
  /** The response is over. */
  over(connection: ClientConnection, response: ClientResponse): void
  closed(connection: ClientConnection): void
}

/** Most bytes that wait to be looked at before no more are read, as those of requests sent ahead of their turn. */
const mostWaiting = 65536
/** How long a client may go on sending after its connection's last answer, and after a refusal, milliseconds. */
const lingering = 5000
const lingeringRefused = 1000

/**
 * An HTTP/1.1 connection of a client: reads requests off it, one at a time, and writes their responses. What is sent
 * ahead of its turn waits.
 */
export class ClientConnection {
  readonly socket: Socket
  readonly serial: number
  /** Requests so far. */
  requests = 0
  /** Whether a request is in progress: from its head to `next`. */
  active = false
  readonly #place: { readonly spec: ConnectionLimits }
  readonly #events: ClientEvents
  /** What came and was not looked at yet, from `#at` on. */
  #rest: Buffer | undefined = undefined
  #at = 0
  /** Up to where the end of a head was looked for. */
  #searched = 0
  #request: ClientRequest | undefined = undefined
  #response: ClientResponse | undefined = undefined
  readonly #body = new BodyDecoder()
  #advancing = false
  /** Nothing that comes matters any more. */
  #dropping = false
  #paused = false
  /** The client has ended its side. */
  #ended = false
  /** Whether any byte of a head has come, and since when it is waited for the rest, or for a first one; monotonic milliseconds. */
  #begun = false
  #since: number

  /** @param place what was listened on: its limits are those of the moment */
  constructor(
    socket: Socket,
    serial: number,
    place: { readonly spec: ConnectionLimits },
    events: ClientEvents,
  ) {
    this.socket = socket
    this.serial = serial
    this.#place = place
    this.#events = events
    this.#since = monotonic()
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('end', () => this.#end())
    // Every error ends in `close`.
    socket.on('error', () => {})
    socket.on('drain', () => this.#response?.drained())
    socket.on('close', () => this.#closed())
  }

  /** Whether it goes on after the request in progress. */
  get open(): boolean {
    return !this.#dropping && !this.socket.destroyed
  }

  /** The work on a request is over: the next one may come. */
  next(): void {
    this.active = false
    this.#request = this.#request?.complete === false ? this.#request : undefined
    this.#response = undefined
    this.#since = monotonic()
    if (this.#dropping) return
    this.#request?.drop()
    if (this.#ended && !this.#rest) this.#finish()
    else this.advance()
  }

  /** Looks at what has come, as far as somebody takes it. */
  advance(): void {
    if (this.#advancing) return
    this.#advancing = true
    while (this.#rest && !this.#dropping && this.#step(this.#rest));
    this.#advancing = false
    this.#flow()
  }

  /** Answers with a text of our own, and closes. @returns bytes written */
  refuse(text: string): number {
    this.#drop()
    this.socket.end(text, 'latin1')
    this.#linger(lingeringRefused)
    return text.length
  }

  /**
   * Hands the socket over, for a tunnel. The connection only tells when it closes.
   * @returns what had already come of the tunnel's bytes; undefined for none
   */
  detach(): Buffer | undefined {
    const { socket } = this
    const first = this.#rest?.subarray(this.#at)
    this.#drop()
    socket.pause()
    for (const event of ['data', 'end', 'drain']) socket.removeAllListeners(event)
    this.#response = undefined
    return first
  }

  /** Closes it at once, so that the client can tell that a response in progress is not whole. */
  cut(): void {
    const response = this.#response
    // A body that ends with the connection looks whole after an orderly close: only a reset tells.
    if (response?.untilClose && !response.finished) this.socket.resetAndDestroy()
    else this.socket.destroy()
  }

  /** Closes it where no request is in progress. */
  closeIdle(): void {
    if (this.active) return
    this.#drop()
    this.socket.destroySoon()
  }

  /** Looks whether the client has taken too long. To be called from time to time. */
  check(now: number): void {
    if (this.active || this.#dropping) return
    const waited = now - this.#since
    const { headerTimeout, keepaliveTimeout } = this.#place.spec
    if (this.#begun) {
      if (waited >= headerTimeout) this.#events.unserved(this, unserved(408, 'head not complete in time'))
    } else if (waited >= (this.requests === 0 ? headerTimeout : keepaliveTimeout)) {
      // A connection that was opened and left alone is no request.
      this.closeIdle()
    }
  }

  /** The response is over: see `ResponseEnd`. */
  over(response: ClientResponse): void {
    if (response.finished && response.last) this.#finish()
    this.#events.over(this, response)
  }

  #receive(chunk: Buffer): void {
    if (this.#dropping) return
    if (this.#rest) {
      this.#rest = Buffer.concat([this.#at === 0 ? this.#rest : this.#rest.subarray(this.#at), chunk])
      this.#searched = Math.max(0, this.#searched - this.#at)
    } else {
      this.#rest = chunk
      this.#searched = 0
    }
    this.#at = 0
    this.advance()
  }

  /** @returns whether to go on */
  #step(rest: Buffer): boolean {
    const request = this.#request
    if (request && !request.complete) return request.flowing && this.#readBody(rest, request)
    return !this.active && this.#readHead(rest)
  }

  #readBody(rest: Buffer, request: ClientRequest): boolean {
    const body = this.#body
    const at = body.next(rest, this.#at)
    if (at < 0) {
      const status = body.fault === 'chunk extensions too long' ? 413 : 400
      this.#take(rest, rest.length)
      request.flowing = false
      if (this.active) this.#events.malformed(this, status)
      else this.#finish()
      return false
    }
    // Before anybody is told, who may ask for more.
    this.#take(rest, at)
    const { done } = body
    if (!this.active) this.#since = monotonic()
    const part = body.take()
    if (part) request.data(part)
    if (done) {
      request.end()
      if (!this.active) this.#request = undefined
    }
    return true
  }

  #readHead(rest: Buffer): boolean {
    let from = this.#at
    // RFC 9112 section 2.2: clients of old put a line break after a body.
    while (rest[from] === 13 && rest[from + 1] === 10) from += 2
    if (from > this.#at) {
      this.#take(rest, from)
      return this.#rest !== undefined
    }
    if (!this.#begun) {
      this.#begun = true
      this.#since = monotonic()
    }
    const end = rest.indexOf('\r\n\r\n', Math.max(from, this.#searched - 3), 'latin1')
    const { maxHead } = this.#place.spec
    if (end - from > maxHead || (end < 0 && rest.length - from > maxHead)) {
      // A line that alone is too long is a target that is.
      const line = rest.indexOf('\r\n', from, 'latin1')
      this.#unserved(
        line < 0 || line - from > maxHead
          ? unserved(414, 'request line too long')
          : unserved(431, 'header too large'),
      )
      return false
    }
    if (end < 0) {
      this.#searched = rest.length
      // What cannot become a request line is refused at once instead of waited for.
      if (!mayBegin(rest, from) || bareLineFeed(rest, from))
        this.#unserved(unserved(400, 'invalid request line'))
      return false
    }
    const head = readRequestHead(rest.toString('latin1', from, end))
    this.#take(rest, end + 4)
    this.#begun = false
    if ('status' in head) {
      this.#unserved(head)
      return false
    }
    const request = new ClientRequest(head, this)
    const response = new ClientResponse(this.socket, head, this)
    this.#body.begin(head.framing, head.bodyLength)
    this.#request = request
    this.#response = response
    this.requests += 1
    this.active = true
    this.#events.request(this, request, response)
    return true
  }

  #unserved(what: Unserved): void {
    this.#begun = false
    this.#events.unserved(this, what)
  }

  /** What is before `at` has been looked at. */
  #take(rest: Buffer, at: number): void {
    if (at < rest.length) {
      this.#at = at
      return
    }
    this.#rest = undefined
    this.#at = 0
  }

  /** Reads on unless much waits already. */
  #flow(): void {
    const waits = this.#rest ? this.#rest.length - this.#at : 0
    if (waits >= mostWaiting === this.#paused) return
    this.#paused = !this.#paused
    if (this.#paused) this.socket.pause()
    else this.socket.resume()
  }

  /** The client has ended its side. */
  #end(): void {
    this.#ended = true
    if (this.#dropping) return
    const request = this.#request
    if (this.active) {
      // A body that breaks off, or nobody who would read the answer.
      if ((request && !request.complete) || !this.#events.left(this)) this.cut()
      else if (this.#response) this.#response.last = true
    } else if (this.#begun) {
      this.#unserved(unserved(400, 'connection closed in the middle of a head'))
    } else {
      this.#finish()
    }
  }

  /** After the last response: closes, without a reset that could take the answer from the client. */
  #finish(): void {
    if (this.#dropping) return
    const unread = this.#rest !== undefined || this.#request?.complete === false
    this.#drop()
    if (unread) {
      this.socket.end()
      this.#linger(lingering)
    } else {
      this.socket.destroySoon()
    }
  }

  /** Reads and drops what the client still sends: closing with bytes unread would reset the connection. */
  #linger(ms: number): void {
    const timer = setTimeout(() => this.socket.destroy(), ms)
    this.socket.once('close', () => clearTimeout(timer))
  }

  #drop(): void {
    this.#dropping = true
    this.#rest = undefined
    if (this.#paused) this.socket.resume()
    this.#paused = false
  }

  #closed(): void {
    this.#dropping = true
    this.#rest = undefined
    this.#request?.abort()
    this.#response?.close()
    this.#events.closed(this)
  }
}

const firstLetters = /^[A-Z][A-Z0-9_-]*(?: |$)/

/** Whether bytes may be the beginning of a request line. */
function mayBegin(rest: Buffer, from: number): boolean {
  const text = rest.toString('latin1', from, from + 32)
  return text === '\r' || firstLetters.test(text) || /^[A-Z][A-Z0-9_-]{31}$/.test(text)
}
