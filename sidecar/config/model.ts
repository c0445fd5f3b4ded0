import { retryKinds } from '../../feedback/policy.ts'
import type { FleetLine } from './fleet-model.ts'
import type { RewriteStep } from './rewrite-model.ts'
import type { StreamBlock } from './stream-model.ts'
import type { GrpcSettings, Http2Settings, TlsPeerSettings, TlsServerSettings } from './tls-model.ts'
import type { Resolving, UpstreamBlock } from './upstream-model.ts'

/**
 * The canonical model: what both syntaxes yield. Plain data, so it can be printed, posted to a thread, compared
 * and shown. Keys are nginx's words at nginx's places; an absent key was not configured, and no default is filled
 * in. A list directive is one key, so a level that has it replaces the outer level's list as a whole.
 *
 * Texts are Unicode; where they meet bytes of requests and responses, their UTF-8 bytes are meant.
 *
 * Times are texts like `10s` or `1500ms`, sizes like `64k` or `1m` (see units.ts); flags are booleans. Records are
 * keyed by outside input: go through their entries, or ask `Object.hasOwn` first.
 */

export interface Model {
  readonly http?: HttpBlock
  readonly stream?: StreamBlock
  /** Where the admin server listens; `off` for none. */
  readonly admin?: 'off' | readonly AdminListen[]
  /** Further host names that admin requests may carry. */
  readonly admin_host?: readonly string[]
  readonly admin_token_file?: string
  readonly config_watch?: boolean
  /** `worker_shutdown_timeout` is another name for it. */
  readonly drain_timeout?: string
  readonly drain_delay?: string
  readonly fleet?: FleetLine
  readonly error_log?: readonly ErrorLog[]
  readonly pid?: string
  readonly worker_processes?: number | 'auto'
}

export interface AdminListen {
  /** `host:port`, `[v6]:port` or `unix:/path`; see address.ts. */
  readonly address: string
  readonly readonly?: true
}

export const logLevels = ['debug', 'info', 'notice', 'warn', 'error', 'crit', 'alert', 'emerg'] as const
export type LogLevel = (typeof logLevels)[number]

export interface ErrorLog {
  /** A file relative to the prefix, or `stderr`. */
  readonly path: string
  /** `error` where absent. */
  readonly level?: LogLevel
}

/** What may stand in `http`, `server` and `location`, and is inherited inwards key by key. */
export interface Settings extends TlsPeerSettings, GrpcSettings, Resolving {
  readonly client_max_body_size?: string
  readonly client_body_timeout?: string
  readonly send_timeout?: string
  readonly keepalive_timeout?: { readonly timeout: string; readonly header_timeout?: string }
  readonly keepalive_requests?: number
  readonly keepalive_time?: string
  readonly reset_timedout_connection?: boolean
  /** `build` shows the version and the build's name. */
  readonly server_tokens?: boolean | 'build'
  readonly absolute_redirect?: boolean
  readonly port_in_redirect?: boolean
  readonly default_type?: string

  readonly proxy_set_header?: readonly { readonly name: string; readonly value: string }[]
  readonly proxy_hide_header?: readonly string[]
  readonly proxy_pass_header?: readonly string[]
  readonly proxy_http_version?: '1.0' | '1.1' | '2'
  readonly proxy_connect_timeout?: string
  readonly proxy_send_timeout?: string
  readonly proxy_read_timeout?: string
  /** Words of `nextUpstreamWords`; with `off` among them the others mean nothing. */
  readonly proxy_next_upstream?: readonly NextUpstreamWord[]
  readonly proxy_next_upstream_tries?: number
  readonly proxy_next_upstream_timeout?: string
  readonly proxy_next_upstream_budget?: 'off' | RetryBudget
  readonly proxy_next_upstream_backoff?: 'off' | { readonly base: string; readonly max: string }
  readonly proxy_buffering?: boolean
  readonly proxy_request_buffering?: boolean
  readonly proxy_buffer_size?: string
  readonly proxy_buffers?: { readonly number: number; readonly size: string }
  readonly proxy_busy_buffers_size?: string
  readonly proxy_replay_buffer?: string
  readonly proxy_intercept_errors?: boolean
  readonly proxy_redirect?: 'off' | readonly ('default' | ProxyRedirect)[]
  /** May have variables. */
  readonly proxy_method?: string
  /** May have variables. */
  readonly proxy_set_body?: string
  readonly proxy_pass_request_headers?: boolean
  readonly proxy_pass_request_body?: boolean
  readonly proxy_ignore_client_abort?: boolean
  /** A time, or `true` for none. */
  readonly proxy_connection_drop?: boolean | string

