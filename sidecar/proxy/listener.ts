import { createServer, type Server, type Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { type ClientCounts, Tally } from '../../feedback/tally.ts'
import { type Bind, bind } from '../net/bind.ts'
import { readAddress } from '../net/client-address.ts'
import { afterReading } from '../net/late.ts'
import { type Sharing, serialOf } from '../net/sharing.ts'
import { type Door, Handshake } from '../tls/handshake.ts'
import { Client, type ClientGreeting, type Host, type Place, type Served } from './client.ts'
import type { Exchange } from './exchange.ts'
import { Greeting } from './greeting.ts'
import type { ConnectionLimits } from './http1/client-connection.ts'
import { Http2Client } from './http2/client.ts'
import { Preface } from './http2/preface.ts'
import { ungreeted } from './refusal.ts'
import type { Settings } from './route.ts'

/** One address to listen on and what its default server says of connections. */
export interface ListenSpec extends Bind, ConnectionLimits {
  /** Requests a connection may carry. */
  readonly keepaliveRequests: number
  /** Whether header names with an underscore are dropped, as nginx does unless told otherwise. */
  readonly dropUnderscores: boolean
  /** Whether header names other than letters, digits, hyphens and underscores are dropped. */
  readonly dropInvalid: boolean
  /** Whether each connection begins with a PROXY header. */
  readonly proxyProtocol: boolean
  /** What clients are shown that speak TLS, as all are to; undefined where they are not to. */
  readonly door: Door | undefined
  /** Whether HTTP/2 is spoken without TLS where a client begins with it. With TLS it is the handshake that tells. */
  readonly http2: boolean
  /** Most requests of an HTTP/2 connection at once. */
  readonly maxStreams: number
  /** Settings of the default server: what holds until a location is known. */
  readonly settings: Settings
}

/** What is done with requests. */
export interface Handler {
  /** Serves a request; calls `exchange.handled()` when its work is over. Never throws. */
  serve(exchange: Exchange, key: string): void
  /** A request has ended: its record is complete. */
  ended(exchange: Exchange): void
  /**
   * What came was no request: `call.status` says what it was answered.
   * @param why for the error log
   */
  malformed(call: Call, settings: Settings, why: string): void
  /** A connection has come to no request. @param why for the error log */
  unsecured(call: Call, why: string): void
  /** A connection breaks the rules of its protocol, and is closed. @param why for the error log */
  unruly(call: Call, why: string): void
  /** The body of a request is none. @param why for the error log */
  unreadable(exchange: Exchange, why: string): void
  /** An address that is listened on no more has no connection any more. */
  closed(key: string): void
}

interface Open extends Place {
  spec: ListenSpec
  readonly server: Server
  removed: boolean
}

/** How often it is looked whether clients take too long, milliseconds. */
const lookEveryMs = 500
/** Looks that are further apart show that the process could not run meanwhile: nobody is judged by that time. */
const heldUpMs = 1000

/** The client side: listens, and hands each request on as an exchange. */
export class Listeners implements Host {
  readonly counts: ClientCounts
  readonly handler: Handler
  draining = false
  #open = new Map<string, Open>()
  /** Those whose listening socket somebody else has now. */
  readonly #released = new Set<Open>()
  #clients = new Set<Served>()
  /** Connections whose PROXY header, handshake of TLS, or preface of HTTP/2 is waited for. */
  readonly #greetings = new Map<Greeting | Handshake | Preface, Open>()
  #stopped = false
  #looking: NodeJS.Timeout | undefined = undefined
  #lookedAt = 0
  readonly #sharing: Sharing
  readonly #limit: number
  readonly #dropped: () => void

  /**
   * @param limit most connections at once, those of all threads together; one more is closed as it comes, before the
   *   system runs out of descriptors
   * @param dropped told of each connection that was
   */
  constructor(
    handler: Handler,
    sharing: Sharing = { threads: 1, thread: 0, tally: new Tally() },
    limit = Number.POSITIVE_INFINITY,
    dropped: () => void = () => {},
  ) {
    this.handler = handler
    this.#sharing = sharing
    this.counts = sharing.tally.own
    this.#limit = limit
    this.#dropped = dropped
  }

  get #full(): boolean {
    const { threads, tally } = this.#sharing
    return (threads > 1 ? tally.all().open : this.counts.open) >= this.#limit
  }

  /** Addresses listened on, with the port that was taken where port 0 was asked for. */
  addresses(): string[] {
    return Array.from(this.#open.values(), ({ spec, server }) => {
      const address = server.address()
      if (address === null || typeof address === 'string') return spec.key
      return spec.key.replace(/:\d+$/, `:${address.port}`)
    })
  }

  /**
   * Listens on what is wanted: new addresses are opened first, those that stay are left alone, and those that are
   * gone are closed last. When one cannot be opened, everything stays as it was.
   * @throws ListenError
   */
  async apply(specs: readonly ListenSpec[]): Promise<void> {
    const opened: Open[] = []
    try {
      for (const spec of specs) {
        // A Unix socket has no way to spread its connections: one thread has them all.
        if (spec.address.kind === 'unix' && this.#sharing.thread > 0) continue
        if (!this.#open.has(spec.key)) opened.push(await this.#listen(spec))
      }
    } catch (error) {
      for (const { server } of opened) server.close()
      throw error
    }
    for (const spec of specs) {
      const old = this.#open.get(spec.key)
      if (old) old.spec = spec
    }
    for (const open of opened) this.#open.set(open.spec.key, open)
    for (const [key, open] of this.#open) {
      if (specs.some((spec) => spec.key === key)) continue
      this.#open.delete(key)
      open.removed = true
      stopAccepting(open)
    }
    // The end may have come while it was opened.
    if (this.#stopped) this.stopListening()
  }

  /**
   * Gives a listening socket away. Connections that have come go on, as when their address is listened on no more.
   * @returns undefined: there is none
   */
  release(key: string): Server | undefined {
    const open = this.#open.get(key)
    if (open === undefined) return undefined
    this.#open.delete(key)
    open.removed = true
    open.server.removeAllListeners()
    this.#released.add(open)
    this.#forget()
    return open.server
  }

  /** Takes the connections that come to a socket which listens already. */
  adopt(spec: ListenSpec, server: Server): void {
    this.#open.set(spec.key, this.#taken(this.#accepting(spec, server)))
  }

  /** From now on each response is its connection's last. Accepting goes on until `stopListening`. */
  drain(): void {
    this.draining = true
    for (const client of this.#clients) client.drain()
  }

  /** Accepts no more, for good. Connections stay until their last response, or `closeIdle`. */
  stopListening(): void {
    this.#stopped = true
    for (const open of this.#open.values()) stopAccepting(open)
  }

  /** Closes connections that carry no request. */
  closeIdle(): void {
    for (const client of this.#clients) client.closeIdle()
    for (const { socket } of this.#greetings.keys()) socket.destroy()
  }

  /** Closes everything at once. */
  destroy(): void {
    this.stopListening()
    for (const { socket } of this.#greetings.keys()) socket.destroy()
    for (const client of this.#clients) client.shutDown()
  }

  async #listen(spec: ListenSpec): Promise<Open> {
    const open = this.#accepting(spec, createServer({ allowHalfOpen: true, noDelay: true }))
    await bind(open.server, spec, this.#sharing.threads > 1)
    return this.#taken(open)
  }

  #accepting(spec: ListenSpec, server: Server): Open {
    const open: Open = { spec, server, removed: false }
    server.on('connection', (socket) => this.#connected(open, socket))
    return open
  }

  /** @param open it listens */
  #taken(open: Open): Open {
    open.server.once('close', () => this.#left(open))
    // A failure to accept one connection; the listener itself goes on.
    open.server.on('error', () => this.#drop())
    return open
  }

  /** An address that is listened on no more has no connection any more. */
  #left({ spec }: Open): void {
    if (!this.#open.has(spec.key)) this.handler.closed(spec.key)
  }

  /** The close of a socket that somebody else has does not tell when the last connection is gone that came before. */
  #forget(): void {
    if (this.#released.size === 0) return
    const used = new Set([...this.#clients, ...this.#greetings.values()].map(({ spec }) => spec))
    for (const open of this.#released) {
      if (used.has(open.spec) || !this.#released.delete(open)) continue
      this.#left(open)
    }
  }

  #drop(): void {
    this.counts.dropped += 1
    this.#dropped()
  }

  #connected(open: Open, socket: Socket): void {
    if (this.#full) {
      this.#drop()
      socket.destroy()
      return
    }
    this.counts.accepted += 1
    if (socket.remoteAddress === undefined && open.spec.address.kind === 'tcp') {
      // Gone before it was accepted. Nobody waits for answers, and what it sent would look like a Unix socket's.
      socket.destroy()
      return
    }
    const serial = serialOf(this.#sharing)
    this.counts.open += 1
    const { proxyProtocol, door, address, http2 } = open.spec
    if (proxyProtocol) this.#greet(open, socket, serial)
    else if (door) this.#secure(open, socket, serial, { address: readAddress(socket, address) }, door)
    else if (http2) this.#meet(open, socket, serial, { address: readAddress(socket, address) })
    else this.#clients.add(new Client(socket, serial, open, this))
    if (this.#looking) return
    this.#lookedAt = monotonic()
    this.#looking = setInterval(() => afterReading(() => this.#look()), lookEveryMs).unref()
  }

  /** Has the connection served once its PROXY header has been read. */
  #greet(open: Open, socket: Socket, serial: number): void {
    const address = readAddress(socket, open.spec.address)
    const greeting: Greeting = new Greeting(socket, {
      greeted: (addresses, rest) => {
        this.#greetings.delete(greeting)
        const start = { address, proxied: addresses }
        const { door, http2 } = open.spec
        if (door) this.#secure(open, socket, serial, start, door)
        else if (http2) this.#meet(open, socket, serial, start)
        else this.#clients.add(new Client(socket, serial, open, this, start))
        if (rest) socket.unshift(rest)
      },
      ungreeted: (why) => this.handler.malformed(ungreeted(address, serial), open.spec.settings, why),
      closed: () => {
        this.#greetings.delete(greeting)
        this.#closed()
      },
    })
    this.#greetings.set(greeting, open)
  }

  /** Has the connection served once its handshake is over. Who speaks without TLS is told so by the routes. */
  #secure(open: Open, socket: Socket, serial: number, start: ClientGreeting, door: Door): void {
    const handshake: Handshake = new Handshake(socket, () => open.spec.door ?? door, {
      secured: (secure, tls) => {
        this.#greetings.delete(handshake)
        const begun = { ...start, tls }
        if (tls.alpn === 'h2') this.#clients.add(new Http2Client(secure, serial, open, this, begun))
        else this.#clients.add(new Client(secure, serial, open, this, begun))
      },
      plain: (first) => {
        this.#greetings.delete(handshake)
        this.#clients.add(new Client(socket, serial, open, this, start))
        socket.unshift(first)
      },
      failed: (why) => this.handler.unsecured(ungreeted(start.address, serial), why),
      closed: () => {
        this.#greetings.delete(handshake)
        this.#closed()
      },
    })
    this.#greetings.set(handshake, open)
  }

  /** Has the connection served once its first bytes tell which HTTP it speaks. */
  #meet(open: Open, socket: Socket, serial: number, start: ClientGreeting): void {
    const preface: Preface = new Preface(socket, {
      http2: (first) => {
        this.#greetings.delete(preface)
        // What has come is put back for the session to read: it must not flow away to nobody.
        socket.pause()
        socket.unshift(first)
        this.#clients.add(new Http2Client(socket, serial, open, this, start))
      },
      http1: (first) => {
        this.#greetings.delete(preface)
        this.#clients.add(new Client(socket, serial, open, this, start))
        socket.unshift(first)
      },
      closed: () => {
        this.#greetings.delete(preface)
        this.#closed()
      },
    })
    this.#greetings.set(preface, open)
  }

  gone(client: Served): void {
    this.#clients.delete(client)
    this.#closed()
  }

  #closed(): void {
    this.counts.open -= 1
    if (this.#clients.size + this.#greetings.size > 0) return
    this.#forget()
    clearInterval(this.#looking)
    this.#looking = undefined
  }

  #look(): void {
    const now = monotonic()
    const heldUp = now - this.#lookedAt > heldUpMs
    this.#lookedAt = now
    this.#forget()
    if (heldUp) return
    for (const client of this.#clients) client.check(now)
    for (const [greeting, { spec }] of this.#greetings) greeting.check(now, spec.headerTimeout)
  }
}

/** Closes the listening socket only: the connections it has accepted go on, idle ones too. */
function stopAccepting({ server }: Open): void {
  if (server.listening) server.close()
}
