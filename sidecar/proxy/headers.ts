import type { Call } from '../../feedback/call.ts'
import { loadReportFields } from '../../feedback/orca.ts'
import { type SentRequest, tracing } from '../telemetry/tracing.ts'
import { hasToken, isFieldText, plainName, token } from './http1/fields.ts'
import type { Settings } from './route.ts'

/** Fields of the client's request that concern its connection only, or that the proxy sets itself (RFC 9110 7.6.1). */
const notForwarded = new Set([
  'host',
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'expect',
  'upgrade',
  'http2-settings',
  'transfer-encoding',
  'content-length',
])

/** Fields that a message's framing, routing or meaning hangs on: `Connection` cannot name them away. */
const notNameable = new Set(['host', 'content-length', 'transfer-encoding', 'content-type', 'authorization'])

/** Fields of the peer's answer that concern its connection only. */
const notPassedBack = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'te',
])

/** Fields that may not come in a trailer: framing, routing and what a client acts on before the body (RFC 9110 6.5.1). */
const notInTrailers = new Set([
  ...notPassedBack,
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'host',
  'trailer',
  'authorization',
  'set-cookie',
  'cache-control',
  'expect',
  'max-forwards',
  'date',
  'location',
  'retry-after',
  'vary',
  'age',
  'expires',
])

/** Further ones that a request is routed, let in or answered by. */
const notInRequestTrailers = new Set([
  ...notInTrailers,
  ...notForwarded,
  'cookie',
  'forwarded',
  'proxy-authorization',
  'range',
])

/** How the body of a request to a peer is framed. */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly length: number }
  | { readonly kind: 'chunked' }

/** A request head for a peer. */
export interface RequestHead extends SentRequest {
  /** Request line and headers without the final empty line, latin1: an attempt may add lines of its own. */
  readonly text: string
  /** Whether it asks to switch protocols. */
  readonly upgrade: boolean
  /** Whether it tells the peer to close the connection afterwards. */
  readonly close: boolean
}

/** What a request head is made of besides the call. */
export interface HeadParts {
  readonly method: string
  readonly target: string
  readonly framing: BodyFraming
  /** The client asked to switch protocols on this request. */
  readonly upgrade: boolean
}

/** A variable such as `$uri` can hold decoded line breaks: they would end the field and begin another one. */
const lineBreak = /[\r\n\0]/

/**
 * Writes the head of a request to a peer: the client's fields but those of its connection, and what
 * `proxy_set_header` says; a field whose value comes out empty is not sent.
 * @returns undefined when a configured value came out with a line break in it, or as a method that is none
 */
export function requestHead(call: Call, settings: Settings, parts: HeadParts): RequestHead | undefined {
  // What `proxy_method` yields may hold anything that a variable does.
  if (settings.method !== undefined && !token.test(parts.method)) return undefined
  const set = settings.setHeaders
  let host = call.proxyHost
  let connection: string | undefined
  let upgrade: string | undefined
  let own = ''
  for (const { name, lower, value } of set) {
    const text = value(call)
    if (lineBreak.test(text)) return undefined
    if (lower === 'host') host = text
    else if (lower === 'connection') connection = text
    else if (lower === 'upgrade') upgrade = text
    // A peer must be able to trust the framing, whatever the configuration says of it.
    else if (lower === 'content-length' || lower === 'transfer-encoding') continue
    else if (text !== '') own += `${name}: ${text}\r\n`
  }
  const named = listed(call)
  // Whoever sets the context of a trace by hand has it as written, and the client's other fields with it.
  const anew = set.length > 0 && settings.setHeaderNames.has('traceparent') ? undefined : tracing?.fields
  let passed = ''
  // Servers of gRPC take no call without it.
  let te = settings.grpc
  if (settings.passRequestHeaders) {
    const raw = call.rawHeaders
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i]!
      const lower = name.toLowerCase()
      if (lower === 'te') {
        te = te || hasToken(raw[i + 1]!.toLowerCase(), 'trailers')
        continue
      }
      if (notForwarded.has(lower) || settings.setHeaderNames.has(lower) || anew?.has(lower)) continue
      if (named?.has(lower) && !notNameable.has(lower)) continue
      passed += `${name}: ${raw[i + 1]!}\r\n`
    }
  }
  if (upgrade === undefined && parts.upgrade) {
    const asked = call.header('upgrade') ?? ''
    // h2c would let a client speak past this proxy to the peer in a protocol that is not looked at here.
    if (!/\bh2c\b|HTTP\/2|TLS/i.test(asked)) upgrade = asked
  }
  let text = `${parts.method} ${parts.target} HTTP/1.1\r\n`
  if (host !== '') text += `Host: ${host}\r\n`
  const switching =
    parts.upgrade &&
    upgrade !== undefined &&
    upgrade !== '' &&
    (connection === undefined || hasToken(connection.toLowerCase(), 'upgrade'))
  const close =
    settings.closePeer || (connection !== undefined && hasToken(connection.toLowerCase(), 'close'))
  if (switching) text += `Connection: upgrade\r\nUpgrade: ${upgrade}\r\n`
  else if (close) text += 'Connection: close\r\n'
  else if (te) text += 'Connection: TE\r\n'
  else if (connection !== undefined && connection !== '') text += `Connection: ${connection}\r\n`
  if (te && !switching) text += 'TE: trailers\r\n'
  text += own
  if (parts.framing.kind === 'length') text += `Content-Length: ${parts.framing.length}\r\n`
  else if (parts.framing.kind === 'chunked') text += 'Transfer-Encoding: chunked\r\n'
  const { method, target } = parts
  return {
    text: text + passed,
    method,
    target,
    http2: settings.http2Peer,
    own: settings.setHeaderNames,
    upgrade: switching,
    close,
  }
}

