import type { AccessLogLine, LogFormat, MapBlock, ProbeLine, RetryBudget } from './model.ts'
import type { StreamTlsSettings } from './tls-model.ts'
import type { Resolving, UpstreamBlock } from './upstream-model.ts'

/**
 * The model of `stream`: TCP and UDP sessions. Groups, maps and log formats are those of `http`, with what has no
 * meaning here left out.
 */
export interface StreamBlock extends StreamSettings {
  /** By name, in file order; `keepalive*`, `queue`, `ip_hash` and `sticky cookie` never stand in them. */
  readonly upstreams?: Readonly<Record<string, UpstreamBlock>>
  readonly servers?: readonly StreamServerBlock[]
  /** By variable, with its `$`. */
  readonly maps?: Readonly<Record<string, MapBlock>>
  readonly log_format?: readonly LogFormat[]
  /** For groups without their own; 0 to 99. */
  readonly response_time_factor?: number
}

/** What may stand in `stream` and `server`, and is inherited inwards key by key. */
export interface StreamSettings extends StreamTlsSettings, Resolving {
  readonly proxy_connect_timeout?: string
  /** Longest pause in both directions together; `10m` where absent. */
  readonly proxy_timeout?: string
  /** `true` where absent: another peer is asked where a connection cannot be made. */
  readonly proxy_next_upstream?: boolean
  readonly proxy_next_upstream_tries?: number
  readonly proxy_next_upstream_timeout?: string
  readonly proxy_next_upstream_budget?: 'off' | RetryBudget
  /** A time, or `true` for none. */
  readonly proxy_connection_drop?: boolean | string
  readonly proxy_half_close?: boolean
  /** Datagrams that a UDP peer answers one datagram with; absent: not known. */
  readonly proxy_responses?: number
  /** Datagrams of a client after which a new UDP session begins; 0 or absent: never. */
  readonly proxy_requests?: number
  readonly proxy_buffer_size?: string
  /** Writes a PROXY header to peers; the version is 1 where `true`. */
  readonly proxy_protocol?: boolean | 'v1' | 'v2'
  /** How long a client may take to send its PROXY header; `30s` where absent. */
  readonly proxy_protocol_timeout?: string
  readonly access_log?: 'off' | readonly AccessLogLine[]
  /** Addresses and networks whose PROXY header is taken for the client's address. */
  readonly set_real_ip_from?: readonly string[]
}

export interface StreamServerBlock extends StreamSettings {
  /** At least one. */
  readonly listen?: readonly StreamListen[]
  /** A group, or `host:port`, or `unix:/path`; may have variables. Either this or `return`. */
  readonly proxy_pass?: string
  /** Text that is sent before the session ends. May have variables. */
  readonly return?: string
  readonly status_zone?: string
  readonly upstream_probe?: readonly StreamProbeLine[]
  /** `timeout` of its probes that have none of their own. */
  readonly upstream_probe_timeout?: string
}

export interface StreamListen {
  /** `127.0.0.1:53`, `*:53`, `[::]:53` or `unix:/path`: always with its port; see address.ts. */
  readonly address: string
  readonly udp?: true
  /** Speaks TLS; never together with `udp`. */
  readonly ssl?: true
  /** Expects a PROXY header, version 1 or 2. */
  readonly proxy_protocol?: true
  /** Length of the accept queue; 511 where absent. */
  readonly backlog?: number
}

/** A probe of a group in `stream`; `type`, where absent, is `tcp`, or `udp` where that flag stands. */
export interface StreamProbeLine extends Omit<ProbeLine, 'uri' | 'method' | 'max_body'> {
  readonly udp?: true
  /** What is sent: `data:TEXT`, or the path of a file. */
  readonly send?: string
  /** How much of an answer is kept; `256k` where absent, `0` waits for none. */
  readonly max_response?: string
}
