import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { acceptKey } from './client.ts'
import { type End, Inbox } from './inbox.ts'
import { type Body, type Fields, type Framing, type Head, headText, readBody, readHead } from './message.ts'

/** A request as its bytes came, and the connection to write the answer to. */
export class Exchange {
  readonly head: Head
  readonly method: string
  readonly target: string
  readonly version: string
  /** Serial number of the connection on this backend, from 1. */
  readonly connection: number
  /** When its head had come, monotonic milliseconds. */
  readonly at = performance.now()
  readonly socket: Socket
  readonly inbox: Inbox
  /** Status of the final answer that has been sent; undefined as long as there is none. */
  status: number | undefined
  #body: Promise<Body> | undefined
  #finish: () => void

  constructor(head: Head, connection: number, socket: Socket, inbox: Inbox, finish: () => void) {
    this.head = head
    const [method = '', target = '', version = ''] = head.start.split(' ')
    this.method = method
    this.target = target
    this.version = version
    this.connection = connection
    this.socket = socket
    this.inbox = inbox
    this.#finish = finish
  }

  /** Settles when the other side has ended the connection. */
  get gone(): Promise<End> {
    return this.inbox.closed
  }

  /** How the head says that the body ends. */
  get framing(): Framing {
    if (this.head.header('transfer-encoding') !== undefined) return 'chunked'
    return Number(this.head.header('content-length') ?? 0)
  }

  /** Reads the body to its end; a second call gives the same one. */
  body(each?: (piece: Buffer) => void): Promise<Body> {
    this.#body ??= readBody(this.inbox, this.framing, each)
    return this.#body
  }

  /** Writes bytes as they are; settles when the socket took them (or is gone). */
  async send(bytes: string | Buffer): Promise<void> {
    if (this.socket.destroyed) return
    if (this.status === undefined) {
      // Interim ones may come first.
      const head = typeof bytes === 'string' ? bytes : bytes.toString('latin1', 0, 4096)
      const status = /(?:^|\r\n\r\n)HTTP\/1\.[01] (101|[2-5]\d\d)/.exec(head)?.[1]
      if (status !== undefined) this.status = Number(status)
    }
    await new Promise<void>((resolve) => {
      this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, () => resolve())
    })
  }

  /** Answers with a length, after the request's body has come. */
  async reply(answer: Answer = {}): Promise<void> {
    await this.body()
    if (answer.after) await Promise.race([sleep(answer.after), this.gone])
    const { status = 200, headers = {}, body = '' } = answer
    const bytes = Buffer.from(body as string)
    const bare = status === 204 || status === 304
    const fields = bare ? headers : { 'Content-Length': bytes.length, ...headers }
    const head = Buffer.from(headText(`HTTP/1.1 ${status} Scripted`, fields), 'latin1')
    this.done()
    await this.send(bare || this.method === 'HEAD' ? head : Buffer.concat([head, bytes]))
  }

  /** Accepts the handshake of a WebSocket: the connection is a tunnel then. */
  upgrade(): Promise<void> {
    const accept = acceptKey(this.head.header('sec-websocket-key') ?? '')
    const fields = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Accept': accept }
    return this.send(headText('HTTP/1.1 101 Switching Protocols', fields))
  }

  /** Says that the request is no longer in progress here: before its last byte goes out. */
  done(): void {
    this.#finish()
  }

  /** Ends the connection with FIN, after what was written. */
  end(): void {
    this.socket.end()
  }

  /** Ends the connection with RST. */
  reset(): void {
    this.socket.resetAndDestroy()
  }
}

/** A plain answer. */
export interface Answer {
  readonly status?: number
  readonly headers?: Fields
  readonly body?: string | Buffer
  /** Milliseconds to wait before it. */
  readonly after?: number
}

export type Script = Answer | ((exchange: Exchange) => void | Promise<void>)

/** A tunnel that gives back all that comes, then ends. */
export async function echo(x: Exchange): Promise<void> {
  await x.upgrade()
  for (let piece = await x.inbox.some(); piece; piece = await x.inbox.some()) await x.send(piece)
  x.end()
}

/** How long to wait for a port that is taken, milliseconds. */
const patience = 30_000

