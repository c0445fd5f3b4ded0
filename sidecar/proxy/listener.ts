import type { IncomingMessage, Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { type ClientCounts, Tally } from '../../feedback/tally.ts'
import { type Bind, bind } from './bind.ts'
import { type ClientConnection, Exchange, type Upgrade } from './exchange.ts'
import { createServer, ServerResponse } from './node-http.ts'
import { inTurn, turnOver } from './pipeline.ts'
import { refuse, unreadable } from './refusal.ts'
import { makeCall } from './request-call.ts'
import type { Settings } from './route.ts'

/** One address to listen on and what its default server says of connections. */
export interface ListenSpec extends Bind {
  /** Milliseconds for a whole request head. */
  readonly headerTimeout: number
  /** Most bytes of request line and headers together. */
  readonly maxHead: number
  /** Milliseconds a connection may be idle between two requests; 0 closes after each. */
  readonly keepaliveTimeout: number
  /** Requests a connection may carry. */
  readonly keepaliveRequests: number
  /** Whether header names with an underscore are dropped, as nginx does unless told otherwise. */
  readonly dropUnderscores: boolean
  /** Whether header names other than letters, digits, hyphens and underscores are dropped. */
  readonly dropInvalid: boolean
  /** Settings of the default server: what holds until a location is known. */
  readonly settings: Settings
}

/** What is done with requests. */
export interface Handler {
  /** Serves a request; calls `exchange.handled()` when its work is over. Never throws. */
  serve(exchange: Exchange, key: string): void
  /** A request has ended: its record is complete. */
  ended(exchange: Exchange): void
  /** What came was no request: `call.status` says what it was answered. */
  malformed(call: Call, settings: Settings): void
  /** An address that is listened on no more has no connection any more. */
  closed(key: string): void
}

interface Open {
  spec: ListenSpec
  readonly server: Server
  /** A reload has taken the address away: its connections end with their next response. */
  removed: boolean
}

/** What several threads that listen on the same addresses have to know of each other. */
export interface Sharing {
  /** How many listen. */
  readonly threads: number
  /** Which of them this is, from 0. */
  readonly thread: number
  readonly tally: Tally
}

/** The client side: listens, reads request heads, and hands each on as an exchange. */
export class Listeners {
  readonly counts: ClientCounts
  #handler: Handler
  #open = new Map<string, Open>()
  #connections = new Map<Socket, ClientConnection>()
  #serial: number
  #draining = false
  #stopped = false

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
    this.#handler = handler
    this.#sharing = sharing
    this.counts = sharing.tally.own
    // Serial numbers of connections are the process's: each thread has every so manieth.
    this.#serial = sharing.thread + 1 - sharing.threads
    this.#limit = limit
    this.#dropped = dropped
  }

  get #full(): boolean {
    const { threads, tally } = this.#sharing
    return (threads > 1 ? tally.all().open : this.counts.open) >= this.#limit
  }

  /** Addresses listened on, with the port that was taken where port 0 was asked for. */
  addresses(): string[] {
    return [...this.#open.values()].map(({ spec, server }) => {
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
      if (!old) continue
      old.spec = spec
      tune(old.server, spec)
    }
    for (const open of opened) this.#open.set(open.spec.key, open)
    const wanted = new Set(specs.map((spec) => spec.key))
    for (const [key, open] of this.#open) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      open.removed = true
      stopAccepting(open)
    }
    // The end may have come while it was opened.
    if (this.#stopped) this.stopListening()
  }

  /** From now on each response is its connection's last. Accepting goes on until `stopListening`. */
  drain(): void {
    this.#draining = true
    for (const { current } of this.#connections.values()) if (current) current.close = true
  }

  /** Accepts no more, for good. Connections stay until their last response, or `closeIdle`. */
  stopListening(): void {
    this.#stopped = true
    for (const open of this.#open.values()) stopAccepting(open)
  }

  /** Closes connections that carry no request. */
  closeIdle(): void {
    for (const [socket, connection] of this.#connections) {
      if (connection.active === 0) socket.end(() => socket.destroy())
    }
  }

  /** Closes everything at once. */
  destroy(): void {
    this.stopListening()
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  async #listen(spec: ListenSpec): Promise<Open> {
    const server = createServer({
      maxHeaderSize: spec.maxHead,
      requestTimeout: 0,
      headersTimeout: spec.headerTimeout,
      connectionsCheckingInterval: 1000,
      // A request without Host is answered (and recorded) like every other bad one.
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      shouldUpgradeCallback: mayUpgrade,
    })
    const open: Open = { spec, server, removed: false }
    tune(server, spec)
    server.on('connection', (socket) => this.#connected(open, socket))
    server.on('request', (request, response) => {
      this.#inTurn(request.socket, () => this.#request(open, request, response, undefined, false))
    })
    server.on('checkContinue', (request, response) => {
      this.#inTurn(request.socket, () => this.#request(open, request, response, undefined, true))
    })
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#inTurn(socket, () => {
        // A timeout between requests may have been set while this one waited for its turn.
        socket.setTimeout(0)
        const response = new ServerResponse(request)
        response.assignSocket(socket)
        response.shouldKeepAlive = false
        response.on('finish', () => socket.destroySoon())
        this.#request(open, request, response, { socket, head }, false)
      })
    })
    server.on('connect', (request: IncomingMessage, socket: Socket) => {
      this.#inTurn(socket, () => this.#refuse(open, socket, 405, request))
    })
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
      this.#clientError(open, error, socket),
    )
    await bind(server, spec, this.#sharing.threads > 1)
    server.once('close', () => {
      if (!this.#open.has(spec.key)) this.#handler.closed(spec.key)
    })
    // A failure to accept one connection; the listener itself goes on.
    server.on('error', () => this.#drop())
    return open
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
    // The socket keeps the address that it is asked for now: a client that resets its connection takes it with it.
    if (socket.remoteAddress === undefined && open.spec.address.kind === 'tcp') {
      // Gone before it was accepted. Nobody waits for answers, and what it sent would look like a Unix socket's.
      this.counts.accepted += 1
      socket.destroy()
      return
    }
    this.#serial += this.#sharing.threads
    const connection: ClientConnection = {
      socket,
      serial: this.#serial,
      requests: 0,
      written: 0,
      active: 0,
      current: undefined,
      waiting: [],
    }
    this.#connections.set(socket, connection)
    this.counts.accepted += 1
    this.counts.open += 1
    // node:http stops listening once a request asks to switch protocols; every error ends in `close` anyway.
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#connections.delete(socket)
      connection.current = undefined
      this.counts.open -= 1
    })
  }

  #inTurn(socket: Socket, serve: () => void): void {
    const connection = this.#connections.get(socket)
    if (connection) inTurn(connection, serve)
    else if (!socket.writableEnded) serve()
  }

  #clientError(open: Open, error: NodeJS.ErrnoException, socket: Socket): void {
    const verdict = unreadable(error, socket, this.#connections.get(socket)?.current)
    if (verdict === 'settled') return
    const answer = () => this.#refuse(open, socket, verdict.status, undefined)
    if (verdict.after) this.#inTurn(socket, answer)
    else answer()
  }

  /** Answers what is no request that could be served, closes, and has it recorded. */
  #refuse({ spec }: Open, socket: Socket, status: number, request: IncomingMessage | undefined): void {
    this.#handler.malformed(refuse(socket, this.#connections.get(socket), status, request), spec.settings)
  }

  #request(
    open: Open,
    request: IncomingMessage,
    response: ServerResponse,
    upgrade: Upgrade | undefined,
    expectsContinue: boolean,
  ): void {
    const socket = upgrade ? upgrade.socket : request.socket
    const connection = this.#connections.get(socket)
    if (!connection) {
      socket.destroy()
      return
    }
    connection.requests += 1
    if (connection.active === 0) this.counts.active += 1
    connection.active += 1
    const { spec } = open
    const call = makeCall(request, connection, spec)
    const exchange = new Exchange(
      { call, request, response, connection, settings: spec.settings, upgrade, expectsContinue },
      (ended) => {
        connection.active -= 1
        if (connection.active === 0) this.counts.active -= 1
        if (connection.current === ended) connection.current = undefined
        this.#handler.ended(ended)
        turnOver(connection)
      },
    )
    // Counted here: node would answer what a client has sent ahead of the last response with a 503 of its own.
    const worn = connection.requests >= spec.keepaliveRequests
    exchange.close = this.#draining || open.removed || spec.keepaliveTimeout === 0 || worn
    connection.current = exchange
    this.#handler.serve(exchange, spec.key)
  }
}

/**
 * Whether a request that asks to switch protocols is taken at its word. Clients offer h2c on ordinary requests, and
 * a request with a body has to be read before anything else could be spoken: those stay requests.
 */
function mayUpgrade({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0) return false
  return !/\bh2c\b/i.test(headers.upgrade ?? '')
}

function tune(server: Server, spec: ListenSpec): void {
  server.keepAliveTimeout = spec.keepaliveTimeout
  server.headersTimeout = spec.headerTimeout
  server.timeout = 0
}

/** Closes the listening socket only: the connections it has accepted go on, idle ones too. */
function stopAccepting({ server }: Open): void {
  if (server.listening) NetServer.prototype.close.call(server)
}
