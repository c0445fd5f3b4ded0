import type { Call, ProxiedAddresses } from '../../feedback/call.ts'
import type { ClientCounts } from '../../feedback/tally.ts'
import type { ClientAddress } from '../net/client-address.ts'
import type { ClientTls } from '../tls/client-tls.ts'
import type { Exchange } from './exchange.ts'
import type { ListenSpec } from './listen-spec.ts'
import type { Settings } from './route.ts'

/** What is done with requests. */
export interface Handler {
  /** Serves a request; calls `exchange.handled()` when its work is over. Never throws. */
  serve(exchange: Exchange, key: string): void
  /** A request has ended: its record is complete. */
  ended(exchange: Exchange): void
  /**
   * What came was no request: `call.status` says what it was answered.
   * @param why for the error log
   * @param ours whether that is more than a client's affair, as where whoever is in front may be set up wrongly; default no
   */
  malformed(call: Call, settings: Settings, why: string, ours?: boolean): void
  /** A connection has come to no request. @param why for the error log */
  unsecured(call: Call, why: string): void
  /** A connection breaks the rules of its protocol, and is closed. @param why for the error log */
  unruly(call: Call, why: string): void
  /** The body of a request is none. @param why for the error log */
  unreadable(exchange: Exchange, why: string): void
  /** An address that is listened on no more has no connection any more. */
  closed(key: string): void
}

/** A client's connection, as whoever has accepted it sees it. */
export interface Served {
  readonly spec: ListenSpec
  /** Looks whether the client has taken too long. To be called from time to time. */
  check(now: number): void
  /** What is in progress on it is the last. */
  drain(): void
  /** Closes it where no request is in progress. */
  closeIdle(): void
  /** Closes it at once: the program ends. */
  shutDown(): void
}

/** Who sends requests, as far as it is known with each of them. */
export interface Caller {
  readonly connection: { readonly serial: number; readonly requests: number }
  readonly address: ClientAddress
  /** Undefined where no PROXY header said it. */
  readonly proxied: ProxiedAddresses | undefined
  /** Undefined where it does not speak TLS. */
  readonly tls: ClientTls | undefined
  readonly spec: ListenSpec
}

/** Who has accepted a client. */
export interface Host {
  readonly handler: Handler
  readonly counts: ClientCounts
  /** From now on each response is its connection's last. */
  readonly draining: boolean
  /** The client's connection has closed. */
  gone(client: Served): void
}

/** How a connection began. */
export interface ClientGreeting {
  readonly address: ClientAddress
  /** Undefined where no PROXY header said it. */
  readonly proxied?: ProxiedAddresses | undefined
  /** Undefined where it does not speak TLS. */
  readonly tls?: ClientTls
}