/** A peer that does to the letter what its script says, and remembers all that came. */
export class Backend {
  script: Script
  /** Every request whose head came, in order. */
  readonly requests: Exchange[] = []
  /** Connections accepted, ever. */
  connections = 0
  /** Connections open now. */
  open = 0
  /** Requests in progress now, and the most there ever were at once. */
  busy = 0
  peak = 0
  /** Errors that scripts ended with. */
  readonly errors: unknown[] = []
  /** What a `server` line says: `127.0.0.1:PORT`, `[::1]:PORT` or `unix:PATH`. */
  address = ''
  port = 0
  #server: Server
  #sockets = new Set<Socket>()
  /** The same, or what TLS is spoken on: also where that is not spoken yet. */
  #below = new Set<Socket>()

  /** @param tls what it shows to its clients; undefined: it does not speak TLS */
  constructor(script: Script, tls?: TlsOptions) {
    this.script = script
    const serve = (socket: Socket) => this.#serve(socket)
    // The type of the one that speaks TLS does not have what every server has.
    const options = { noDelay: true, allowHalfOpen: true }
    this.#server = tls ? createTlsServer({ ...options, ...tls }, serve) : createServer(options, serve)
    this.#server.on('connection', (socket: Socket) => {
      this.#below.add(socket)
      socket.once('close', () => this.#below.delete(socket))
    })
  }

  async listen({ host = '127.0.0.1', port = 0, path }: Listen = {}): Promise<this> {
    // A port that a configuration prescribes may be another run's for a while.
    for (const end = performance.now() + patience; ; await sleep(100)) {
      this.#server.listen(path === undefined ? { host, port, exclusive: true } : { path })
      const failed = await once(this.#server, 'listening').then(() => undefined, String)
      if (failed === undefined) break
      if (!failed.includes('EADDRINUSE') || performance.now() > end) throw new Error(failed)
    }
    // A test that fails before it stops this one must not keep its process alive.
    this.#server.unref()
    const at = this.#server.address()
    if (typeof at === 'string') this.address = `unix:${at}`
    else if (at) {
      this.port = at.port
      this.address = `${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
    }
    return this
  }

  /** Targets of the requests so far, in order. */
  get targets(): string[] {
    return this.requests.map((request) => request.target)
  }

  /** Cuts all connections and stops listening, so that the next one is refused. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.cut()
    await closed
  }

  /** Cuts all connections with RST; new ones are accepted as before. */
  cut(): void {
    for (const socket of this.#below) socket.resetAndDestroy()
  }

  /** Closes connections with FIN, also those that are idle. */
  endAll(): void {
    for (const socket of this.#sockets) socket.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #serve(socket: Socket): Promise<void> {
    const number = ++this.connections
    this.open += 1
    this.#sockets.add(socket)
    const inbox = new Inbox(socket)
    socket.on('close', () => {
      this.open -= 1
      this.#sockets.delete(socket)
    })
    for (;;) {
      const head = await readHead(inbox)
      // Whoever has closed its side answers nothing any more.
      if (!head || socket.writableEnded) break
      this.busy += 1
      this.peak = Math.max(this.peak, this.busy)
      let running = true
      const finish = () => {
        if (running) this.busy -= 1
        running = false
      }
      const exchange = new Exchange(head, number, socket, inbox, finish)
      inbox.closed.then(finish)
      this.requests.push(exchange)
      try {
        if (typeof this.script === 'function') await this.script(exchange)
        else await exchange.reply(this.script)
        await exchange.body()
      } catch (error) {
        this.errors.push(error)
        socket.destroy()
      }
      finish()
      if (socket.destroyed || socket.writableEnded) break
      if (head.header('connection')?.toLowerCase() === 'close') break
    }
    socket.end()
  }
}

export interface Listen {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly tls?: TlsOptions
}

/** Several backends, stopped together at the end of the scope, also when the test has failed. */
export class Backends implements AsyncDisposable {
  readonly list: Backend[] = []

  async add(script: Script, listen: Listen = {}): Promise<Backend> {
    const one = await backend(script, listen)
    this.list.push(one)
    return one
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.list) await one.stop()
  }
}

/** Starts a backend for each script. */
export async function backends(scripts: readonly Script[]): Promise<Backends> {
  const all = new Backends()
  for (const script of scripts) await all.add(script)
  return all
}

/** Starts a backend on a free port of 127.0.0.1, unless told otherwise. */
export function backend(script: Script = {}, listen: Listen = {}): Promise<Backend> {
  return new Backend(script, listen.tls).listen(listen)
}
