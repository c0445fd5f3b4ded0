import type { Bind } from '../net/bind.ts'
import type { Door } from '../tls/handshake.ts'
import type { ConnectionLimits } from './http1/client-connection.ts'
import type { Settings } from './route.ts'

/** One address to listen on and what its default server says of connections. */
export interface ListenSpec extends Bind, ConnectionLimits {
  /** Requests a connection may carry. */
  readonly keepaliveRequests: number
  /** Whether header names with an underscore are dropped, as nginx does unless told otherwise. */
  readonly dropUnderscores: boolean
  /** Whether header names other than letters, digits, hyphens and underscores are dropped. */
  readonly dropInvalid: boolean
  /** Whether each connection begins with a PROXY header. */
  readonly proxyProtocol: boolean
  /** What clients are shown that speak TLS, as all are to; undefined where they are not to. */
  readonly door: Door | undefined
  /** Whether HTTP/2 is spoken without TLS where a client begins with it. With TLS it is the handshake that tells. */
  readonly http2: boolean
  /** Most requests of an HTTP/2 connection at once. */
  readonly maxStreams: number
  /** Settings of the default server: what holds until a location is known. */
  readonly settings: Settings
}
