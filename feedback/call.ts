import type { CallPreread, CallTls } from './call-tls.ts'
import type { Counted } from './counted.ts'
import type { Attempt } from './outcome.ts'
import type { Upstream } from './upstream.ts'

/** The trace of a request, as logs and variables tell it. */
export interface CallTrace {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string
  /** Of the request's own span: 16 of them. */
  readonly spanId: string
  /** Of the span that the client named: 16 of them; empty where the trace begins here. */
  readonly parentId: string
  /** Whether the client said that the trace is kept. */
  readonly parentSampled: boolean
  /** Whether it is kept. */
  readonly sampled: boolean
}

/** What a PROXY header says of the client's connection to whoever has passed it on. */
export interface ProxiedAddresses {
  /** Addresses and ports of the client and of the server that it called; empty where the header leaves them out. */
  readonly addr: string
  readonly port: string
  readonly serverAddr: string
  readonly serverPort: string
  /** What follows the addresses in a header of version 2, as it came; undefined for nothing. */
  readonly more?: Buffer
}

/**
 * The facts of one client request, or of one session of `stream`: what balancers, hashes, variables and logs may read. The listener makes it,
 * the proxy fills in what happens, and the access log reads it last.
 */
export class Call {
  /** Moment the request head had been read: milliseconds of the monotonic clock. */
  startedAt = 0
  /** `HTTP`, or what a session of `stream` runs over. `$protocol`. */
  protocol: 'HTTP' | 'TCP' | 'UDP' = 'HTTP'
  method = 'GET'
  /** Request target in origin form, byte for byte as received (latin1): `/a%20b?x=1`. `$request_uri`. */
  target = '/'
  /** `1.1` or `1.0`. */
  httpVersion = '1.1'
  scheme = 'http'
  /** Header names and values in turn, as received (latin1). */
  rawHeaders: readonly string[] = []
  /** Address of the client; a trusted header may have replaced it. `unix:` for a Unix-socket client. */
  remoteAddr = ''
  remotePort = ''
  /** Address of the client's socket, whatever `set_real_ip_from` makes of `remoteAddr`. */
  realipRemoteAddr = ''
  realipRemotePort = ''
  serverAddr = ''
  serverPort = ''
  /** Undefined where the connection has not begun with a PROXY header. */
  proxied: ProxiedAddresses | undefined = undefined
  /** Undefined where the client does not speak TLS. */
  tls: CallTls | undefined = undefined
  /** Undefined where nobody has looked. */
  preread: CallPreread | undefined = undefined
  /** `$host`: host of the request line, else of the Host header, else the server's first name; lower case. */
  host = ''
  /** The chosen server's first name. */
  serverName = ''
  /** Serial number of the client connection. */
  connection = 0
  /** How many requests that connection has carried, this one included. */
  connectionRequests = 1
  /** Moment that connection was accepted: monotonic milliseconds; 0 when unknown. `$connection_time`. */
  connectedAt = 0
  /** Normalised, decoded path (latin1 of its UTF-8 bytes); `rewrite` changes it. `$uri`. */
  uri = '/'
  /** Query string without the question mark, untouched. `$args`. */
  args = ''
  /** Whether `rewrite` or an internal redirect has changed `uri`. */
  rewritten = false
  /** False once `rewrite … break` has replaced the path that led to the location: the path of proxy_pass is then left out. */
  pathKept = true
  /** Times the location was looked for anew and internal redirects taken, so far; the eleventh is refused. */
  relocations = 0
  /** A page of `error_page` is being made: a further failure is answered without one. */
  errorPage = false
  /** Status that an error page is answered with, whatever its location answers; 0: that of its location. */
  statusOverride = 0
  /** Method of the request line, where an error page made a GET of it; undefined: `method` is that. */
  originalMethod: string | undefined = undefined
  /** Bytes of the request read so far: head and body. `$request_length`. */
  requestLength = 0
  /** The request body where it has been read into memory; undefined otherwise. `$request_body`. */
  body: Buffer | undefined = undefined

  /** Captures of the last regular expression that matched: `$1` is `captures[1]`. */
  captures: readonly (string | undefined)[] = []
  /** Values of `set` variables and named captures, by the slot their name was given at load. */
  values: (string | undefined)[] = []
  /** Values of `map` variables once evaluated, by slot; a map is evaluated once a request, as in nginx. */
  cache: (string | undefined)[] = []

