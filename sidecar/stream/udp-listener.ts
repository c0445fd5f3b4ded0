import type { RemoteInfo, Socket } from 'node:dgram'
import { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { UdpBind } from '../net/bind-udp.ts'
import { begun, ended } from './record.ts'
import type { GroupTarget, NoTarget, SoughtTarget, StreamServer } from './settings.ts'
import { HeldDatagrams } from './udp-held.ts'
import type { UdpClient, UdpHost, UdpSide } from './udp-host.ts'
import { mostQueued } from './udp-link.ts'
import { UdpSession } from './udp-session.ts'

/** What a listener needs of all of them together. */
export interface UdpOwner extends UdpHost {
  /** @returns serial number of a session that begins; undefined when there is no room for one */
  admit(): number | undefined
  begun(session: UdpSession): void
  gone(session: UdpSession): void
}

/** A client whose first datagram has come. */
interface Newcomer {
  readonly call: Call
  readonly from: RemoteInfo
  readonly key: string
  readonly server: StreamServer
}

/** One address that datagrams come to, with the sessions of its clients. */
export class UdpListener implements UdpSide {
  readonly bind: UdpBind
  readonly counts
  /** What its next sessions go by. Until it is known, nobody is served. */
  server: StreamServer | undefined
  readonly #socket: Socket
  readonly #owner: UdpOwner
  /** By the address and port of their client. */
  readonly #bound = new Map<string, UdpSession>()
  /** Those too whose client's next datagram begins another. */
  #sessions = 0
  /** Of clients whose peer's name is looked up. */
  readonly #held = new HeldDatagrams()
  /** Whether new clients are served. */
  #open = true
  #closed = false

  constructor(bind: UdpBind, socket: Socket, owner: UdpOwner) {
    this.bind = bind
    this.counts = owner.counts
    this.#socket = socket
    this.#owner = owner
    socket.on('message', (datagram, from) => this.#came(datagram, from))
    // Of a datagram that could not be received or sent; the socket itself goes on.
    socket.on('error', () => this.lost())
  }

  get port(): number {
    return this.#closed ? 0 : this.#socket.address().port
  }

  get graceMs(): number {
    return this.#owner.graceMs
  }

  /** Whether its socket is closed, for good. */
  get closed(): boolean {
    return this.#closed
  }

  /** Serves new clients again, after `stop`. */
  resume(): void {
    this.#open = true
  }

  /** Serves no new clients. The sessions that there are go on, and the socket is closed after the last. */
  stop(): void {
    this.#open = false
    this.#closeWhenDone()
  }

  // What sessions need.

  reply({ address, port }: UdpClient, datagram: Uint8Array): void {
    if (this.#closed || this.#socket.getSendQueueSize() > mostQueued) this.lost()
    else this.#socket.send(datagram, port, address, this.#sent)
  }

  unbind(session: UdpSession): void {
    if (this.#bound.get(session.key) === session) this.#bound.delete(session.key)
  }

  gone(session: UdpSession): void {
    this.#sessions -= 1
    this.#owner.gone(session)
    // Its last answer goes out first.
    if (!this.#open) setImmediate(() => this.#closeWhenDone())
  }

  expect(at: number): void {
    this.#owner.expect(at)
  }

  lost(): void {
    this.#owner.lost()
  }

  complain(call: Call, text: string): void {
    this.#owner.complain(call, text)
  }

  note(call: Call, text: string): void {
    this.#owner.note(call, text)
  }

  #came(datagram: Buffer, from: RemoteInfo): void {
    if (from.port === 0) {
      // RFC 768 allows it to those who want no answer. There is none that could be sent, and no client to tell by it.
      this.lost()
      return
    }
    const key = `${from.port} ${from.address}`
    const session = this.#bound.get(key)
    if (session !== undefined) {
      session.take(datagram)
      return
    }
    const held = this.#held.size > 0 ? this.#held.hold(key, datagram) : undefined
    if (held === 'lost') this.lost()
    else if (held === 'held') return
    else if (this.#open && this.server !== undefined) this.#begin(datagram, from, key, this.server)
    else this.lost()
  }

  #begin(datagram: Buffer, from: RemoteInfo, key: string, server: StreamServer): void {
    const serial = this.#owner.admit()
    if (serial === undefined) return
    const call = this.#call(from, serial, server)
    const { content } = server
    if (content.kind === 'return') {
      begun(server, this)
      call.requestLength = datagram.length
      const text = Buffer.from(content.text(call), 'latin1')
      call.bytesSent = text.length
      this.reply(from, text)
      ended(call, undefined, { ending: 'ok' }, server, this)
      return
    }
    const target = content.target(call)
    const newcomer = { call, from, key, server }
    if (!('pending' in target)) {
      begun(server, this)
      this.#go(newcomer, target, [datagram])
    } else if (this.#held.full) this.lost()
    else {
      begun(server, this)
      void this.#seek(newcomer, target, datagram)
    }
  }

  /** Holds what the client sends until it is known where it goes. */
  async #seek(newcomer: Newcomer, { pending }: SoughtTarget, datagram: Buffer): Promise<void> {
    const { key } = newcomer
    this.#held.begin(key, datagram)
    const target = await pending
    this.#go(newcomer, target, this.#held.end(key))
    this.#closeWhenDone()
  }

  /** @param datagrams of the client so far, at least one */
  #go(newcomer: Newcomer, target: GroupTarget | NoTarget, [first, ...more]: readonly Buffer[]): void {
    const { call, from, key, server } = newcomer
    if (target.group === undefined) {
      call.requestLength = more.reduce((sum, { length }) => sum + length, first!.length)
      call.status = target.status
      this.complain(call, target.error)
      ended(call, undefined, { ending: 'aborted' }, server, this)
      return
    }
    const client = { address: from.address, port: from.port }
    const session = new UdpSession(call, client, key, target, server, this)
    this.#sessions += 1
    this.#bound.set(key, session)
    this.#owner.begun(session)
    session.begin(first!)
    // They may be more than one session takes.
    for (const datagram of more) this.#came(datagram, from)
  }

  #call({ address, port }: RemoteInfo, serial: number, server: StreamServer): Call {
    const { host = '::', port: own } = this.bind.address
    const call = new Call()
    call.protocol = 'UDP'
    call.method = 'UDP'
    call.target = ''
    call.startedAt = monotonic()
    call.connectedAt = call.startedAt
    call.remoteAddr = call.realipRemoteAddr = address
    call.remotePort = call.realipRemotePort = `${port}`
    call.serverAddr = host
    call.serverPort = `${own || this.port}`
    call.serverName = server.address
    call.connection = serial
    return call
  }

  /** A client that cannot be reached is not waited for: its session ends by its own rules. */
  readonly #sent = (error: Error | null) => {
    if (error !== null && !this.#closed) this.lost()
  }

  #closeWhenDone(): void {
    if (this.#open || this.#closed || this.#sessions + this.#held.size > 0) return
    this.#closed = true
    this.#socket.close()
  }
}
