import type { Call } from '../../feedback/call.ts'
import type { ServerZone } from '../../feedback/server-zone.ts'
import type * as model from '../config/model.ts'
import { sizeBytes, timeMs } from '../config/units.ts'
import { realIp } from '../proxy/real-ip.ts'
import { compileRedirect, type RedirectRule } from '../proxy/redirect.ts'
import type { AccessLog, ErrorPage, PeerTls, RetryPolicy, Settings } from '../proxy/route.ts'
import { defaultSettings, hiddenHeaders } from '../proxy/settings.ts'
import { bytes, patternOf, type Texts } from './texts.ts'
import { buildPeerEngine, PeerLevels } from './tls-peer.ts'
import type { TlsSource } from './tls-server.ts'

/** An access log to open. */
export interface AccessLogSpec {
  /** As written; `/dev/stdout` where nothing is. */
  readonly path: string
  /** Name of a `log_format`. */
  readonly format: string
}

/** Finds the value of a key: that of the innermost level that has it. */
type Find = <K extends keyof model.Settings>(key: K) => model.Settings[K] | undefined

/** How the peers of a location are spoken to. */
export interface PeerWay {
  /** Whether TLS may have to be. */
  readonly secure: boolean
  /** By `grpc_pass`: what is said of peers is then `grpc_…` and not `proxy_…`. */
  readonly grpc: boolean
}

/** What `proxy_redirect default` stands for at a level; undefined: nothing, since it has no fixed proxy_pass. */
export interface DefaultRedirect {
  readonly from: string
  readonly to: string
}

/** Compiles what levels of the configuration say into the settings of a location. */
export class SettingsBuilder {
  readonly #texts: Texts
  readonly #open: (spec: AccessLogSpec) => AccessLog
  readonly #version: string
  readonly #files: TlsSource | undefined
  /** Levels that share a line share its log. */
  readonly #logs = new Map<unknown, AccessLog>()
  readonly #realIps = new Map<string, (call: Call) => void>()

  /** @param files certificates and keys; undefined where nothing speaks TLS */
  constructor(
    texts: Texts,
    open: (spec: AccessLogSpec) => AccessLog,
    version: string,
    files: TlsSource | undefined,
  ) {
    this.#files = files
    this.#texts = texts
    this.#open = open
    this.#version = version
  }

