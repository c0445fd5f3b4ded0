import type { Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { connected, firstByte } from '../../feedback/observe-session.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import { lossReason } from '../../feedback/socket-error.ts'
import type { Droppable } from '../balance/drops.ts'
import { among } from './among.ts'
import type { SessionHost } from './host.ts'
import { type Opened, Opening } from './opening.ts'
import { begun, type End, ended, passed, peerLeft } from './record.ts'
import { Relay } from './relay.ts'
import type { StreamServer } from './settings.ts'
import { breakOff, handOver, type SocketOwner, written } from './sockets.ts'

/** How long the sides have to close after a session is over, milliseconds. */
const lingerMs = 1000
/** How long they have, when a session is ended from here, to take what is held; less than the drain waits for it. */
const farewellMs = 400
/** Nothing is to be counted of a session on which nothing has happened for so long, milliseconds. */
const stillMs = 3000

/** A client's connection, and the one to the peer that was picked for it. */
export class Session implements SocketOwner, Opened, Droppable {
  readonly call: Call
  readonly #server: StreamServer
  readonly #host: SessionHost
  readonly #relay: Relay
  /** Until there is a connection to a peer. */
  #opening: Opening | undefined
  #attempt: Attempt | undefined = undefined
  /** It is over, and recorded; its sockets have a moment to close in order. */
  #closing = false
  /** Since when nothing has passed, or nothing more is recorded; monotonic milliseconds. */
  #since: number
  /** An attempt at a peer that has left. */
  #left: Attempt | undefined = undefined
  /** An attempt that was not to go on, for its peer has left its group. */
  #dropped: Attempt | undefined = undefined
  /** When it is to be ended, whatever happens on it; monotonic milliseconds. */
  #endAt = Number.POSITIVE_INFINITY

  /** @param call with the addresses of the client's connection */
  constructor(client: Socket, call: Call, server: StreamServer, host: SessionHost) {
    this.call = call
    this.#server = server
    this.#host = host
    this.#relay = new Relay(client, server.settings.halfClose)
    this.#since = call.startedAt
    this.#opening = new Opening(client, call, server, this)
  }

  begin(): void {
    begun(this.#server, this.#host)
    this.#opening?.begin()
  }

  get peer(): Peer | undefined {
    return (this.#attempt ?? this.#opening?.attempt)?.peer
  }

  /** Its peer has left. One that is still connected to is waited for: it may make way for another. */
  drop(): void {
    if (this.#closing || this.#relay.dismissed) return
    this.#dropped = this.#attempt ?? this.#opening?.attempt
    if (!this.#opening) this.end()
  }

  /** Ends it after so many milliseconds if it is with one of these peers, or about to be. */
  leave(peers: readonly Peer[], ms: number): void {
    const attempt = this.#attempt ?? this.#opening?.attempt
    if (this.#closing || !among(peers, attempt?.peer)) return
    this.#left = attempt
    this.endLater(ms)
  }

  /** The next moment at which something is to be done unless something happens before; monotonic milliseconds. */
  get due(): number {
    const patience = this.#closing ? lingerMs : this.#server.settings.timeout
    return Math.min(this.#endAt, this.#opening?.due ?? this.#since + patience)
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#since += ms
    this.#opening?.forgive(ms)
  }

  /** The moment has come. */
  late(now: number): void {
    const { dismissed } = this.#relay
    if (this.#closing) this.#relay.leave()
    else if (this.#endAt <= now && !dismissed) this.end()
    else if (this.#opening) this.#opening.late()
    else {
      if (!dismissed) this.#host.note(this.call, 'connection timed out')
      this.#conclude({ ending: 'ok', detail: dismissed ? 'ended from here' : 'idle' })
      this.#relay.breakOffHeld()
      this.#relay.letGo()
    }
  }

  /** Counts what has passed so far. */
  count(now: number): void {
    if (this.#closing || this.#attempt === undefined || now - this.#since > stillMs) return
    this.#measure(this.#attempt)
    passed(this.call, this.#attempt, this.#server)
  }

  #endOpening(): void {
    this.#opening?.abandon()
    this.#opening = undefined
  }

  #measure(attempt: Attempt | undefined): void {
    const { client, peer } = this.#relay
    // A handshake that failed is no part of what is passed on.
    if (this.#server.door === undefined || this.call.tls) this.call.bytesSent = written(client)
    if (attempt && peer) attempt.bytesSent = written(peer)
  }

  /** Ends it after so many milliseconds. */
  endLater(ms: number): void {
    this.#endAt = monotonic() + ms
    this.expect(this.#endAt)
  }

  /** Ends it in order: each side gets what is held for it, and a FIN. */
  end(): void {
    if (this.#closing || this.#relay.dismissed) return
    if (this.#opening) {
      this.#shutDown()
      this.#relay.letGo()
    } else {
      this.#relay.dismiss()
      this.endLater(farewellMs)
      this.#check()
    }
  }

  /** Cuts it. */
  destroy(): void {
    if (!this.#closing) this.#shutDown()
    this.#relay.breakOff()
  }

  // What its beginning tells.

  opened(attempt: Attempt, peer: Socket, early: Buffer | undefined, ended: boolean): void {
    const { call } = this
    const { client } = this.#relay
    const now = monotonic()
    this.#endOpening()
    this.#attempt = attempt
    this.#relay.peer = peer
    handOver(client, this)
    handOver(peer, this)
    attempt.connectMs = now - attempt.startedAt
    connected(attempt, call, now)
    this.#since = now
    this.expect(this.due)
    if (early !== undefined && !peer.write(early)) client.pause()
    else client.resume()
    if (ended) this.ended(client)
    // It has left while it was connected to; or it is another one than the peer that has.
    if (this.#left === undefined && attempt.peer?.dismissed) this.endLater(this.#host.graceMs)
    else if (this.#left !== attempt) this.#endAt = Number.POSITIVE_INFINITY
    if (this.#dropped === attempt) this.end()
  }

  answer(text: string): void {
    const { client } = this.#relay
    this.#endOpening()
    handOver(client, this)
    this.#since = monotonic()
    this.expect(this.due)
    client.end(text, 'latin1')
  }

  refused(status: number, why?: string): void {
    this.call.status = status
    if (why !== undefined) this.#host.complain(this.call, why)
    this.#conclude({ ending: 'aborted' })
    this.#relay.letGo()
  }

  secured(client: Socket): void {
    this.#relay.client = client
  }

  unfit(status: number, why: string): void {
    this.#host.note(this.call, why)
    this.refused(status)
  }

  left(attempt: Attempt | undefined): void {
    this.#attempt = attempt
    this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: 'client closed the connection' })
    this.#relay.letGo()
  }

  expect(at: number): void {
    this.#host.expect(at)
  }

  // What the sockets tell.

  connected(): void {}

  data(socket: Socket, chunk: Buffer): void {
    if (this.#closing) return
    const attempt = this.#attempt
    if (socket === this.#relay.client) this.call.requestLength += chunk.length
    else if (attempt !== undefined) {
      attempt.bytesReceived += chunk.length
      if (attempt.headerMs === undefined) firstByte(attempt, this.call, monotonic())
    }
    if (this.#relay.pass(chunk, socket)) this.#since = monotonic()
  }

  drained(socket: Socket): void {
    if (this.#closing) return
    this.#since = monotonic()
    this.#relay.drained(socket)
  }

  ended(socket: Socket): void {
    if (this.#closing) return
    this.#since = monotonic()
    this.#relay.ended(socket)
    this.#check()
  }

  finished(): void {
    this.#check()
  }

  failed(socket: Socket, error: NodeJS.ErrnoException): void {
    if (this.#closing) return
    const { client, peer, ending, clientEnded, peerEnded } = this.#relay
    const { message: detail } = error
    if (ending && (socket === client ? clientEnded : peerEnded)) {
      // Whoever has ended its side, and all with it, may close without taking what is still sent to it.
      this.#check()
      return
    }
    // A cut must not look like an end: where one side has broken off, the other is to see a reset too. (nginx ends both
    // in order.)
    if (socket === client) {
      this.#conclude({ ending: 'aborted', reason: 'client_abort', detail })
      if (peer) breakOff(peer, true)
    } else {
      this.#conclude({ ending: 'error', reason: lossReason(error), detail })
      breakOff(client, true)
    }
  }

  closed(): void {
    this.#check()
    if (this.#closing && this.#relay.closed) this.#host.gone(this)
  }

  #check(): void {
    if (this.#closing || this.#opening || !this.#relay.over) return
    this.#conclude({ ending: 'ok' })
    this.#relay.letGo()
  }

  #shutDown(): void {
    this.call.denial ??= 'shutdown'
    if (this.#opening) {
      this.call.status = 502
      this.#attempt = this.#opening.attempt
      this.#opening.peer?.destroy()
    }
    this.#conclude({ ending: 'aborted', reason: 'client_abort', detail: 'ended from here' })
  }

  #conclude(end: End): void {
    if (this.#opening) handOver(this.#relay.client, this)
    this.#endOpening()
    this.#closing = true
    this.#endAt = Number.POSITIVE_INFINITY
    this.#since = monotonic()
    this.expect(this.due)
    this.#measure(this.#attempt)
    // Before it is there whatever else ends it has done so.
    const dropped = this.#relay.dismissed && this.#attempt !== undefined && this.#dropped === this.#attempt
    ended(this.call, this.#attempt, dropped ? peerLeft : end, this.#server, this.#host)
    if (this.#relay.closed) this.#host.gone(this)
  }
}
