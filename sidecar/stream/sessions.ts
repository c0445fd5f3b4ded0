import type { Socket } from 'node:net'
import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Peer } from '../../feedback/peer.ts'
import { Drops } from '../balance/drops.ts'
import { Addresses, type Place, type Reception } from '../net/addresses.ts'
import type { Bind } from '../net/bind.ts'
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

/** The TCP side of `stream` in this thread: has a session of each connection. */
export class Sessions implements SessionHost, Reception<Bind> {
  /** Where connections come. Those on new ones wait until `use`. */
  readonly addresses: Addresses<Bind>
  readonly counts
  /** How long sessions have with peers that have left, milliseconds. */
  graceMs = 0
  readonly #sharing: Sharing
  readonly #news: StreamNews
  readonly #sessions = new Set<Session>()
  readonly #watch = new Watch(this.#sessions)
  /** Connections that came before their server was in force. */
  #early = new Map<Place, Socket[]>()
  /** By address: what is done with new connections. */
  #servers: ReadonlyMap<string, StreamServer> = new Map()
  readonly #drops: Drops

  /**
   * @param limit most connections of clients at once, see `Addresses`
   * @param drops ends sessions whose peers leave
   */
  constructor(sharing: Sharing, limit: number, news: StreamNews, drops = new Drops()) {
    this.#drops = drops
    this.counts = sharing.tally.own
    this.#sharing = sharing
    this.#news = news
    this.addresses = new Addresses(sharing, limit, this)
  }

  /** Has new sessions served so from now on. @param servers by address */
  use(servers: ReadonlyMap<string, StreamServer>): void {
    this.#servers = servers
    const early = this.#early
    this.#early = new Map()
    for (const [place, sockets] of early) {
      for (const socket of sockets) {
        socket.off('error', ignored)
        // Gone already: nobody would be told of it again.
        if (!socket.destroyed) this.came(socket, place)
      }
    }
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
    this.addresses.stop()
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
    this.#drops.delete(session)
    if (this.#sessions.delete(session)) this.counts.open -= 1
  }

  // What the addresses tell.

  dropped(): void {
    this.#news.dropped()
  }

  /** Whoever has come too early waits no longer. */
  left(place: Place): void {
    for (const socket of this.#early.get(place) ?? []) socket.destroy()
    this.#early.delete(place)
  }

  came(socket: Socket, place: Place): void {
    const server = this.#servers.get(place.spec.key)
    if (server === undefined) {
      this.#wait(socket, place)
      return
    }
    const session = new Session(socket, this.#call(socket, place, server), server, this)
    this.#sessions.add(session)
    this.counts.open += 1
    const { dropAfter } = server.settings
    if (dropAfter !== undefined) this.#drops.add(session, dropAfter)
    session.begin()
  }

  #wait(socket: Socket, place: Place): void {
    // Nobody reads it yet, so nothing of it can be lost.
    socket.once('error', ignored)
    const waiting = this.#early.get(place)
    if (waiting) waiting.push(socket)
    else this.#early.set(place, [socket])
  }

  #call(socket: Socket, { spec }: Place, server: StreamServer): Call {
    const call = new Call()
    const address = readAddress(socket, spec.address)
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