  /**
   * @param levels from the outermost to the innermost; a key that a level has hides that of the outer ones as a whole
   * @param zones what the location is counted in
   * @param way how its peers are spoken to
   */
  build(
    levels: readonly model.Settings[],
    zones: readonly ServerZone[],
    defaultRedirect: DefaultRedirect | undefined,
    { secure, grpc }: PeerWay = { secure: false, grpc: false },
  ): Settings {
    const find: Find = (key) => levels.findLast((level) => level[key] !== undefined)?.[key]
    const peer = grpc ? twins(find) : find
    const http2Peer = grpc || peer('proxy_http_version') === '2'
    const { compile } = this.#texts
    const redirectStyle = {
      absolute: find('absolute_redirect') ?? true,
      port: find('port_in_redirect') ?? true,
    }
    const d = defaultSettings
    const setHeaders = (peer('proxy_set_header') ?? []).map(({ name, value }) => ({
      name,
      lower: name.toLowerCase(),
      value: compile(value),
      written: value,
    }))
    const buffers = peer('proxy_buffers')
    const method = peer('proxy_method')
    const setBody = peer('proxy_set_body')
    const explain = find('explain_header')
    return {
      clientMaxBodySize: size(find('client_max_body_size'), d.clientMaxBodySize),
      clientBodyTimeout: ms(find('client_body_timeout'), d.clientBodyTimeout),
      sendTimeout: ms(find('send_timeout'), d.sendTimeout),
      keepaliveTimeout: ms(find('keepalive_timeout')?.timeout, d.keepaliveTimeout),
      keepaliveRequests: find('keepalive_requests') ?? d.keepaliveRequests,
      connectTimeout: ms(peer('proxy_connect_timeout'), d.connectTimeout),
      peerTls: secure ? this.#peerTls(levels, grpc ? 'grpc_ssl_' : 'proxy_ssl_', http2Peer) : undefined,
      http2Peer,
      grpc,
      proxySendTimeout: ms(peer('proxy_send_timeout'), d.proxySendTimeout),
      readTimeout: ms(peer('proxy_read_timeout'), d.readTimeout),
      retry: retryPolicy(peer),
      // Messages of a call go on as they come, both ways.
      buffering: !grpc && (find('proxy_buffering') ?? d.buffering),
      bufferSize: size(peer('proxy_buffer_size'), d.bufferSize),
      buffers: buffers ? buffers.number * size(buffers.size, 0) : d.buffers,
      requestBuffering: !grpc && (find('proxy_request_buffering') ?? d.requestBuffering),
      replayBuffer: size(peer('proxy_replay_buffer'), d.replayBuffer),
      method: method === undefined ? undefined : compile(method),
      setBody: setBody === undefined ? undefined : compile(setBody),
      passRequestHeaders: peer('proxy_pass_request_headers') ?? d.passRequestHeaders,
      passRequestBody: peer('proxy_pass_request_body') ?? d.passRequestBody,
      ignoreClientAbort: peer('proxy_ignore_client_abort') ?? d.ignoreClientAbort,
      dropAfter: dropAfter(peer('proxy_connection_drop')),
      interceptErrors: peer('proxy_intercept_errors') ?? d.interceptErrors,
      setHeaders,
      setHeaderNames: new Set(setHeaders.map(({ lower }) => lower)),
      closePeer: peer('proxy_http_version') === '1.0',
      hideHeaders: hidden(peer),
      redirect: compileRedirect(
        this.#redirects(peer('proxy_redirect') ?? ['default'], defaultRedirect),
        redirectStyle,
      ),
      addHeaders: (find('add_header') ?? []).map(({ name, value, always }) => ({
        name,
        lower: name.toLowerCase(),
        value: compile(value),
        always: always === true,
      })),
      errorPages: this.#errorPages(find('error_page') ?? []),
      accessLogs: this.#accessLogs(find('access_log') ?? defaultAccessLog),
      statusZones: zones,
      explainHeader: explain === 'off' ? undefined : explain,
      passLoadReport: find('load_report') === 'pass',
      defaultType: bytes(find('default_type') ?? d.defaultType),
      serverText: this.#serverText(find('server_tokens')),
      redirectStyle,
      realIp: this.#realIp(find),
    }
  }

  #peerTls(
    levels: readonly model.Settings[],
    prefix: 'proxy_ssl_' | 'grpc_ssl_',
    http2: boolean,
  ): PeerTls | undefined {
    if (this.#files === undefined) return undefined
    const tls = new PeerLevels(prefix, levels)
    const name = tls.find('name')
    return {
      engine: buildPeerEngine(tls, http2 ? ['h2'] : [], this.#files),
      name: name === undefined ? undefined : this.#texts.compile(name),
    }
  }

  #redirects(
    lines: 'off' | readonly ('default' | model.ProxyRedirect)[],
    defaultRedirect: DefaultRedirect | undefined,
  ): RedirectRule[] {
    if (lines === 'off') return []
    const { compile } = this.#texts
    return lines.flatMap((line): RedirectRule[] => {
      if (line === 'default') {
        if (!defaultRedirect) return []
        const { from, to } = defaultRedirect
        return [{ kind: 'prefix', from: () => from, to: () => to }]
      }
      const to = compile(line.replacement)
      const pattern = patternOf(line.redirect)
      return pattern
        ? [{ kind: 'regex', matches: this.#texts.matcher(pattern.source, pattern.anyCase), to }]
        : [{ kind: 'prefix', from: compile(line.redirect), to }]
    })
  }

  /** Of two lines for one status the first counts, as in nginx. */
  #errorPages(lines: readonly model.ErrorPageLine[]): ReadonlyMap<number, ErrorPage> {
    const pages = new Map<number, ErrorPage>()
    for (const { codes, response, uri } of lines) {
      const page = { status: response, to: this.#texts.compile(uri) }
      for (const code of codes) if (!pages.has(code)) pages.set(code, page)
    }
    return pages
  }

  #accessLogs(lines: 'off' | readonly model.AccessLogLine[]): AccessLog[] {
    if (lines === 'off') return []
    return lines.map((line) => {
      let log = this.#logs.get(line)
      if (!log) {
        const open = this.#open({ path: line.path, format: line.format ?? 'json' })
        log = line.if === undefined ? open : conditional(open, this.#texts.compile(line.if))
        this.#logs.set(line, log)
      }
      return log
    })
  }

  #serverText(tokens: boolean | 'build' | undefined): string {
    const { serverText } = defaultSettings
    if (tokens === true) return `${serverText}/${this.#version}`
    return tokens === 'build' ? `${serverText}/${this.#version} (${serverText})` : serverText
  }

  /** Levels that say the same get the same function, so that a request need not run it twice. */
  #realIp(find: Find): ((call: Call) => void) | undefined {
    const from = find('set_real_ip_from')
    if (!from) return undefined
    const options = {
      from,
      header: find('real_ip_header') ?? 'X-Real-IP',
      recursive: find('real_ip_recursive') ?? false,
    }
    const key = JSON.stringify(options)
    let take = this.#realIps.get(key)
    if (!take) {
      take = realIp(options)
      this.#realIps.set(key, take)
    }
    return take
  }
}