  /** Every attempt, in order, the "nobody eligible" entries included. */
  readonly attempts: Attempt[] = []
  /** Index in `attempts` where each later run (after an internal redirect) begins; joined by ` : `. */
  readonly runs: number[] = []
  /** Host of `proxy_pass` as written, with its port if one was; the group's name for groups. `$proxy_host`. */
  proxyHost = ''
  /** `$proxy_port`. */
  proxyPort = ''
  /** Whether TLS is spoken with the peers there. */
  proxySecure = false
  /** Whether `grpc_pass` sends it there. */
  proxyGrpc = false
  /** Request target that the peers get, as `proxy_pass` and `rewrite` have made it; empty until then. */
  proxyTarget = ''
  /** Name of the group that was last asked; empty before the first pick. */
  upstream = ''
  /** The same as an object; undefined before the first pick. */
  group: Upstream | undefined = undefined

  /** The `Set-Cookie` of `sticky cookie` for the peer that was selected last; empty where there is none. */
  stickyCookie = ''
  /** How long it waited in the group's queue, milliseconds; undefined when it did not. `$upstream_queue_time`. */
  queueMs: number | undefined = undefined

  /** Status for the client; 0 until known; 499 when the client went away first. */
  status = 0
  /** Header names and values in turn, as sent to the client; empty until then. */
  sentHeaders: string[] = []
  /** Trailer names and values in turn, as sent to the client. */
  sentTrailers: string[] = []
  /** Bytes written to the client, head included. `$bytes_sent`. */
  bytesSent = 0
  /** What of `requestLength` and `bytesSent` zones have counted while it runs; undefined: nothing. Owned by observe-bytes. */
  counted: Counted | undefined = undefined
  /** Bytes of body written to the client. `$body_bytes_sent`. */
  bodyBytesSent = 0
  /** Whether the whole response was handed to the client's socket. */
  completed = false
  /** Whether the client went away, or took nothing any more, after the head of its answer and before the end. */
  left = false
  /** Moment the last byte went out or the client went away; monotonic milliseconds, 0 while running. */
  endedAt = 0
  /** Why there was no (further) attempt: a word of `denialReasons`; undefined when nothing was denied. */
  denial: string | undefined = undefined
  /** Name of the probe this call is for; empty for a client's request. `$upstream_probe`. */
  probe = ''
  /** What that probe kept of the answer's body (latin1). `$upstream_probe_body`. */
  probeBody = ''
  /** Track that the group's `split` sent it to; empty where there is none. `$upstream_track` says where it went. */
  track = ''
  /** The location that the request was for, as written; empty where it came to none. An error page's does not count. */
  location = ''
  /** Undefined where requests are not traced. */
  trace: CallTrace | undefined = undefined
  /** Ids of its span, 32 and 16 hexadecimal digits; empty unless it is traced and the trace is kept. */
  traceId = ''
  spanId = ''
  /** What the last rule of `proxy_next_upstream` and friends has to say for humans; empty when nothing. */
  #requestId = ''

  /**
   * How the request ended for its client: its status, and 499 also where it left in the middle of an answer whose status
   * had gone out. A tunnel has no end that it could leave before.
   */
  get endStatus(): number {
    return this.left && this.status !== 101 ? 499 : this.status
  }

  /**
   * Value of a request header. Several lines of one name are joined by `, ` (`; ` for Cookie), as nginx does.
   * @param name lower case
   * @returns undefined when the request has no such header
   */
  header(name: string): string | undefined {
    return findHeader(this.rawHeaders, name)
  }

  /** 32 hexadecimal digits drawn on first use. `$request_id`. */
  requestId(draw: () => string): string {
    if (this.#requestId === '') this.#requestId = draw()
    return this.#requestId
  }
}

/**
 * Finds a header in a flat list of names and values, without building an object for it.
 * @param name lower case
 * @returns the values joined by `, ` (`; ` for cookies); undefined when absent
 */
export function findHeader(flat: readonly string[], name: string): string | undefined {
  let found: string | undefined
  for (let i = 0; i < flat.length; i += 2) {
    const key = flat[i]!
    if (key.length !== name.length) continue
    if (key !== name && key.toLowerCase() !== name) continue
    found = found === undefined ? flat[i + 1]! : found + (name === 'cookie' ? '; ' : ', ') + flat[i + 1]!
  }
  return found
}
