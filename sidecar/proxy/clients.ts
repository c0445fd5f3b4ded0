import type { Socket } from 'node:net'
import { monotonic } from '../../feedback/clock.ts'
import type { ClientCounts } from '../../feedback/tally.ts'
import { Addresses, type Place, type Reception } from '../net/addresses.ts'
import { readAddress } from '../net/client-address.ts'
import type { FirstBytes } from '../net/first-bytes.ts'
import { afterReading } from '../net/late.ts'
import { type Sharing, serialOf } from '../net/sharing.ts'
import { type Door, Handshake } from '../tls/handshake.ts'
import { Client } from './client.ts'
import { Greeting } from './greeting.ts'
import type { ClientGreeting, Handler, Host, Served } from './host.ts'
import { Http2Client } from './http2/client.ts'
import { Preface } from './http2/preface.ts'
import type { ListenSpec } from './listen-spec.ts'
import { ungreeted } from './refusal.ts'

/** How often it is looked whether clients take too long, milliseconds. */
const lookEveryMs = 500
/** Looks that are further apart show that the process could not run meanwhile: nobody is judged by that time. */
const heldUpMs = 1000

/** The clients of HTTP in this thread: has connections served from their first byte to their end. */
export class Clients implements Host, Reception<ListenSpec> {
  /** Where they come. */
  readonly addresses: Addresses<ListenSpec>
  readonly counts: ClientCounts
  readonly handler: Handler
  draining = false
  readonly #sharing: Sharing
  readonly #dropped: () => void
  readonly #clients = new Set<Served>()
  /** Connections whose PROXY header, handshake of TLS, or preface of HTTP/2 is waited for. */
  readonly #greetings = new Map<FirstBytes | Handshake, Place<ListenSpec>>()
  /** Addresses that nobody comes to any more, and that may have connections yet. */
  readonly #leaving = new Set<string>()
  #looking: NodeJS.Timeout | undefined = undefined
  #lookedAt = 0

  /**
   * @param limit most connections at once, see `Addresses`
   * @param dropped told of each connection that was closed as it came
   */
  constructor(handler: Handler, sharing: Sharing, limit: number, dropped: () => void) {
    this.handler = handler
    this.counts = sharing.tally.own
    this.#sharing = sharing
    this.#dropped = dropped
    this.addresses = new Addresses(sharing, limit, this)
  }

  /** From now on each response is its connection's last. Accepting goes on. */
  drain(): void {
    this.draining = true
    for (const client of this.#clients) client.drain()
  }

  /** Closes connections that carry no request. */
  closeIdle(): void {
    for (const client of this.#clients) client.closeIdle()
    for (const { socket } of this.#greetings.keys()) socket.destroy()
  }

  /** Closes everything at once. */
  destroy(): void {
    this.addresses.stop()
    for (const { socket } of this.#greetings.keys()) socket.destroy()
    for (const client of this.#clients) client.shutDown()
  }

  // What the addresses tell.

  dropped(): void {
    this.#dropped()
  }

  left({ spec }: Place<ListenSpec>): void {
    this.#leaving.add(spec.key)
    this.#forget()
  }

  came(socket: Socket, place: Place<ListenSpec>): void {
    const serial = serialOf(this.#sharing)
    this.counts.open += 1
    const { proxyProtocol, door, address, http2 } = place.spec
    if (proxyProtocol) this.#greet(place, socket, serial)
    else if (door) this.#secure(place, socket, serial, { address: readAddress(socket, address) }, door)
    else if (http2) this.#meet(place, socket, serial, { address: readAddress(socket, address) })
    else this.#clients.add(new Client(socket, serial, place, this))
    if (this.#looking) return
    this.#lookedAt = monotonic()
    this.#looking = setInterval(() => afterReading(() => this.#look()), lookEveryMs).unref()
  }

  /** Has the connection served once its PROXY header has been read. */
  #greet(place: Place<ListenSpec>, socket: Socket, serial: number): void {
    const address = readAddress(socket, place.spec.address)
    const greeting: Greeting = new Greeting(socket, {
      greeted: (addresses, rest) => {
        this.#greetings.delete(greeting)
        const start = { address, proxied: addresses }
        const { door, http2 } = place.spec
        if (door) this.#secure(place, socket, serial, start, door)
        else if (http2) this.#meet(place, socket, serial, start)
        else this.#clients.add(new Client(socket, serial, place, this, start))
        if (rest) socket.unshift(rest)
      },
      ungreeted: (why, broken) =>
        this.handler.malformed(ungreeted(address, serial), place.spec.settings, why, broken),
      closed: () => this.#lost(greeting),
    })
    this.#greetings.set(greeting, place)
  }

  /** Has the connection served once its handshake is over. Who speaks without TLS is told so by the routes. */
  #secure(place: Place<ListenSpec>, socket: Socket, serial: number, start: ClientGreeting, door: Door): void {
    const handshake: Handshake = new Handshake(socket, () => place.spec.door ?? door, {
      secured: (secure, tls) => {
        this.#greetings.delete(handshake)
        const begun = { ...start, tls }
        if (tls.alpn === 'h2') this.#clients.add(new Http2Client(secure, serial, place, this, begun))
        else this.#clients.add(new Client(secure, serial, place, this, begun))
      },
      plain: (first) => {
        this.#greetings.delete(handshake)
        this.#clients.add(new Client(socket, serial, place, this, start))
        socket.unshift(first)
      },
      failed: (why) => this.handler.unsecured(ungreeted(start.address, serial), why),
      closed: () => this.#lost(handshake),
    })
    this.#greetings.set(handshake, place)
  }

  /** Has the connection served once its first bytes tell which HTTP it speaks. */
  #meet(place: Place<ListenSpec>, socket: Socket, serial: number, start: ClientGreeting): void {
    const preface: Preface = new Preface(socket, {
      http2: (first) => {
        this.#greetings.delete(preface)
        // What has come is put back for the session to read: it must not flow away to nobody.
        socket.pause()
        socket.unshift(first)
        this.#clients.add(new Http2Client(socket, serial, place, this, start))
      },
      http1: (first) => {
        this.#greetings.delete(preface)
        this.#clients.add(new Client(socket, serial, place, this, start))
        socket.unshift(first)
      },
      closed: () => this.#lost(preface),
    })
    this.#greetings.set(preface, place)
  }

  gone(client: Served): void {
    this.#clients.delete(client)
    this.#closed()
  }

  /** An address has been left for good once nobody is there any more who came before. */
  #forget(): void {
    if (this.#leaving.size === 0) return
    const used = new Set<string>()
    for (const { spec } of this.#clients) used.add(spec.key)
    for (const { spec } of this.#greetings.values()) used.add(spec.key)
    for (const key of this.#leaving) {
      const stays = this.addresses.has(key)
      if (!stays && used.has(key)) continue
      this.#leaving.delete(key)
      if (!stays) this.handler.closed(key)
    }
  }

  /** It has closed before it could be served. */
  #lost(greeting: FirstBytes | Handshake): void {
    this.#greetings.delete(greeting)
    this.#closed()
  }

  #closed(): void {
    this.counts.open -= 1
    if (this.#clients.size + this.#greetings.size > 0) return
    this.#forget()
    clearInterval(this.#looking)
    this.#looking = undefined
  }

  #look(): void {
    const now = monotonic()
    const heldUp = now - this.#lookedAt > heldUpMs
    this.#lookedAt = now
    this.#forget()
    if (heldUp) return
    for (const client of this.#clients) client.check(now)
    for (const [greeting, { spec }] of this.#greetings) greeting.check(now, spec.headerTimeout)
  }
}