/** Finds for each `proxy_…` what `grpc_…` says; there is not one for all of them. */
function twins(find: Find): Find {
  // Twins are of one type, but for more words of `grpc_next_upstream`.
  return (key) => find(key.replace(/^proxy_/, 'grpc_') as typeof key)
}

/** Where `access_log` stands nowhere. */
export const defaultAccessLog: readonly model.AccessLogLine[] = [{ path: '/dev/stdout' }]

/** A log of those calls alone for which a text is neither empty nor `0`. */
export function conditional(log: AccessLog, condition: (call: Call) => string): AccessLog {
  return (call) => {
    const text = condition(call)
    if (text !== '' && text !== '0') log(call)
  }
}

function retryPolicy(find: Find): RetryPolicy {
  const { retry: d } = defaultSettings
  const words = find('proxy_next_upstream')
  const kinds = words?.filter((word) => word !== 'non_idempotent' && word !== 'updating')
  const budget = find('proxy_next_upstream_budget')
  const backoff = find('proxy_next_upstream_backoff')
  return {
    on: words === undefined ? d.on : new Set<string>(words.includes('off') ? [] : kinds),
    nonIdempotent: words?.includes('non_idempotent') ?? d.nonIdempotent,
    tries: find('proxy_next_upstream_tries') ?? d.tries,
    timeout: ms(find('proxy_next_upstream_timeout'), d.timeout),
    budget: budgetOf(budget),
    backoff:
      backoff === undefined
        ? d.backoff
        : backoff === 'off'
          ? undefined
          : { base: ms(backoff.base, 0), max: ms(backoff.max, 0) },
  }
}

/** `proxy_next_upstream_budget` in numbers; undefined where there is none. @param line undefined: the default holds */
export function budgetOf(line: 'off' | model.RetryBudget | undefined): RetryPolicy['budget'] {
  const budget = defaultSettings.retry.budget!
  if (line === 'off') return undefined
  if (line === undefined) return budget
  return { ratio: line.percent / 100, min: line.min ?? budget.min, window: ms(line.window, budget.window) }
}

function hidden(find: Find): ReadonlySet<string> {
  const passed = new Set((find('proxy_pass_header') ?? []).map((name) => name.toLowerCase()))
  const names = new Set(hiddenHeaders.filter((name) => !passed.has(name)))
  for (const name of find('proxy_hide_header') ?? []) names.add(name.toLowerCase())
  return names
}

/** How long what is under way may go on after its peer has left, milliseconds; undefined: as long as it takes. */
export function dropAfter(said: boolean | string | undefined): number | undefined {
  if (said === undefined || said === false) return undefined
  return said === true ? 0 : ms(said, 0)
}

/** A timer of Node takes 31 bits of milliseconds (24.8 days): a longer one would fire at once. */
const longestTimer = 2 ** 31 - 1

/** The configuration's texts have been checked; a default stands in for an absent one. */
export function ms(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : Math.min(timeMs(text) ?? otherwise, longestTimer)
}

/** The same of a size. */
export function size(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : (sizeBytes(text) ?? otherwise)
}
