import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { Prelude } from '../net/prelude.ts'
import { type ClientTls, certificateRefusal } from '../tls/client-tls.ts'
import { type Door, Handshake } from '../tls/handshake.ts'
import { preread } from './preread.ts'
import type { StreamServer } from './settings.ts'
import { disown, own, type SocketOwner } from './sockets.ts'

/** Told how a client's connection begins. */
export interface Welcomed {
  /** It speaks TLS: this is its connection from now on. */
  secured(client: Socket): void
  /**
   * All is known of it that has to be before a peer is chosen.
   * @param early what the client has sent so far, of what is passed on; undefined: nothing
   */
  welcomed(client: Socket, early: Buffer | undefined): void
  /** It does not begin as it must. @param why for those who want to know of clients' mistakes */
  unfit(status: number, why: string): void
  /** The same, where it is no affair of the client alone. */
  refused(status: number, why: string): void
  /** Its connection has closed, which nobody else is told of. */
  closed(client: Socket): void
  /** There is another deadline. @param at monotonic milliseconds */
  expect(at: number): void
}

/** The beginning of a client's connection: its PROXY header, its handshake, and what is read of TLS without taking part in it. */
export class Welcome implements SocketOwner {
  #client: Socket
  readonly #call: Call
  readonly #server: StreamServer
  readonly #whose: Welcomed
  #prelude: Prelude | undefined = undefined
  #handshake: Handshake | undefined = undefined
  #early: Buffer | undefined = undefined
  /** Since when what is waited for now is; monotonic milliseconds. */
  #since: number

  constructor(client: Socket, call: Call, server: StreamServer, whose: Welcomed) {
    this.#client = client
    this.#call = call
    this.#server = server
    this.#whose = whose
    this.#since = call.startedAt
  }

  begin(): void {
    const { proxied, door } = this.#server
    if (proxied || door === undefined) own(this.#client, this)
    if (proxied) this.#prelude = new Prelude()
    else if (door) this.#secure(door, undefined)
    this.#whose.expect(this.due)
  }

  get due(): number {
    const { proxyProtocolTimeout, handshakeTimeout, prereadTimeout } = this.#server.settings
    if (this.#prelude) return this.#since + proxyProtocolTimeout
    return this.#since + (this.#handshake ? handshakeTimeout : prereadTimeout)
  }

  /** The session is over before all of this is. */
  abandon(): void {
    if (this.#handshake === undefined) return
    this.#handshake = undefined
    this.#client.destroy()
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#since += ms
  }

  /** The moment has come. */
  late(): void {
    if (this.#prelude) this.#whose.unfit(400, 'client timed out while sending its PROXY header')
    // It has a clock of its own, and its own counters.
    else if (this.#handshake) this.#handshake.check(monotonic(), this.#server.settings.handshakeTimeout)
    else this.#silent('timed out')
  }

  // What the socket tells.

  connected(): void {}

  data(_client: Socket, chunk: Buffer): void {
    if (this.#prelude) this.#readPrelude(this.#prelude, chunk)
    else this.#readAhead(chunk)
  }

  drained(): void {}

  ended(): void {
    if (this.#prelude) this.#whose.unfit(400, 'client closed its connection in its PROXY header')
    else this.#silent('closed its connection')
  }

  finished(): void {}

  failed(): void {
    if (this.#prelude) this.#whose.unfit(400, 'client reset its connection in its PROXY header')
    else this.#silent('reset its connection')
  }

  closed(): void {}

  #readPrelude(prelude: Prelude, chunk: Buffer): void {
    const header = prelude.add(chunk)
    if (header === undefined) return
    if ('fault' in header) {
      // Whoever is in front may be set up wrongly: that is more than a client's affair.
      this.#whose.refused(400, `${header.fault} while reading PROXY protocol`)
      return
    }
    const call = this.#call
    const { addresses } = header
    call.proxied = addresses
    if (addresses !== undefined && this.#server.settings.trusted?.has(call.realipRemoteAddr)) {
      call.remoteAddr = addresses.addr
      call.remotePort = addresses.port
    }
    this.#prelude = undefined
    this.#since = monotonic()
    const rest = prelude.rest(header)
    const { door } = this.#server
    if (door) {
      disown(this.#client)
      this.#secure(door, rest)
      this.#whose.expect(this.due)
    } else this.#go(rest)
  }

  /** @param first what has come of it */
  #secure(door: Door, first: Buffer | undefined): void {
    const client = this.#client
    const handshake: Handshake = new Handshake(client, () => door, {
      secured: (secure, tls) => {
        if (this.#handshake === handshake) this.#secured(secure, tls)
        else secure.destroy()
      },
      plain: () => {
        door.show('').zone?.handshake('failed')
        own(client, this)
        this.#insecure(handshake, 'client sent no TLS to a port where it is spoken')
      },
      failed: (why) => this.#insecure(handshake, why),
      closed: () => {
        this.#insecure(handshake, 'client closed its connection in SSL handshake')
        this.#whose.closed(client)
      },
    })
    this.#handshake = handshake
    if (first) client.unshift(first)
  }

  #insecure(handshake: Handshake, why: string): void {
    if (this.#handshake !== handshake) return
    this.#handshake = undefined
    this.#whose.unfit(500, why)
  }

  #secured(secure: TLSSocket, tls: ClientTls): void {
    this.#handshake = undefined
    this.#client = secure
    this.#since = monotonic()
    this.#call.tls = tls
    own(secure, this)
    this.#whose.secured(secure)
    const refusal = certificateRefusal(tls, tls.engine.verify)
    if (refusal === 495) this.#whose.unfit(500, tls.complaint)
    else if (refusal === 496) this.#whose.unfit(500, 'client sent no required SSL certificate')
    else this.#go(undefined)
  }

  /** @param first what has come of what is passed on */
  #go(first: Buffer | undefined): void {
    if (!this.#server.settings.preread) this.#done(first)
    else if (first === undefined) this.#whose.expect(this.due)
    else this.#readAhead(first)
  }

  #readAhead(chunk: Buffer): void {
    const early = this.#early === undefined ? chunk : Buffer.concat([this.#early, chunk])
    const { prereadBufferSize } = this.#server.settings
    const said = preread(early.subarray(0, prereadBufferSize))
    this.#early = early
    if (said !== undefined) {
      this.#call.preread = said
      this.#done(early)
    } else if (early.length >= prereadBufferSize) {
      this.#call.requestLength = early.length
      this.#whose.unfit(400, `preread buffer full: client says more than ${prereadBufferSize} bytes of TLS`)
    }
  }

  /** As nginx has it: there was a session, and nothing came of it. */
  #silent(what: string): void {
    this.#call.requestLength = this.#early?.length ?? 0
    this.#whose.unfit(200, `client ${what} before it had said what it wants of TLS`)
  }

  #done(early: Buffer | undefined): void {
    this.#whose.welcomed(this.#client, early)
  }
}