  readonly add_header?: readonly AddHeader[]
  readonly error_page?: readonly ErrorPageLine[]
  readonly access_log?: 'off' | readonly AccessLogLine[]
  /** Addresses and networks (`10.0.0.0/8`, `unix:`) whose word on the client's address is taken. */
  readonly set_real_ip_from?: readonly string[]
  /** `X-Real-IP`, `X-Forwarded-For` or another field's name, or `proxy_protocol` for the PROXY header. */
  readonly real_ip_header?: string
  readonly real_ip_recursive?: boolean
  /** Name of the response header with the attempts; `off` for none. */
  readonly explain_header?: string
  readonly load_report?: 'pass' | 'strip'
}

/** What `proxy_next_upstream` takes. `updating` is known of nginx and has no meaning here. */
export const nextUpstreamWords = [...retryKinds, 'non_idempotent', 'updating', 'off'] as const
export type NextUpstreamWord = (typeof nextUpstreamWords)[number]

export interface RetryBudget {
  /** Retries allowed, in percent of the group's requests. */
  readonly percent: number
  /** Retries a second that are allowed anyway; 10 where absent. */
  readonly min?: number
  /** Where absent `10s`. */
  readonly window?: string
}

export interface ProxyRedirect {
  /** A text, or a regular expression after `~` or `~*`. May have variables. */
  readonly redirect: string
  readonly replacement: string
}

export interface AddHeader {
  readonly name: string
  readonly value: string
  readonly always?: true
}

export interface ErrorPageLine {
  /** 300 to 599. */
  readonly codes: readonly number[]
  /** `=200` is 200; `=` alone is 0: whatever the page itself answers; absent: the status of the failure. */
  readonly response?: number
  /** A URI, a `@name` or an absolute URL. May have variables. */
  readonly uri: string
}

export interface AccessLogLine {
  /** A file relative to the prefix, or `/dev/stdout`. */
  readonly path: string
  /** Name of a `log_format`; `json` where absent. */
  readonly format?: string
  /** Only requests for which this text is neither empty nor `0`. */
  readonly if?: string
}

/** What may stand in `http` and `server` alone. */
export interface ServerSettings extends TlsServerSettings, Http2Settings {
  readonly client_header_timeout?: string
  readonly client_header_buffer_size?: string
  readonly large_client_header_buffers?: { readonly number: number; readonly size: string }
  readonly underscores_in_headers?: boolean
  readonly ignore_invalid_headers?: boolean
  readonly merge_slashes?: boolean
}

export interface HttpBlock extends Settings, ServerSettings {
  /** By name, in file order. Names differ in more than case. */
  readonly upstreams?: Readonly<Record<string, UpstreamBlock>>
  readonly servers?: readonly ServerBlock[]
  /** By variable, with its `$`. */
  readonly maps?: Readonly<Record<string, MapBlock>>
  readonly log_format?: readonly LogFormat[]
  /** For groups without their own; 0 to 99. */
  readonly response_time_factor?: number
  readonly prometheus_templates?: Readonly<Record<string, TemplateBlock>>
}

export interface LogFormat {
  readonly name: string
  readonly escape?: 'default' | 'json' | 'none'
  readonly format: string
}

