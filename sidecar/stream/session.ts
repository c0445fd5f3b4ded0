import type { Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { connected, firstByte } from '../../feedback/observe-session.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import { connectVerdict, lossReason } from '../../feedback/socket-error.ts'
import { proxyHeader, readProxyHeader } from '../net/proxy-protocol.ts'
import type { SessionHost } from './host.ts'
import { begun, type End, ended } from './record.ts'
import { type ConnectFailure, Search } from './search.ts'
import type { StreamServer } from './settings.ts'
import { breakOff, dial, own, type SocketOwner, written } from './sockets.ts'

/** How far a session is. */
type Phase =
  /** The client's PROXY header is waited for. */
  | 'prelude'
  | 'connecting'
  /** Bytes pass both ways. */
  | 'open'
  /** The end has begun: what is held still goes out. */
  | 'ending'
  /** It is over, and recorded; its sockets have a moment to close in order. */
  | 'closing'

/** How long the sides have to close after a session is over, milliseconds. */
const lingerMs = 1000
/** How long they have, when a session is ended from here, to take what is held; less than the drain waits for it. */
const farewellMs = 400

/** A client's connection, and the one to the peer that was picked for it. */
export class Session implements SocketOwner {
  readonly call: Call
  readonly client: Socket
  peer: Socket | undefined = undefined
  attempt: Attempt | undefined = undefined
  readonly #server: StreamServer
  readonly #host: SessionHost
  #phase: Phase = 'connecting'
  #search: Search | undefined = undefined
  /** What the client sent before there was somebody to send it to; undefined: nothing. */
  #early: Buffer | undefined = undefined
  #clientEnded = false
  #peerEnded = false
  /** It is this side that ends it. */
  #dismissed = false
  /** Since when nothing has passed, or the phase has lasted; monotonic milliseconds. */
  #since: number
  /** When it is to be ended, whatever happens on it; monotonic milliseconds. */
  #endAt = Number.POSITIVE_INFINITY

  /** @param call with the addresses of the client's connection */
  constructor(client: Socket, call: Call, server: StreamServer, host: SessionHost) {
    this.client = client
    this.call = call
    this.#server = server
    this.#host = host
    this.#since = call.startedAt
  }

  begin(): void {
    begun(this.#server, this.#host)
    own(this.client, this)
    if (this.#server.proxied) this.#enter('prelude', this.#since)
    else this.#start()
  }

  /** Whether the session is with one of these peers. */
  isWith(peers: readonly Peer[]): boolean {
    const peer = this.attempt?.peer
    // A reload makes the objects of all peers anew, also of those that stay.
    return (
      peer !== undefined && peers.some((one) => one.name === peer.name && one.zone.name === peer.zone.name)
    )
  }

  /** The next moment at which something is to be done unless something happens before; monotonic milliseconds. */
  get due(): number {
    return Math.min(this.#endAt, this.#since + this.#patience)
  }

  get #patience(): number {
    const { settings } = this.#server
    if (this.#phase === 'prelude') return settings.proxyProtocolTimeout
    if (this.#phase === 'connecting') return settings.connectTimeout
    if (this.#phase === 'closing') return lingerMs
    return settings.timeout
  }

  /** The moment has come. */
  late(now: number): void {
    const dismissed = this.#dismissed
    if (this.#phase === 'closing') for (const socket of [this.client, this.peer]) socket?.destroy()
    else if (this.#endAt <= now && !dismissed) this.end()
    else if (this.#phase === 'prelude') this.#malformed('client timed out while sending its PROXY header')
    else if (this.#phase === 'connecting') this.#connectTimedOut()
    else {
      if (!dismissed) this.#host.note(this.call, 'connection timed out')
      this.#conclude({ ending: 'ok', detail: dismissed ? 'ended from here' : 'idle' })
      // What is held is lost by that, which must not look like the end of what was sent.
      for (const socket of [this.client, this.peer])
        if (socket && socket.writableLength > 0) breakOff(socket, false)
    }
  }

  /** Ends it after so many milliseconds. */
  endLater(ms: number): void {
    this.#endAt = monotonic() + ms
    this.#host.expect(this.#endAt)
  }

  /** Ends it in order: each side gets what is held for it, and a FIN. */
  end(): void {
    if (this.#phase === 'closing' || this.#dismissed) return
    this.#dismissed = true
    if (this.#phase === 'prelude' || this.#phase === 'connecting') {
      this.#shutDown()
      this.#letGo()
      return
    }
    this.endLater(farewellMs)
    this.#phase = 'ending'
    this.client.end()
    this.peer?.end()
    this.#check()
  }

  /** Cuts it. */
  destroy(): void {
    if (this.#phase !== 'closing') this.#shutDown()
    for (const socket of [this.client, this.peer]) if (socket) breakOff(socket, false)
  }

  // What the sockets tell.

  connected(): void {
    const { attempt, call, peer, client } = this
    if (!attempt || !peer || this.#phase !== 'connecting') return
    const now = monotonic()
    attempt.connectMs = now - attempt.startedAt
    connected(attempt, call, now)
    this.#search = undefined
    this.#enter('open', now)
    const { proxyProtocol } = this.#server.settings
    if (proxyProtocol !== undefined) peer.write(proxyHeader(proxyProtocol, call))
    const early = this.#early
    this.#early = undefined
    if (early !== undefined && !peer.write(early)) client.pause()
    else client.resume()
    if (this.#clientEnded) this.#passEnd(peer)
    // It has left while it was connected to.
    if (attempt.peer?.dismissed) this.endLater(this.#host.graceMs)
  }

  data(socket: Socket, chunk: Buffer): void {
    const { attempt, client, peer, call } = this
    if (socket === client) {
      if (this.#phase === 'prelude') {
        this.#prelude(chunk)
        return
      }
      call.requestLength += chunk.length
      if (this.#phase === 'connecting') this.#keep(chunk)
      else this.#pass(chunk, client, peer)
      return
    }
    if (socket !== peer || attempt === undefined) return
    attempt.bytesReceived += chunk.length
    if (attempt.headerMs === undefined) firstByte(attempt, call, monotonic())
    this.#pass(chunk, peer, client)
  }

  drained(socket: Socket): void {
    this.#since = monotonic()
    if (socket === this.client) this.peer?.resume()
    else this.client.resume()
  }

  ended(socket: Socket): void {
    const { client, peer } = this
    if (socket === peer) {
      this.#peerEnded = true
      this.#passEnd(client)
    } else if (socket === client) {
      this.#clientEnded = true
      if (this.#phase === 'prelude') this.#malformed('client closed its connection in its PROXY header')
      else if (this.#phase !== 'connecting') this.#passEnd(peer)
      // Nobody would be told anything by a connection that is closed as it is made.
      else if (this.#early === undefined && !this.#server.settings.halfClose) this.#clientLeft()
    }
  }

  finished(): void {
    this.#check()
  }

  failed(socket: Socket, error: NodeJS.ErrnoException): void {
    const { client, peer } = this
    if (this.#phase === 'closing' || (socket !== client && socket !== peer)) return
    if (this.#phase === 'prelude') this.#malformed('client reset its connection in its PROXY header')
    else if (this.#phase === 'connecting') {
      if (socket === client) this.#clientLeft()
      else this.#unreachable({ ...connectVerdict(error), detail: error.message })
    } else if (socket === client) {
      // Whoever has ended its side, and with it all, may close without taking what is sent to it.
      if (this.#phase === 'ending' && this.#clientEnded) return
      this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: error.message })
      // A cut must not look like an end: the peer is to see a reset where the client's side has broken off, and so
      // is the client where the peer's has. (nginx ends both in order.)
      if (peer) breakOff(peer, true)
    } else {
      if (this.#phase === 'ending' && this.#peerEnded) return
      this.#conclude({ ending: 'error', reason: lossReason(error), detail: error.message })
      breakOff(client, true)
    }
  }

  closed(socket: Socket): void {
    if (socket !== this.client && socket !== this.peer) return
    if (this.#phase !== 'closing') this.#check()
    if (this.#phase === 'closing' && this.client.closed && this.peer?.closed !== false) this.#host.gone(this)
  }

  #enter(phase: Phase, now: number): void {
    this.#phase = phase
    this.#since = now
    this.#host.expect(this.due)
  }

  #prelude(chunk: Buffer): void {
    const bytes = this.#early === undefined ? chunk : Buffer.concat([this.#early, chunk])
    const header = readProxyHeader(bytes)
    this.#early = bytes
    if (header === undefined) return
    if ('fault' in header) {
      this.#malformed(`client sent no PROXY header that can be read: ${header.fault}`)
      return
    }
    const { call } = this
    const { addresses, length } = header
    call.proxied = addresses
    if (addresses !== undefined && this.#server.settings.trusted?.has(call.realipRemoteAddr)) {
      call.remoteAddr = addresses.addr
      call.remotePort = addresses.port
    }
    call.requestLength = bytes.length - length
    this.#early = bytes.length > length ? bytes.subarray(length) : undefined
    this.#start()
  }

  #malformed(why: string): void {
    this.#host.note(this.call, why)
    this.#refuse(400)
  }

  #start(): void {
    const { call, client } = this
    const { content, settings } = this.#server
    if (content.kind === 'return') {
      this.#early = undefined
      this.#enter('ending', monotonic())
      client.end(content.text(call), 'latin1')
      return
    }
    const target = content.target(call)
    if (target.group === undefined) {
      this.#host.complain(call, target.error)
      this.#refuse(target.status)
      return
    }
    this.#search = new Search(target.group, call, settings.retry)
    this.#connect(this.#search)
  }

  #connect(search: Search): void {
    this.attempt = search.next()
    const { attempt } = this
    if (attempt?.peer === undefined) {
      this.#refuse(502)
      return
    }
    this.#enter('connecting', attempt.startedAt)
    this.peer = dial(attempt.peer.address, this.#server.settings.bufferSize, this)
  }

  #connectTimedOut(): void {
    this.peer?.destroy()
    this.#unreachable({
      ending: 'timeout',
      reason: 'timeout_connect',
      detail: 'connect timed out',
      local: false,
    })
  }

  #unreachable(failure: ConnectFailure): void {
    const { attempt } = this
    const search = this.#search
    this.peer = undefined
    this.attempt = undefined
    if (search && attempt && search.failed(attempt, failure)) this.#connect(search)
    else this.#refuse(502)
  }

  /** Keeps what the client sends until there is a connection, up to a limit. */
  #keep(chunk: Buffer): void {
    this.#early = this.#early === undefined ? chunk : Buffer.concat([this.#early, chunk])
    if (this.#early.length >= this.#server.settings.bufferSize) this.client.pause()
  }

  #pass(chunk: Buffer, from: Socket, to: Socket | undefined): void {
    // Nobody takes it any more: it is dropped, so that closing with bytes unread resets nothing.
    if (this.#phase === 'closing' || !to?.writable) return
    this.#since = monotonic()
    if (!to.write(chunk)) from.pause()
  }

  #passEnd(to: Socket | undefined): void {
    if (this.#phase === 'closing') return
    this.#since = monotonic()
    if (!this.#server.settings.halfClose) this.#phase = 'ending'
    to?.end()
    this.#check()
  }

  /** Whether it is over: nginx's rule. */
  #check(): void {
    if (this.#phase !== 'open' && this.#phase !== 'ending') return
    const toClient = this.client.writableFinished || this.client.destroyed
    const toPeer = this.peer === undefined || this.peer.writableFinished || this.peer.destroyed
    const both = (this.#clientEnded && this.#peerEnded) || this.#dismissed
    const one = (this.#clientEnded && toPeer) || ((this.#peerEnded || this.peer === undefined) && toClient)
    if (both || this.#server.settings.halfClose ? !(both && toClient && toPeer) : !one) return
    this.#conclude({ ending: 'ok' })
    this.#letGo()
  }

  #clientLeft(): void {
    this.peer?.destroy()
    this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: 'client closed the connection' })
    this.#letGo()
  }

  #shutDown(): void {
    this.call.denial ??= 'shutdown'
    if (this.#phase !== 'open' && this.#phase !== 'ending') this.call.status = 502
    if (this.#phase === 'connecting') this.peer?.destroy()
    this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: 'ended from here' })
  }

  /** There is nobody to pass it to. */
  #refuse(status: number): void {
    this.call.status = status
    this.#conclude({ ending: 'aborted' })
    this.#letGo()
  }

  #conclude(end: End): void {
    this.#enter('closing', monotonic())
    this.#endAt = Number.POSITIVE_INFINITY
    this.#search = undefined
    this.#early = undefined
    const { attempt, call, client, peer } = this
    call.bytesSent = written(client)
    if (attempt && peer) attempt.bytesSent = written(peer)
    ended(call, attempt, end, this.#server, this.#host)
  }

  /** Has the sides close in order: each gets its FIN, and what they still send is read, and dropped. */
  #letGo(): void {
    for (const socket of [this.client, this.peer]) {
      if (!socket || socket.destroyed) continue
      socket.end()
      socket.resume()
    }
  }
}