/** Lower-case names that the client's `Connection` lists; undefined when it lists none but `close` and the like. */
function listed(call: Call): Set<string> | undefined {
  const value = call.header('connection')
  if (value === undefined) return undefined
  if (value === 'keep-alive' || value === 'close' || value === 'Upgrade') return undefined
  return new Set(
    value
      .toLowerCase()
      .split(',')
      .map((item) => item.trim()),
  )
}

/**
 * Which of the peer's fields go on to the client.
 * @param headers names and values in turn
 * @returns a new list: names and values in turn
 */
export function responseHeaders(headers: readonly string[], settings: Settings): string[] {
  const out: string[] = []
  let named: Set<string> | undefined
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (name.length === 10 && name.toLowerCase() === 'connection') {
      named ??= new Set()
      for (const item of headers[i + 1]!.toLowerCase().split(',')) named.add(item.trim())
    }
  }
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const lower = name.toLowerCase()
    if (notPassedBack.has(lower) || settings.hideHeaders.has(lower)) continue
    if (named?.has(lower) && !notNameable.has(lower)) continue
    // Load reports are for the balancer.
    if (!settings.passLoadReport && loadReportFields.has(lower)) continue
    out.push(name, headers[i + 1]!)
  }
  return out
}

/** Which of the peer's trailer fields go on to the client: names and values in turn. */
export function responseTrailers(trailers: readonly string[], settings: Settings): string[] {
  const out: string[] = []
  for (let i = 0; i < trailers.length; i += 2) {
    const lower = trailers[i]!.toLowerCase()
    if (notInTrailers.has(lower) || settings.hideHeaders.has(lower)) continue
    if (!settings.passLoadReport && loadReportFields.has(lower)) continue
    out.push(trailers[i]!, trailers[i + 1]!)
  }
  return out
}

/**
 * Which of the client's trailer fields go on to a peer: none that its head could not have, or that would change what the
 * head said. Names that are not letters, digits and hyphens alone do not either.
 */
export function requestTrailers(call: Call, settings: Settings, trailers: readonly string[]): string[] {
  const out: string[] = []
  const named = listed(call)
  for (let i = 0; i < trailers.length; i += 2) {
    const lower = trailers[i]!.toLowerCase()
    if (!plainName.test(lower) || notInRequestTrailers.has(lower) || /^(if|x-forwarded)-/.test(lower))
      continue
    if (settings.setHeaderNames.has(lower) || tracing?.fields.has(lower) || named?.has(lower)) continue
    if (isFieldText(trailers[i + 1]!)) out.push(lower, trailers[i + 1]!)
  }
  return out
}

/** Whether the client said that it can take trailers (RFC 9110 section 10.1.4). */
export function wantsTrailers(call: Call): boolean {
  const te = call.header('te')
  return te !== undefined && hasToken(te.toLowerCase(), 'trailers')
}
