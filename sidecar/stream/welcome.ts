import type { Socket } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { Prelude } from '../net/prelude.ts'
import { preread } from './preread.ts'
import type { StreamServer } from './settings.ts'
import { own, type SocketOwner } from './sockets.ts'

/** Told how a client's connection begins. */
export interface Welcomed {
  /**
   * All is known of it that has to be before a peer is chosen.
   * @param early what the client has sent so far, of what is passed on; undefined: nothing
   */
  welcomed(client: Socket, early: Buffer | undefined): void
  /** It does not begin as it must. @param why for those who want to know of clients' mistakes */
  unfit(status: number, why: string): void
  /** There is another deadline. @param at monotonic milliseconds */
  expect(at: number): void
}

/** The beginning of a client's connection: its PROXY header, and what is read of TLS without taking part in it. */
export class Welcome implements SocketOwner {
  readonly #client: Socket
  readonly #call: Call
  readonly #server: StreamServer
  readonly #whose: Welcomed
  #prelude: Prelude | undefined = undefined
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
    own(this.#client, this)
    if (this.#server.proxied) this.#prelude = new Prelude()
    this.#whose.expect(this.due)
  }

  get due(): number {
    const { proxyProtocolTimeout, prereadTimeout } = this.#server.settings
    return this.#since + (this.#prelude === undefined ? prereadTimeout : proxyProtocolTimeout)
  }

  /** So many milliseconds in which nobody could do anything count for nothing. */
  forgive(ms: number): void {
    this.#since += ms
  }

  /** The moment has come. */
  late(): void {
    if (this.#prelude) this.#whose.unfit(400, 'client timed out while sending its PROXY header')
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
      this.#whose.unfit(400, `client sent no PROXY header that can be read: ${header.fault}`)
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
    if (!this.#server.settings.preread) this.#done(rest)
    else if (rest === undefined) this.#whose.expect(this.due)
    else this.#readAhead(rest)
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
