import type { Socket } from 'node:net'
import type { ProxiedAddresses } from '../../feedback/call.ts'
import type { Place } from '../net/addresses.ts'
import { type ClientAddress, readAddress } from '../net/client-address.ts'
import type { ClientTls } from '../tls/client-tls.ts'
import type { Unserved } from './client-side.ts'
import { Exchange } from './exchange.ts'
import type { Caller, ClientGreeting, Host, Served } from './host.ts'
import { ClientConnection, type ClientEvents } from './http1/client-connection.ts'
import type { ClientRequest } from './http1/client-request.ts'
import type { ClientResponse } from './http1/client-response.ts'
import type { ListenSpec } from './listen-spec.ts'
import { plainResponse, refuse } from './refusal.ts'
import { makeCall } from './request-call.ts'

/** A client that speaks HTTP/1.1: its connection, and the exchange in progress on it. */
export class Client implements ClientEvents, Served, Caller {
  readonly connection: ClientConnection
  readonly address: ClientAddress
  /** Undefined where no PROXY header said it. */
  readonly proxied: ProxiedAddresses | undefined
  /** Undefined where it does not speak TLS. */
  readonly tls: ClientTls | undefined
  /** Undefined between two requests. */
  current: Exchange | undefined = undefined
  readonly #place: Place<ListenSpec>
  readonly #host: Host

  /** @param greeting what it began with, where that was no request */
  constructor(
    socket: Socket,
    serial: number,
    place: Place<ListenSpec>,
    host: Host,
    greeting?: ClientGreeting,
  ) {
    this.#place = place
    this.#host = host
    this.proxied = greeting?.proxied
    this.tls = greeting?.tls
    // The socket keeps the addresses that it is asked for now: a client that resets its connection takes them with it.
    this.address = greeting?.address ?? readAddress(socket, place.spec.address)
    this.connection = new ClientConnection(socket, serial, place, this)
  }

  get spec(): ListenSpec {
    return this.#place.spec
  }

  check(now: number): void {
    this.connection.check(now)
  }

  drain(): void {
    if (this.current) this.current.close = true
  }

  closeIdle(): void {
    this.connection.closeIdle()
  }

  shutDown(): void {
    // It is not the client that has gone.
    if (this.current) this.current.call.denial ??= 'shutdown'
    this.connection.cut()
  }

  // What the connection tells.

  request(request: ClientRequest, response: ClientResponse): void {
    const { connection } = this
    const { spec, removed } = this.#place
    const { counts, handler, draining } = this.#host
    counts.active += 1
    const call = makeCall(request.head, this)
    const exchange = new Exchange(call, request, response, connection, spec.settings, (ended) => {
      counts.active -= 1
      this.current = undefined
      handler.ended(ended)
      connection.next()
    })
    const worn = connection.requests >= spec.keepaliveRequests
    exchange.close = draining || removed || spec.keepaliveTimeout === 0 || worn
    this.current = exchange
    handler.serve(exchange, spec.key)
  }

  unserved(what: Unserved): void {
    this.#host.handler.malformed(refuse(this, what), this.spec.settings, what.why)
  }

  malformed(status: number, why: string): void {
    const { current, connection } = this
    if (!current) return
    this.#host.handler.unreadable(current, why)
    const { response, call } = current
    // It can be answered only if nothing has been said yet.
    if (response.headersSent) {
      connection.cut()
      return
    }
    current.leave()
    call.status = status
    response.bytes += connection.refuse(plainResponse(status, call.method))
  }

  left(): boolean {
    const { current } = this
    return current !== undefined && (current.response.ended || current.settings.ignoreClientAbort)
  }

  over(): void {
    this.current?.over()
  }

  closed(): void {
    this.#host.gone(this)
  }
}
