import type { Call } from '../../feedback/call.ts'
import type { RetryPolicy } from '../../feedback/policy.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type { Group } from '../balance/group.ts'
import type { Trusted } from '../net/trusted.ts'
import type { Door } from '../tls/handshake.ts'
import type { PeerEngine } from '../tls/peer-engine.ts'

/** How TLS is spoken with peers. */
export interface PeerTls {
  readonly engine: PeerEngine
  /** What the peer is to call itself; undefined: as `proxy_pass` calls it. */
  readonly name: ((call: Call) => string) | undefined
}

/** What a server of `stream` says of its sessions. Times are milliseconds, sizes bytes. */
export interface SessionSettings {
  readonly connectTimeout: number
  /** Longest pause in both directions together. */
  readonly timeout: number
  readonly retry: RetryPolicy
  /** Whether one direction goes on after the other has ended. */
  readonly halfClose: boolean
  /** How long a session may go on after its peer has left; undefined: to its end. */
  readonly dropAfter: number | undefined
  /** How much of a direction is held before its source is read no more. */
  readonly bufferSize: number
  /** Version of the PROXY header that peers get; undefined: none. */
  readonly proxyProtocol: 'v1' | 'v2' | undefined
  /** How long a client may take for its PROXY header. */
  readonly proxyProtocolTimeout: number
  /** How long a handshake of TLS with a client may take. */
  readonly handshakeTimeout: number
  /** How TLS is spoken with peers; undefined: it is not. */
  readonly peerTls: PeerTls | undefined
  /** Whether what a client asks of TLS is read before a peer is chosen. */
  readonly preread: boolean
  readonly prereadTimeout: number
  readonly prereadBufferSize: number
  /** Whose PROXY header is taken for the client's address; undefined: nobody's. */
  readonly trusted: Trusted | undefined
  /** Datagrams that one datagram is answered with; undefined: not known. */
  readonly responses: number | undefined
  /** Datagrams of a client after which a new session begins; 0: never. */
  readonly requests: number
}

/** A group that a session goes to. */
export interface GroupTarget {
  /** As it was when the configuration, or the last change of its peers, was put into force. */
  readonly group: Group
  /** The host that `proxy_pass` names, or the group. */
  readonly host: string
  /** Which form of it is in force now; undefined: that one is, for good. */
  readonly forms?: { readonly latest: { readonly balancing: Group } | undefined } | undefined
}

/** A session goes nowhere: what it ends with, and what the error log has to say. */
export interface NoTarget {
  readonly group: undefined
  readonly status: number
  readonly error: string
}

/** A name is looked up: what that comes to has to be waited for. */
export interface SoughtTarget {
  readonly group: undefined
  /** Never rejects. */
  readonly pending: Promise<GroupTarget | NoTarget>
}

/** Where a session goes. */
export type StreamTarget = GroupTarget | NoTarget | SoughtTarget

/** What is done with a session. */
export type StreamContent =
  | {
      readonly kind: 'proxy'
      /** Name of the group, where it is the same for all sessions. */
      readonly group: string | undefined
      target(call: Call): StreamTarget
    }
  | { readonly kind: 'return'; text(call: Call): string }

/** A server of `stream` at one of the addresses that it listens on. */
export interface StreamServer {
  /** Canonical text of that address. */
  readonly address: string
  /** Whether its clients begin with a PROXY header. */
  readonly proxied: boolean
  /** What clients are shown, all of whom are to speak TLS; undefined where they are not to. */
  readonly door: Door | undefined
  readonly settings: SessionSettings
  readonly content: StreamContent
  /** Told of sessions that have ended. */
  readonly accessLogs: readonly ((call: Call) => void)[]
  /** Undefined where no `status_zone` counts its sessions. */
  readonly zone: ServerZone | undefined
}

/** nginx's defaults, and the product's own. */
export const sessionDefaults: SessionSettings = {
  connectTimeout: 60_000,
  timeout: 600_000,
  retry: {
    on: new Set(['error', 'timeout']),
    // Nothing has been sent to a peer that cannot be connected to.
    nonIdempotent: true,
    tries: 0,
    timeout: 0,
    budget: { ratio: 0.2, min: 10, window: 10_000 },
    backoff: undefined,
  },
  halfClose: false,
  dropAfter: undefined,
  bufferSize: 16_384,
  proxyProtocol: undefined,
  proxyProtocolTimeout: 30_000,
  handshakeTimeout: 60_000,
  peerTls: undefined,
  preread: false,
  prereadTimeout: 30_000,
  prereadBufferSize: 16_384,
  trusted: undefined,
  responses: undefined,
  requests: 0,
}
