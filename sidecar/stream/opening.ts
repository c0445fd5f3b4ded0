import type { Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { connectVerdict } from '../../feedback/socket-error.ts'
import { proxyHeader } from '../net/proxy-protocol.ts'
import { type ConnectFailure, Search } from './search.ts'
import type { GroupTarget, NoTarget, PeerTls, SoughtTarget, StreamServer } from './settings.ts'
import { dial, disown, own, type SocketOwner } from './sockets.ts'
import { Welcome, type Welcomed } from './welcome.ts'

/** Whose beginning it is. */
export interface Opened {
  /**
   * There is a connection to a peer.
   * @param early what the client has sent so far; undefined: nothing
   * @param ended whether it has ended its side since
   */
  opened(attempt: Attempt, peer: Socket, early: Buffer | undefined, ended: boolean): void
  /** The client gets a text of the server's own. */
  answer(text: string): void
  /** There is nobody to pass it to. @param why for the error log, where that is not said elsewhere */
  refused(status: number, why?: string): void
  /** The client speaks TLS: this is its connection from now on. */
  secured(client: Socket): void
  /** The client has not begun as it must. @param why for the error log */
  unfit(status: number, why: string): void
  /** The client has gone. @param attempt undefined: there is none yet */
  left(attempt: Attempt | undefined): void
  /** The client's connection has closed. */
  closed(client: Socket): void
  /** There is another deadline. @param at monotonic milliseconds */
  expect(at: number): void
}

/** The beginning of a session: the client's own, and the search for a peer that can be connected to. */
export class Opening implements SocketOwner, Welcomed {
  /** The attempt that is under way; undefined as long as there is none. */
  attempt: Attempt | undefined = undefined
  /** Its connection. */
  peer: Socket | undefined = undefined
  #client: Socket
  readonly #call: Call
  readonly #server: StreamServer
  readonly #whose: Opened
  /** As long as the client is not ready. */
  #welcome: Welcome | undefined = undefined
  /** Whether a name is looked up. */
  #seeking = false
  #search: Search | undefined = undefined
  /** What the client sent before there was somebody to send it to; undefined: nothing. */
  #early: Buffer | undefined = undefined
  #ended = false
  #over = false
  /** Since when the peer is waited for; monotonic milliseconds. */
  #since: number

  constructor(client: Socket, call: Call, server: StreamServer, whose: Opened) {
    this.#client = client
    this.#call = call
    this.#server = server
    this.#whose = whose
    this.#since = call.startedAt
  }

  begin(): void {
    const { proxied, door, settings } = this.#server
    if (!proxied && !door && !settings.preread) {
      this.welcomed(this.#client, undefined)
      return
    }
    this.#welcome = new Welcome(this.#client, this.#call, this.#server, this)
    this.#welcome.begin()
  }

  get due(): number {
    // Looking up has a time-out of its own.
    if (this.#seeking) return Number.POSITIVE_INFINITY
    return this.#welcome?.due ?? this.#since + this.#server.settings.connectTimeout
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#since += ms
    this.#welcome?.forgive(ms)
  }

  /** The moment has come. */
  late(): void {
    if (this.#welcome) {
      this.#welcome.late()
      return
    }
    this.peer?.destroy()
    this.#unreachable({
      ending: 'timeout',
      reason: 'timeout_connect',
      detail: 'connect timed out',
      local: false,
    })
  }

  /** The session is over, or goes on without it. */
  abandon(): void {
    this.#over = true
    this.#welcome?.abandon()
    this.#welcome = undefined
  }

  // What the client's beginning tells.

  secured(client: Socket): void {
    this.#whose.secured(client)
  }

  closed(socket: Socket): void {
    if (socket === this.#client) this.#whose.closed(socket)
  }

  welcomed(client: Socket, early: Buffer | undefined): void {
    this.#welcome = undefined
    this.#client = client
    this.#since = monotonic()
    own(client, this)
    if (early !== undefined) this.#take(early)
    this.#start()
  }

  unfit(status: number, why: string): void {
    this.#whose.unfit(status, why)
  }

  refused(status: number, why: string): void {
    this.#whose.refused(status, why)
  }

  expect(at: number): void {
    this.#whose.expect(at)
  }

  // What the sockets tell.

  connected(socket: Socket): void {
    if (this.attempt === undefined || socket !== this.peer) return
    const { proxyProtocol, peerTls } = this.#server.settings
    if (proxyProtocol !== undefined) socket.write(proxyHeader(proxyProtocol, this.#call))
    if (peerTls === undefined) this.#opened(this.attempt, socket)
    else this.#secure(this.attempt, socket, peerTls)
  }

  #opened(attempt: Attempt, peer: Socket): void {
    this.#whose.opened(attempt, peer, this.#early, this.#ended)
  }

  /** Speaks TLS with the peer, for which there is no more time than for connecting. */
  #secure(attempt: Attempt, socket: Socket, { engine, name }: PeerTls): void {
    disown(socket)
    // The layer above hears of it.
    socket.on('error', () => {})
    const called = name?.(this.#call) ?? this.#search?.host ?? ''
    engine.begin(socket, engine.lane(attempt.address, called), (end) => {
      const stale = this.#over || socket !== this.peer
      if (end instanceof Error) {
        if (!stale) this.#unreachable({ ...connectVerdict(end), detail: end.message })
      } else if (stale) end.destroy()
      else {
        this.peer = end
        own(end, this)
        this.#opened(attempt, end)
      }
    })
  }

  data(_client: Socket, chunk: Buffer): void {
    this.#take(chunk)
  }

  #take(chunk: Buffer): void {
    this.#call.requestLength += chunk.length
    this.#early = this.#early === undefined ? chunk : Buffer.concat([this.#early, chunk])
    if (this.#early.length >= this.#server.settings.bufferSize) this.#client.pause()
  }

  drained(): void {}

  ended(): void {
    this.#ended = true
    if (this.#early === undefined && !this.#server.settings.halfClose) {
      // Nobody would be told anything by a connection that is closed as it is made.
      this.#left()
    }
  }

  finished(): void {}

  failed(socket: Socket, error: NodeJS.ErrnoException): void {
    if (socket === this.peer) this.#unreachable({ ...connectVerdict(error), detail: error.message })
    else if (socket !== this.#client) return
    else this.#left()
  }

  #left(): void {
    this.peer?.destroy()
    if (this.attempt || this.#seeking) this.#whose.left(this.attempt)
  }

  #start(): void {
    const { content } = this.#server
    if (content.kind === 'return') {
      this.#whose.answer(content.text(this.#call))
      return
    }
    const target = content.target(this.#call)
    if ('pending' in target) void this.#seek(target)
    else this.#go(target)
  }

  async #seek({ pending }: SoughtTarget): Promise<void> {
    this.#seeking = true
    const target = await pending
    this.#seeking = false
    if (!this.#over) this.#go(target)
  }

  #go(target: GroupTarget | NoTarget): void {
    if (target.group === undefined) this.#whose.refused(target.status, target.error)
    else this.#find(target)
  }

  #find(target: GroupTarget): void {
    this.#search = new Search(target, this.#call, this.#server.settings.retry)
    this.#connect(this.#search)
  }

  #connect(search: Search): void {
    const attempt = search.next()
    if (attempt?.peer === undefined) {
      this.#whose.refused(502)
      return
    }
    this.attempt = attempt
    this.#since = attempt.startedAt
    this.#whose.expect(this.due)
    this.peer = dial(attempt.peer.address, this.#server.settings.bufferSize, this)
  }

  #unreachable(failure: ConnectFailure): void {
    const { attempt } = this
    const search = this.#search
    this.peer = undefined
    this.attempt = undefined
    if (search && attempt && search.failed(attempt, failure)) this.#connect(search)
    else this.#whose.refused(502)
  }
}
