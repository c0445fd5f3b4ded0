import type { Socket } from 'node:net'
import { monotonic } from '../../../feedback/clock.ts'
import { reset } from '../../net/reset.ts'
import type { Carrier, Unserved } from '../client-side.ts'
import { extensionsTooLong } from './body-decoder.ts'
import { ClientRequest } from './client-request.ts'
import { ClientResponse } from './client-response.ts'
import { unserved } from './request-head.ts'
import { RequestReader } from './request-reader.ts'

/** What a client's connection obeys. */
export interface ConnectionLimits {
  /** Milliseconds for a whole request head. */
  readonly headerTimeout: number
  /** Most bytes of request line and headers together. */
  readonly maxHead: number
  /** Milliseconds a connection may be idle between two requests; 0: each request is its last. */
  readonly keepaliveTimeout: number
}

/** Told of what comes on clients' connections. */
export interface ClientEvents {
  /** A request's head has been read. None comes before the work on the one before it is over: see `next`. */
  request(request: ClientRequest, response: ClientResponse): void
  /** What came is no request that can be served. It is answered by whoever is told, with `refuse`. */
  unserved(what: Unserved): void
  /**
   * The body of the request in progress is none: it is answered by whoever is told, where it still can be.
   * @param why what is wrong with it, for the error log
   */
  malformed(status: number, why: string): void
  /** The client has ended its side while a whole request of its is in progress. @returns whether it still listens */
  left(): boolean
  /** The response is over. */
  over(response: ClientResponse): void
  closed(): void
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
export class ClientConnection implements Carrier {
  readonly socket: Socket
  readonly serial: number
  /** Requests so far. */
  requests = 0
  /** Whether a request is in progress: from its head to `next`. */
  active = false
  readonly #place: { readonly spec: ConnectionLimits }
  readonly #events: ClientEvents
  readonly #reader = new RequestReader()
  #request: ClientRequest | undefined = undefined
  #response: ClientResponse | undefined = undefined
  #advancing = false
  /** Nothing that comes matters any more. */
  #dropping = false
  #paused = false
  /** The client has ended its side. */
  #ended = false
  /** Since when the rest of a head, or its first byte, is waited for; monotonic milliseconds. */
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
    if (this.#ended && this.#reader.waiting === 0) this.#finish()
    else this.advance()
  }

  /** Looks at what has come, as far as somebody takes it. */
  advance(): void {
    if (this.#advancing) return
    this.#advancing = true
    while (this.#reader.waiting > 0 && !this.#dropping && this.#step());
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
    const first = this.#reader.clear()
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
    if (response?.untilClose && !response.finished) reset(this.socket)
    else this.socket.destroy()
  }

  /**
   * Ends a response that cannot be made whole, so that its client can tell. What went before it, answers to requests that
   * were sent ahead of it too, still arrives: closing while the client sends would be a reset, which takes that away.
   */
  breakOff(): void {
    const response = this.#response
    if (this.#dropping || !response || response.untilClose || response.finished) {
      this.cut()
      return
    }
    this.#drop()
    this.socket.end()
    this.#linger(lingeringRefused)
    // As with a connection that closes: whoever broke it off has noted why by then.
    process.nextTick(() => {
      this.#request?.abort()
      response.close()
    })
  }

  /** Closes it without an answer. */
  hangUp(): void {
    this.socket.destroy()
  }

  /** Closes it where no request is in progress. */
  closeIdle(): void {
    if (!this.active) this.#finish()
  }

  /** Looks whether the client has taken too long. To be called from time to time. */
  check(now: number): void {
    if (this.active || this.#dropping) return
    const waited = now - this.#since
    const { headerTimeout, keepaliveTimeout } = this.#place.spec
    if (this.#reader.begun) {
      if (waited >= headerTimeout) this.#events.unserved(unserved(408, 'head not complete in time'))
    } else if (waited >= (this.requests === 0 ? headerTimeout : keepaliveTimeout)) {
      // A connection that was opened and left alone is no request.
      this.closeIdle()
    }
  }

  /** The response is over: see `ResponseEnd`. */
  over(response: ClientResponse): void {
    if (response.finished && response.last) this.#finish()
    this.#events.over(response)
  }

  #receive(chunk: Buffer): void {
    if (this.#dropping) return
    this.#reader.add(chunk)
    this.advance()
  }

  /** @returns whether to go on */
  #step(): boolean {
    const request = this.#request
    if (request && !request.complete) return request.flowing && this.#readBody(request)
    return !this.active && this.#readHead()
  }

  #readBody(request: ClientRequest): boolean {
    const { body } = this.#reader
    if (!this.#reader.readBody()) {
      if (this.active) this.#events.malformed(body.fault === extensionsTooLong ? 413 : 400, body.fault)
      else this.#finish()
      // Whoever waits for the rest waits in vain.
      request.abort()
      return false
    }
    // Before anybody is told, who may ask for more.
    const { done, trailers } = body
    if (!this.active) this.#since = monotonic()
    const part = body.take()
    if (part) request.data(part)
    if (done) {
      request.trailers = trailers
      request.end()
      if (!this.active) this.#request = undefined
    }
    return true
  }

  #readHead(): boolean {
    const { begun } = this.#reader
    const head = this.#reader.readHead(this.#place.spec.maxHead)
    if (!head) {
      if (!begun && this.#reader.begun) this.#since = monotonic()
      return false
    }
    if ('status' in head) {
      this.#unserved(head)
      return false
    }
    const request = new ClientRequest(head, this)
    const response = new ClientResponse(this.socket, head, this)
    this.#request = request
    this.#response = response
    this.requests += 1
    this.active = true
    this.#events.request(request, response)
    return true
  }

  #unserved(what: Unserved): void {
    this.#reader.begun = false
    this.#events.unserved(what)
  }

  /** Reads on unless much waits already. */
  #flow(): void {
    if (this.#reader.waiting >= mostWaiting === this.#paused) return
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
      if ((request && !request.complete) || !this.#events.left()) this.cut()
      else this.#response!.last = true
    } else if (this.#reader.begun) {
      this.#unserved(unserved(400, 'connection closed in the middle of a head'))
    } else {
      this.#finish()
    }
  }

  /** After the last response: closes, without a reset that could take the answer from the client. */
  #finish(): void {
    if (this.#dropping) return
    const unread = this.#reader.waiting > 0 || this.#request?.complete === false
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
    this.#reader.clear()
    if (this.#paused) this.socket.resume()
    this.#paused = false
  }

  #closed(): void {
    this.#dropping = true
    this.#reader.clear()
    const request = this.#request
    // That the client has left comes first: it is why its body breaks off.
    this.#response?.close()
    request?.abort()
    this.#events.closed()
  }
}
