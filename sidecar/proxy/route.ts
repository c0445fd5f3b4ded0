import type { Call } from '../../feedback/call.ts'
import type { RetryPolicy } from '../../feedback/policy.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type { PeerEngine } from '../tls/peer-engine.ts'
import type { PeerGroup } from './pools.ts'
import type { RedirectStyle } from './redirect.ts'

/** A text with variables, compiled. */
export type Text = (call: Call) => string

export type { RetryPolicy }

/** Why a request goes nowhere: what to answer, and what to say in the error log. */
export interface Nowhere {
  readonly status: number
  readonly text: string
}

/** Where a request goes: a group known at load, or one that a text with variables names at run time. */
export interface Target {
  /** The group to ask; undefined: none of that name (answered 502), or not known yet. */
  readonly group: PeerGroup | undefined
  /** `$proxy_host` and `$proxy_port`. */
  readonly host: string
  readonly port: string
  /** The host without its port: what a peer that speaks TLS is to be called unless it is said. */
  readonly name?: string
  /** Whether TLS is spoken there. */
  readonly secure?: boolean
  /** Why there is no group. */
  readonly failure?: Nowhere
  /** A name is looked up: what that comes to has to be waited for. Never rejects. */
  readonly pending?: Promise<PeerGroup | Nowhere>
}

/** TLS with peers, as a location says it. */
export interface PeerTls {
  readonly engine: PeerEngine
  /** `proxy_ssl_name`; undefined: the host of `proxy_pass`. */
  readonly name: Text | undefined
}

export interface ProxyPass {
  /** Name of the group, where it is known at load. */
  readonly group: string | undefined
  target(call: Call): Target
  /** The request target to send, in origin form: as `proxy_pass` rewrites it. */
  requestTarget(call: Call): string
}

export interface Header {
  readonly name: string
  /** `name` in lower case. */
  readonly lower: string
  readonly value: Text
  /** The value as the configuration has it; undefined where nobody asks. */
  readonly written?: string
}

export interface AddedHeader extends Header {
  /** Also on statuses other than 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308. */
  readonly always: boolean
}

export interface ErrorPage {
  /** Status to answer with; undefined: that of the failure; 0: whatever the page itself answers (`=`). */
  readonly status: number | undefined
  /** A URI, a `@name`, or an absolute URL to redirect to. */
  readonly to: Text
}

/**
 * Rewrites the value of a peer's `location` or `refresh` field.
 * @param name lower case
 */
export type Redirect = (call: Call, name: 'location' | 'refresh', value: string) => string

/** Takes the record of a finished request. */
export type AccessLog = (call: Call) => void

/** Everything a location says, inherited and compiled. Times in milliseconds, sizes in bytes. */
export interface Settings {
  readonly clientMaxBodySize: number
  readonly clientBodyTimeout: number
  readonly sendTimeout: number
  readonly keepaliveTimeout: number
  readonly keepaliveRequests: number
  readonly connectTimeout: number
  /** How TLS is spoken with peers; undefined where it is not. */
  readonly peerTls: PeerTls | undefined
  /** Whether peers are spoken to by HTTP/2. */
  readonly http2Peer: boolean
  /** Whether it is calls of gRPC that are passed. */
  readonly grpc: boolean
  readonly proxySendTimeout: number
  readonly readTimeout: number
  readonly retry: RetryPolicy
  readonly buffering: boolean
  /** `proxy_buffer_size`: largest response head. */
  readonly bufferSize: number
  /** `proxy_buffers`: how far to read ahead of a slow client. */
  readonly buffers: number
  readonly requestBuffering: boolean
  readonly replayBuffer: number
  readonly method: Text | undefined
  readonly setBody: Text | undefined
  readonly passRequestHeaders: boolean
  readonly passRequestBody: boolean
  readonly ignoreClientAbort: boolean
  /** How long an attempt may go on after its peer has left; undefined: to its end. */
  readonly dropAfter: number | undefined
  readonly interceptErrors: boolean
  /** `proxy_set_header` in order; an empty value removes the field. Host and Connection have defaults. */
  readonly setHeaders: readonly Header[]
  /** Their lower-case names: the client's own fields of these names are not passed. */
  readonly setHeaderNames: ReadonlySet<string>
  /** `proxy_http_version 1.0`: the peer is told to close after each answer. */
  readonly closePeer: boolean
  /** Lower-case names that are not passed to the client. */
  readonly hideHeaders: ReadonlySet<string>
  /** `proxy_redirect`; undefined when off. */
  readonly redirect: Redirect | undefined
  readonly addHeaders: readonly AddedHeader[]
  readonly errorPages: ReadonlyMap<number, ErrorPage>
  readonly accessLogs: readonly AccessLog[]
  readonly statusZones: readonly ServerZone[]
  readonly explainHeader: string | undefined
  readonly passLoadReport: boolean
  readonly defaultType: string
  /** `Server` of responses, and the name at the foot of pages. */
  readonly serverText: string
  readonly redirectStyle: RedirectStyle
  /** Takes the client's address from a trusted header; undefined where nobody is trusted. */
  readonly realIp: ((call: Call) => void) | undefined
}

/** What a location does with a request once its script has run. */
export type Content =
  | { readonly kind: 'proxy'; readonly pass: ProxyPass }
  /** The status tree from `path` on; see admin/status. */
  | { readonly kind: 'api'; readonly path: string }
  | { readonly kind: 'prometheus'; readonly template: string }
  | { readonly kind: 'none' }

/** What the script of a level (`set`, `if`, `rewrite`, `return`) leaves to do. */
export type Step =
  /** Go on with this location's content. */
  | { readonly kind: 'content' }
  /** The URI was changed by `rewrite … last`: look for the location again. */
  | { readonly kind: 'relocate' }
  | {
      readonly kind: 'return'
      /** 444 closes the connection without an answer. */
      readonly status: number
      /** Body, or the URL of a redirect; undefined: the page of that status. */
      readonly text: string | undefined
      /** The `if` that it stands in, or behind; undefined: the level's own route. */
      readonly route: Route | undefined
    }
  /** An `if` took over: its own route stands in for the location's. */
  | { readonly kind: 'route'; readonly route: Route }

/** One location (or the inside of an `if` of one), ready to run. */
export interface Route {
  /** As written (`/api/`, `~ \.php$`, `@fallback`): for logs and errors. */
  readonly location: string
  readonly settings: Settings
  readonly content: Content
  /** Whether nobody comes to it from outside, by `error_page` and `rewrite` alone. */
  readonly internal?: boolean
  /** Undefined where the level has none of set, if, rewrite, return. */
  readonly script: ((call: Call) => Step) | undefined
}
