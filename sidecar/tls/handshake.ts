import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { monotonic } from '../../feedback/clock.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import { type ClientHello, opening } from './client-hello.ts'
import { ClientTls } from './client-tls.ts'
import type { Engine } from './engine.ts'

/** A server as a handshake meets it. */
export interface ShownServer {
  /** Undefined where it shows nothing. */
  readonly engine: Engine | undefined
  /** Whether clients that ask for it are turned away. */
  readonly rejects: boolean
  /** Where its handshakes are counted. */
  readonly zone: ServerZone | undefined
}

/** The servers of an address as clients of TLS meet them. */
export interface Door {
  /**
   * What a client of that name gets to see.
   * @param name lower case; empty where it names none
   */
  show(name: string): ShownServer
}

/** Told how a connection begins. */
export interface HandshakeEvents {
  secured(secure: TLSSocket, tls: ClientTls): void
  /** It speaks without TLS. @param first what it has said */
  plain(first: Buffer): void
  /** It is being closed. @param why for the error log */
  failed(why: string): void
  closed(): void
}

/** `unrecognized_name`, fatal: RFC 6066 section 3. */
const unrecognized = Buffer.from([21, 3, 3, 0, 2, 2, 112])
/** `decode_error`, fatal. */
const undecodable = Buffer.from([21, 3, 3, 0, 2, 2, 50])

/** A connection whose handshake is waited for: first what the client wants, then the rest. */
export class Handshake {
  readonly socket: Socket
  readonly #door: () => Door
  readonly #told: HandshakeEvents
  readonly #since = monotonic()
  #first: Buffer[] = []
  /** Bytes that have come, and how many have to before it is worth a look. */
  #came = 0
  #wanted = 0
  #hello: ClientHello | undefined
  #server: ShownServer | undefined
  #over = false

  /** @param door as it is when the client has said what it wants */
  constructor(socket: Socket, door: () => Door, told: HandshakeEvents) {
    this.socket = socket
    this.#door = door
    this.#told = told
    socket.on('data', this.#data)
    socket.on('end', this.#end)
    socket.on('close', this.#close)
    // Every error ends in `close`.
    socket.on('error', () => {})
  }

  /** Looks whether the client has taken too long. @param timeout milliseconds for all of it */
  check(now: number, timeout: number): void {
    if (this.#over || now - this.#since < timeout) return
    this.#shown.zone?.handshake('timedout')
    this.#over = true
    this.#told.failed('client timed out in SSL handshake')
    this.socket.destroy()
  }

  // What the engine tells.

  secured(secure: TLSSocket): void {
    if (this.#over) return
    this.#over = true
    this.socket.off('close', this.#close)
    const { engine, zone } = this.#shown
    const tls = new ClientTls(secure, this.#hello!, engine!)
    zone?.handshake('handshaked')
    if (tls.reused) zone?.handshake('reuses')
    this.#told.secured(secure, tls)
  }

  failed(why: string): void {
    if (this.#over) return
    this.#over = true
    this.#shown.zone?.handshake('failed')
    this.#told.failed(why)
  }

  get #shown(): ShownServer {
    this.#server ??= this.#door().show(this.#hello?.serverName ?? '')
    return this.#server
  }

  readonly #data = (chunk: Buffer): void => {
    if (this.#over) return
    this.#first.push(chunk)
    this.#came += chunk.length
    // Whoever sends byte by byte is not to have all of it looked at each time.
    if (this.#came < this.#wanted) return
    const first = this.#first.length === 1 ? chunk : Buffer.concat(this.#first)
    const found = opening(first)
    switch (found.kind) {
      case 'more':
        this.#first = [first]
        this.#wanted = found.bytes
        return
      case 'plain':
        this.#over = true
        this.#leave()
        this.socket.off('close', this.#close)
        this.#told.plain(first)
        return
      case 'broken':
        this.#fail(`SSL_do_handshake() failed (${found.why})`, undecodable)
        return
      case 'hello':
        this.#hello = found.hello
        this.#begin(first)
    }
  }

  #begin(first: Buffer): void {
    const { engine, rejects } = this.#shown
    if (rejects || engine === undefined) {
      this.#fail('handshake rejected by ssl_reject_handshake', unrecognized)
      return
    }
    this.#leave()
    this.#first = []
    // What comes from here on is for the layer above: nothing may be read here any more.
    this.socket.pause()
    this.socket.unshift(first)
    engine.begin(this.socket, this)
  }

  readonly #end = (): void => {
    if (this.#over) return
    this.#gone()
    this.#leave()
    this.socket.destroySoon()
  }

  readonly #close = (): void => {
    if (!this.#over) this.#gone()
    this.#told.closed()
  }

  /** Whoever has not said a word did not want to speak TLS, but to see whether anybody listens. */
  #gone(): void {
    if (this.#first.length === 0 && this.#hello === undefined) this.#over = true
    else this.failed('peer closed connection in SSL handshake')
  }

  #fail(why: string, alert: Buffer): void {
    this.#shown.zone?.handshake('failed')
    this.socket.write(alert)
    this.#refuse(why)
  }

  #refuse(why: string): void {
    this.#over = true
    this.#leave()
    this.#told.failed(why)
    this.socket.destroySoon()
  }

  #leave(): void {
    this.socket.off('data', this.#data)
    this.socket.off('end', this.#end)
  }
}
