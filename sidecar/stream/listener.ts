import { createServer, type Server, type Socket } from 'node:net'
import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Peer } from '../../feedback/peer.ts'
import { type Bind, bind } from '../net/bind.ts'
import { readAddress } from '../net/client-address.ts'
import { type Sharing, serialOf } from '../net/sharing.ts'
import type { SessionHost } from './host.ts'
import { Session } from './session.ts'
import type { StreamServer } from './settings.ts'
import { Watch } from './watch.ts'

/** What is told to the rest of the program. */
export interface StreamNews extends Pick<SessionHost, 'complain' | 'note'> {
  /** A connection was closed as it came. */
  dropped(): void
}

interface Open {
  readonly bind: Bind
  readonly server: Server
  /** Connections that came before their server was in force. */
  early: Socket[]
}

/** The TCP side of `stream`: listens, and has a session of each connection. */
export class StreamListeners implements SessionHost {
  readonly counts
  /** How long sessions have with peers that have left, milliseconds. */
  graceMs = 0
  readonly #sharing: Sharing
  readonly #limit: number
  readonly #news: StreamNews
  readonly #open = new Map<string, Open>()
  readonly #sessions = new Set<Session>()
  readonly #watch = new Watch(this.#sessions)
  /** By address: what is done with new connections. */
  #servers: ReadonlyMap<string, StreamServer> = new Map()
  #stopped = false

  /** @param limit most connections of clients at once, those of all threads and of `http` together */
  constructor(sharing: Sharing, limit: number, news: StreamNews) {
    this.counts = sharing.tally.own
    this.#sharing = sharing
    this.#limit = limit
    this.#news = news
  }

  /** Addresses listened on, with the port that was taken where port 0 was asked for. */
  addresses(): string[] {
    return [...this.#open.values()].map(({ bind, server }) => {
      const address = server.address()
      if (address === null || typeof address === 'string') return bind.key
      return bind.key.replace(/:\d+$/, `:${address.port}`)
    })
  }

  /**
   * Listens on what is wanted: new addresses are opened first, those that stay are left alone, and those that are gone
   * are closed last; their sessions go on. When one cannot be opened, everything stays as it was. Connections on new
   * addresses wait until `use`.
   * @throws ListenError
   */
  async apply(binds: readonly Bind[]): Promise<void> {
    const opened: Open[] = []
    try {
      for (const bind of binds) {
        // A Unix socket has no way to spread its connections: one thread has them all.
        if (bind.address.kind === 'unix' && this.#sharing.thread > 0) continue
        if (!this.#open.has(bind.key)) opened.push(await this.#listen(bind))
      }
    } catch (error) {
      for (const open of opened) close(open)
      throw error
    }
    for (const open of opened) this.#open.set(open.bind.key, open)
    const wanted = new Set(binds.map(({ key }) => key))
    for (const [key, open] of this.#open) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      close(open)
    }
    // The end may have come while it was opened.
    if (this.#stopped) this.stopListening()
  }

  /**
   * Gives a listening socket away. Sessions go on.
   * @returns undefined: there is none
   */
  release(key: string): Server | undefined {
    const open = this.#open.get(key)
    if (open === undefined) return undefined
    this.#open.delete(key)
    for (const socket of open.early) socket.destroy()
    return open.server.removeAllListeners()
  }

  /** Takes the connections that come to a socket which listens already. They wait until `use`. */
  adopt(bind: Bind, server: Server): void {
    const open = this.#accepting(bind, server)
    server.on('error', () => this.#drop())
    this.#open.set(bind.key, open)
  }

  /** Has new sessions served so from now on. @param servers by address */
  use(servers: ReadonlyMap<string, StreamServer>): void {
    this.#servers = servers
    for (const open of this.#open.values()) {
      const { early } = open
      open.early = []
      for (const socket of early) {
        socket.off('error', ignored)
        // Gone already: nobody would be told of it again.
        if (!socket.destroyed) this.#serve(open, socket)
      }
    }
  }

  /** Accepts no more, for good. Sessions go on. */
  stopListening(): void {
    this.#stopped = true
    for (const open of this.#open.values()) close(open)
  }

  /** Ends every session in order: what is held goes out, then a FIN to both sides. */
  end(): void {
    for (const session of [...this.#sessions]) session.end()
  }

  /**
   * The same with those to peers that a reload takes away.
   * @param graceMs how long they have until then
   */
  endOf(gone: readonly Peer[], graceMs: number): void {
    this.graceMs = graceMs
    if (gone.length === 0) return
    for (const session of this.#sessions) session.leave(gone, graceMs)
  }

  /** Cuts everything. */
  destroy(): void {
    this.stopListening()
    for (const session of [...this.#sessions]) session.destroy()
  }

  // What sessions need.

  complain(call: Call, text: string): void {
    this.#news.complain(call, text)
  }

  note(call: Call, text: string): void {
    this.#news.note(call, text)
  }

  expect(at: number): void {
    this.#watch.expect(at)
  }

  gone(session: Session): void {
    if (this.#sessions.delete(session)) this.counts.open -= 1
  }

  async #listen(where: Bind): Promise<Open> {
    const open = this.#accepting(where, createServer({ allowHalfOpen: true, noDelay: true }))
    await bind(open.server, where, this.#sharing.threads > 1)
    // A failure to accept one connection; the listener itself goes on.
    open.server.on('error', () => this.#drop())
    return open
  }

  #accepting(bind: Bind, server: Server): Open {
    const open: Open = { bind, server, early: [] }
    server.on('connection', (socket) => this.#connected(open, socket))
    return open
  }

  #drop(): void {
    this.counts.dropped += 1
    this.#news.dropped()
  }

  get #full(): boolean {
    const { threads, tally } = this.#sharing
    return (threads > 1 ? tally.all().open : this.counts.open) >= this.#limit
  }

  #connected(open: Open, socket: Socket): void {
    if (this.#full) {
      this.#drop()
      socket.destroy()
      return
    }
    this.counts.accepted += 1
    if (socket.remoteAddress === undefined && open.bind.address.kind === 'tcp') {
      // Gone before it was accepted; what it sent would look like a Unix socket's.
      socket.destroy()
      return
    }
    this.#serve(open, socket)
  }

  #serve(open: Open, socket: Socket): void {
    const server = this.#servers.get(open.bind.key)
    if (server === undefined) {
      // Nobody reads it yet, so nothing of it can be lost.
      socket.once('error', ignored)
      open.early.push(socket)
      return
    }
    const session = new Session(socket, this.#call(open, socket, server), server, this)
    this.#sessions.add(session)
    this.counts.open += 1
    session.begin()
  }

  #call({ bind }: Open, socket: Socket, server: StreamServer): Call {
    const call = new Call()
    const address = readAddress(socket, bind.address)
    call.protocol = 'TCP'
    call.method = 'TCP'
    call.target = ''
    call.startedAt = monotonic()
    call.connectedAt = call.startedAt
    call.remoteAddr = call.realipRemoteAddr = address.remoteAddr
    call.remotePort = call.realipRemotePort = address.remotePort
    call.serverAddr = address.serverAddr
    call.serverPort = address.serverPort
    call.serverName = server.address
    call.connection = serialOf(this.#sharing)
    return call
  }
}

/** A client that left before anybody could serve it. */
function ignored(): void {}

/** Closes the listening socket only: the sessions of connections it has accepted go on. */
function close({ server, early }: Open): void {
  if (server.listening) server.close()
  for (const socket of early) socket.destroy()
}
