import { connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { monotonic } from '../../../feedback/clock.ts'
import type { Address } from '../../../feedback/peer.ts'
import type { PeerEngine, PeerName, PeerTlsError } from '../../tls/peer-engine.ts'
import { Wire } from '../../tls/wire.ts'
import type { HeadContext, HeadFault } from './head.ts'
import { type ResponseEvents, ResponseParser } from './response-parser.ts'

/** What a connection tells the exchange that runs on it. After `end`, `fault` or `lost` it tells no more. */
export interface ExchangeEvents extends ResponseEvents {
  /** What came is no acceptable response. The connection is gone. */
  fault(fault: HeadFault): void
  /** The connection broke, or the peer closed it before the message was complete. */
  lost(error: NodeJS.ErrnoException | undefined): void
  /** What was written has left for the kernel: more may be written. */
  drain(): void
  /** Something came in. */
  activity(): void
}

/** Nobody listens to a connection at rest. */
const resting: ExchangeEvents = {
  interim() {},
  head() {},
  data() {},
  end() {},
  fault() {},
  lost() {},
  drain() {},
  activity() {},
}

/** One HTTP/1.1 connection to a peer: one exchange at a time, kept between them. */
export class Connection {
  readonly socket: Socket
  /** The peer's address in text. */
  readonly key: string
  /** Connections are reused by it. */
  readonly lane: string
  /** Monotonic milliseconds. */
  readonly openedAt: number
  /** Exchanges begun on it. */
  requests = 0
  /** Moment it came to rest; monotonic milliseconds. */
  restedAt = 0
  /** Called once when it closes while at rest. */
  onIdleClose: (() => void) | undefined = undefined
  #parser: ResponseParser
  #events: ExchangeEvents = resting
  #chunked = false
  #closed = false
  #failed: NodeJS.ErrnoException | undefined = undefined

  /** How many of the last pieces in turn had two bytes; see `Wire`. */
  #short = 0
  readonly #wire: Wire | undefined

  /**
   * @param lane where kept connections to the peer differ; its address otherwise
   * @param wire what TLS is spoken on; undefined: it is not
   */
  constructor(socket: Socket, key: string, openedAt: number, lane = key, wire?: Wire) {
    this.#wire = wire
    this.socket = socket
    this.key = key
    this.lane = lane
    this.openedAt = openedAt
    this.#parser = new ResponseParser(resting)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('end', () => this.#ended())
    socket.on('error', (error) => {
      this.#failed = error
    })
    socket.on('close', () => this.#shut())
    socket.on('drain', () => this.#events.drain())
  }

  /** Whether it can still carry an exchange. */
  get usable(): boolean {
    return !this.#closed && !this.socket.destroyed && this.socket.writable && this.socket.readable
  }

  /** Whether the peer has sent any byte of the response to the exchange that runs. */
  get answered(): boolean {
    return this.#parser.began
  }

  /** Whether nothing has come since the exchange began. */
  get untouched(): boolean {
    return !this.#parser.began
  }

  /** Bytes of all exchanges. */
  get bytesWritten(): number {
    return this.socket.bytesWritten
  }

  get bytesRead(): number {
    return this.socket.bytesRead
  }

  /** Begins an exchange: what comes from now on is the response. Write the request with `write`. */
  begin(events: ExchangeEvents, context: HeadContext, maxHead: number): void {
    this.requests += 1
    this.#events = events
    this.#parser.begin(events, context, maxHead)
  }

  /**
   * Begins the request of an exchange.
   * @param head request line and headers with the final empty line, latin1
   * @param body how the body is framed that follows
   */
  send(head: string, body: 'none' | 'plain' | 'chunked'): void {
    this.#chunked = body === 'chunked'
    this.socket.write(head, 'latin1')
  }

  /**
   * Writes a part of the body.
   * @returns false when the kernel's buffer is full: wait for `drain`
   */
  write(data: Buffer): boolean {
    const { socket } = this
    if (!this.#chunked) return socket.write(data)
    socket.cork()
    socket.write(`${data.length.toString(16)}\r\n`, 'latin1')
    socket.write(data)
    const more = socket.write('\r\n', 'latin1')
    socket.uncork()
    return more
  }

  /** The request is whole. */
  finish(): void {
    if (this.#chunked) this.socket.write('0\r\n\r\n', 'latin1')
  }

  /** What is written is kept together until `uncork`. */
  cork(): void {
    this.socket.cork()
  }

  uncork(): void {
    this.socket.uncork()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  /** The exchange is over and the message complete: nobody listens until the next one. */
  rest(now: number): void {
    this.#events = resting
    this.#parser.forget()
    this.restedAt = now
    this.socket.resume()
  }

  /**
   * Hands the socket over, for a tunnel. The connection forgets it.
   * @returns the socket and what had already come of the tunnel's bytes
   */
  detach(): { socket: Socket; first: Buffer | undefined } {
    this.#events = resting
    this.socket.pause()
    this.socket.removeAllListeners()
    return { socket: this.socket, first: this.#parser.rest }
  }

  /** Closes at once; the exchange that runs hears no more. */
  destroy(): void {
    this.#events = resting
    this.socket.destroy()
  }

  #receive(chunk: Buffer): void {
    const events = this.#events
    if (events === resting) {
      // Nothing was asked: whatever this is, it would be taken for the next answer.
      this.socket.destroy()
      return
    }
    if (this.#wire !== undefined) this.#short = chunk.length === 2 ? this.#short + 1 : 0
    events.activity()
    const fault = this.#parser.feed(chunk)
    if (fault && this.#events === events) {
      this.destroy()
      events.fault(fault)
    } else if (this.#parser.rest !== undefined && this.#events === resting) {
      this.socket.destroy()
    }
  }

  /** Whether bytes came after the end of the last message; such a connection is not reused. */
  get dirty(): boolean {
    return this.#parser.rest !== undefined
  }

  #ended(): void {
    const events = this.#events
    if (events === resting) {
      this.socket.destroy()
      return
    }
    // With TLS an end that the peer does not tell of may be anybody's: no message ends by it.
    if ((this.#wire?.endedCleanly(this.#short) ?? true) && this.#parser.close()) return
    if (this.#events !== events) return
    this.destroy()
    events.lost(undefined)
  }

  #shut(): void {
    this.#closed = true
    const events = this.#events
    this.#events = resting
    if (events !== resting) events.lost(this.#failed)
    const idle = this.onIdleClose
    this.onIdleClose = undefined
    idle?.()
  }
}

/** How TLS is spoken on a connection. */
export interface ConnectionTls {
  readonly engine: PeerEngine
  readonly name: PeerName
}

/** An attempt to connect, which can be given up. */
export interface Connecting {
  cancel(): void
}

/**
 * Opens a connection.
 * @param tls speaks TLS on it; undefined: nobody does
 * @param done called once, with the open connection or with what went wrong; never after `cancel`
 */
export function openConnection(
  address: Address,
  key: string,
  done: (result: Connection | NodeJS.ErrnoException) => void,
  tls?: ConnectionTls,
): Connecting {
  const socket =
    address.kind === 'unix'
      ? connect({ path: address.path, allowHalfOpen: true })
      : connect({ host: address.host, port: address.port, noDelay: true, allowHalfOpen: true })
  const failed = (error: NodeJS.ErrnoException) => {
    socket.removeAllListeners()
    // A second error of a socket that is given up must not find nobody to hear it.
    socket.on('error', () => {})
    socket.destroy()
    done(error)
  }
  let secure: TLSSocket | undefined
  socket.once('error', failed)
  socket.once('connect', () => {
    socket.removeListener('error', failed)
    if (tls === undefined) {
      done(new Connection(socket, key, monotonic()))
      return
    }
    // The layer above hears of it.
    socket.on('error', () => {})
    const wire = new Wire(socket)
    const { engine, name } = tls
    const secured = (end: TLSSocket | PeerTlsError) => {
      done(end instanceof Error ? end : new Connection(end, key, monotonic(), name.lane, wire))
    }
    secure = engine.begin(socket, name, secured, wire)
  })
  return {
    cancel() {
      if (secure === undefined) socket.removeAllListeners()
      else secure.removeAllListeners().on('error', () => {})
      socket.on('error', () => {})
      socket.destroy()
    },
  }
}