export interface MapBlock {
  /** Text with variables that is looked up. */
  readonly source: string
  /** Empty where absent. May have variables. */
  readonly default?: string
  /** Keys may be `*.example.com`, `www.example.*` and `.example.com`. */
  readonly hostnames?: true
  /** Evaluated anew at each use. */
  readonly volatile?: true
  /**
   * Keys as nginx has them: `~regex` and `~*regex` in file order, all others literal and whatever their case. A
   * literal that begins with `~` or a backslash has a backslash before it. Values may have variables.
   */
  readonly values?: Readonly<Record<string, string>>
}

export interface TemplateBlock {
  readonly metrics?: readonly TemplateMetric[]
}

export interface TemplateMetric {
  /** Metric name and labels, with `$1` for captures. */
  readonly metric: string
  readonly value: string
  /** Path below `/status`, or `~regex`. */
  readonly path?: string
  readonly type?: 'counter' | 'gauge' | 'histogram'
  readonly help?: string
}

export interface ServerBlock extends Settings, ServerSettings {
  /** `*:80` where absent. */
  readonly listen?: readonly Listen[]
  /** Names, `*.example.com`, `www.example.*`, `.example.com`, `~regex`, or an empty text. */
  readonly server_name?: readonly string[]
  readonly status_zone?: string
  readonly rewrites?: readonly RewriteStep[]
  /** By nginx's words, in file order; see `LocationBlock`. */
  readonly locations?: Readonly<Record<string, LocationBlock>>
}

export interface Listen {
  /** `*:80`, `127.0.0.1:80`, `[::]:80` or `unix:/path`: always with its port; see address.ts. */
  readonly address: string
  readonly default_server?: true
  /** Speaks TLS. Where any line of an address has it, all have; as the two below. */
  readonly ssl?: true
  /** HTTP/2 for every server of the address, whatever their `http2` says. */
  readonly http2?: true
  /** Expects a PROXY header, version 1 or 2, on each connection. */
  readonly proxy_protocol?: true
  /** Length of the accept queue; 511 where absent. */
  readonly backlog?: number
}

/**
 * The key is `/prefix`, `= /exact`, `^~ /prefix`, `~ regex`, `~* regex` or `@name`: one space after the modifier.
 * `locationKey` in address.ts takes it apart.
 */
export interface LocationBlock extends Settings {
  /** Nobody comes to it from outside. */
  readonly internal?: true
  /** As written; see `proxyAddress` in address.ts. A host that is no group stands for a group of its own. */
  readonly proxy_pass?: string
  /** `grpc://` or `grpcs://` and an address, or an address alone; never together with `proxy_pass`. */
  readonly grpc_pass?: string
  /** Path in the status tree, e.g. `/status/`. */
  readonly api?: string
  /** Name of a template; `all` is built in. */
  readonly prometheus?: string
  readonly status_zone?: string
  readonly upstream_probe?: readonly ProbeLine[]
  readonly rewrites?: readonly RewriteStep[]
  readonly locations?: Readonly<Record<string, LocationBlock>>
}

/** A probe of the group that the location's `proxy_pass` or `grpc_pass` names. */
export interface ProbeLine {
  /** Unique among the probes of a group. */
  readonly name: string
  /** Name of a kind in probes/kinds.ts; the first one where absent. */
  readonly type?: string
  /** Appended to the address of `proxy_pass`; `/` where absent. */
  readonly uri?: string
  /** In place of each peer's own. */
  readonly port?: number
  readonly method?: string
  readonly interval?: string
  readonly timeout?: string
  readonly fails?: number
  readonly passes?: number
  /** May have variables. */
  readonly test?: string
  readonly essential?: true
  readonly persistent?: true
  readonly mode?: 'always' | 'idle' | 'onfail'
  readonly scope?: 'fleet' | 'instance'
  /** Of type `http`. */
  readonly max_body?: string
  /** Of type `http`; what the location speaks where absent. */
  readonly http_version?: '1.1' | '2'
  /** Of type `grpc`. */
  readonly service?: string
  /** Of type `agent`. */
  readonly send?: string
  /** Of type `backlog`. */
  readonly limit?: number
}
