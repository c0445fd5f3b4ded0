import { type GrpcRetryWord, grpcRetryStatuses } from '../../feedback/grpc-status.ts'
import { retryKinds } from '../../feedback/policy.ts'
import type { RetryBudget } from './model.ts'

/**
 * TLS, HTTP/2 and gRPC in the model. As everywhere an absent key was not configured. Paths are as written, relative
 * to the prefix; the files are read when what they are for is built. No key or password ever stands here itself.
 */

/** Protocols that are spoken. Older ones may be written and are left out, with a notice. */
export const tlsProtocols = ['TLSv1.2', 'TLSv1.3'] as const
export type TlsProtocol = (typeof tlsProtocols)[number]

/** TLS towards clients: in `http` and `server`, and in `stream` and its `server`, inherited inwards key by key. */
export interface TlsServerSettings {
  /** One of each kind of key; the n-th belongs to the n-th of `ssl_certificate_key`. */
  readonly ssl_certificate?: readonly string[]
  /** At least as many as certificates, at the level where both have been inherited. */
  readonly ssl_certificate_key?: readonly string[]
  /** A file with a pass phrase on each line, tried in turn. */
  readonly ssl_password_file?: string
  /** Never empty; both where absent. */
  readonly ssl_protocols?: readonly TlsProtocol[]
  /** OpenSSL's list, for TLS up to 1.2; `HIGH:!aNULL:!MD5` where absent. */
  readonly ssl_ciphers?: string
  readonly ssl_prefer_server_ciphers?: boolean
  /** Names with colons between them; `auto` where absent. */
  readonly ssl_ecdh_curve?: string
  readonly ssl_dhparam?: string
  /** Read and checked, without effect: sessions are taken up again by tickets. */
  readonly ssl_session_cache?: SessionCache
  /** `true` where absent. */
  readonly ssl_session_tickets?: boolean
  /** Files of 48 or 80 bytes; the first one counts. */
  readonly ssl_session_ticket_key?: readonly string[]
  /** `5m` where absent. */
  readonly ssl_session_timeout?: string
  /** Authorities whose certificates clients may show; clients are told their names. */
  readonly ssl_client_certificate?: string
  /** Further authorities, that clients are not told of. */
  readonly ssl_trusted_certificate?: string
  readonly ssl_verify_client?: VerifyClient
  /** `1` where absent. */
  readonly ssl_verify_depth?: number
  readonly ssl_crl?: string
  /** Refuses handshakes that name this server, or no server; no certificate is needed then. */
  readonly ssl_reject_handshake?: boolean
}

/** `optional_no_ca` asks for a certificate, whoever signed it. */
export type VerifyClient = boolean | 'optional' | 'optional_no_ca'

/** `off` says that sessions are not taken up again, `none` only does not keep them. */
export type SessionCache =
  | 'off'
  | 'none'
  | {
      /** Sessions in the memory of each thread; the number of them, or `true` for OpenSSL's own. */
      readonly builtin?: true | number
      /** Sessions that all threads share. */
      readonly shared?: { readonly name: string; readonly size: string }
    }

/** TLS towards peers, without the prefix of its directives. */
export interface TlsPeer {
  /** `true` where absent. */
  readonly session_reuse?: boolean
  /** Never empty; both where absent. */
  readonly protocols?: readonly TlsProtocol[]
  /** `DEFAULT` where absent. */
  readonly ciphers?: string
  /** Name that is verified and, with `server_name`, sent. May have variables; the host of `proxy_pass` where absent. */
  readonly name?: string
  /** Whether the name is sent (SNI); `false` where absent. */
  readonly server_name?: boolean
  /** `false` where absent. */
  readonly verify?: boolean
  /** `1` where absent. */
  readonly verify_depth?: number
  readonly trusted_certificate?: string
  readonly crl?: string
  /** Stands together with `certificate_key`, once both have been inherited. */
  readonly certificate?: string
  readonly certificate_key?: string
  readonly password_file?: string
}

/** What the keys of a `TlsPeer` begin with in the model. */
export type TlsPeerPrefix = 'proxy_ssl_' | 'grpc_ssl_'

/**
 * TLS towards peers under the names of its directives: `proxy_ssl_verify` and so on in `http`, `server` and
 * `location`, and in `stream` and its `server`; `grpc_ssl_verify` and so on beside the former in `http`.
 */
export type TlsPeerSettings<P extends TlsPeerPrefix = 'proxy_ssl_'> = {
  readonly [K in keyof TlsPeer as `${P}${K}`]: TlsPeer[K]
}

/** What of HTTP/2 may stand in `http` and `server`. */
export interface Http2Settings {
  /** HTTP/2 towards clients, by ALPN and by prior knowledge; `false` where absent. */
  readonly http2?: boolean
  /** `128` where absent. */
  readonly http2_max_concurrent_streams?: number
}

/** What of gRPC may stand in `http`, `server` and `location`, and is inherited inwards key by key. */
export interface GrpcSettings extends TlsPeerSettings<'grpc_ssl_'> {
  readonly grpc_set_header?: readonly { readonly name: string; readonly value: string }[]
  readonly grpc_hide_header?: readonly string[]
  readonly grpc_pass_header?: readonly string[]
  readonly grpc_connect_timeout?: string
  readonly grpc_send_timeout?: string
  readonly grpc_read_timeout?: string
  readonly grpc_buffer_size?: string
  readonly grpc_intercept_errors?: boolean
  /** With `off` among them the others mean nothing. */
  readonly grpc_next_upstream?: readonly GrpcNextUpstreamWord[]
  readonly grpc_connection_drop?: boolean | string
  readonly grpc_next_upstream_tries?: number
  readonly grpc_next_upstream_timeout?: string
  readonly grpc_next_upstream_budget?: 'off' | RetryBudget
  readonly grpc_next_upstream_backoff?: 'off' | { readonly base: string; readonly max: string }
}

/** What `grpc_next_upstream` takes; the last ones are statuses of gRPC. */
export const grpcNextUpstreamWords = [
  ...retryKinds,
  // The object has these keys and no others.
  ...(Object.keys(grpcRetryStatuses) as GrpcRetryWord[]),
  'non_idempotent',
  'off',
] as const
export type GrpcNextUpstreamWord = (typeof grpcNextUpstreamWords)[number]

/** What may stand in `stream` and its `server` on top of both sides' TLS. */
export interface StreamTlsSettings extends TlsServerSettings, TlsPeerSettings {
  /** `60s` where absent. */
  readonly ssl_handshake_timeout?: string
  /** Protocols of ALPN that clients may choose from, the first one liked best. */
  readonly ssl_alpn?: readonly string[]
  /** Speaks TLS with peers; `false` where absent. */
  readonly proxy_ssl?: boolean
  /** Reads what a client asks of TLS, without taking part in it, before a peer is chosen. */
  readonly ssl_preread?: boolean
  /** How long that may take; `30s` where absent. */
  readonly preread_timeout?: string
  /** How much of it is read; `16k` where absent. */
  readonly preread_buffer_size?: string
}
