import { isIPv4, isIPv6 } from 'node:net'
import type { Address } from '../../feedback/peer.ts'
import { Fault } from './fault.ts'

/**
 * Where a `server` line points. A host that is no IP literal is returned as the name that it is.
 * @param defaultPort the port where the text has none
 * @throws Fault with nginx's text
 */
export function serverAddress(text: string, defaultPort = 80): Address {
  if (/^unix:/i.test(text)) return unixAddress(text.slice(5), text)
  const scheme = /^[a-z]+:\/\//i.exec(text)
  if (scheme) throw new Fault(`invalid port in upstream "${text}", it is written without "${scheme[0]}"`)
  const { host, port } = hostAndPort(text, 'upstream')
  if (host === '') throw new Fault(`no host in upstream "${text}"`)
  if (port === 0) throw new Fault(`invalid port in upstream "${text}"`)
  return { kind: 'tcp', host, port: port ?? defaultPort }
}

/** The port of a `server` line as written; undefined where it has none, and for a Unix socket. */
export function writtenPort(text: string): number | undefined {
  return /^unix:/i.test(text) ? undefined : hostAndPort(text, 'upstream').port
}

/** Where `proxy_pass` in `stream` points. */
export type StreamTarget =
  | { readonly kind: 'unix'; readonly path: string }
  /** Lower case, IPv6 without its brackets. Without a port only a group can be meant. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number | undefined }

/**
 * Takes the argument of `proxy_pass` in `stream` apart: of the directive, or of its text once variables are filled in.
 * @throws Fault with nginx's text
 */
export function streamTarget(text: string): StreamTarget {
  if (/^https?:\/\//i.test(text))
    throw new Fault(`invalid upstream "${text}", in "stream" it is NAME or HOST:PORT`)
  const address = serverAddress(text)
  if (address.kind === 'unix') return address
  return { kind: 'tcp', host: address.host.toLowerCase(), port: writtenPort(text) }
}

/**
 * Where `listen` or `admin` opens a socket. The host `*` is every IPv4 address.
 * @param text `80`, `*:80`, `127.0.0.1`, `localhost:80`, `[::]:80` or `unix:/path`
 * @param whole what messages repeat, where the text is a part of it
 * @throws Fault with nginx's text
 */
export function listenAddress(text: string, directive = 'listen', whole = text): Address {
  const of = `"${whole}" of the "${directive}" directive`
  if (/^unix:/i.test(text)) {
    if (text.length === 5) throw new Fault(`no path in the unix domain socket in ${of}`)
    return { kind: 'unix', path: text.slice(5) }
  }
  if (/^\d+$/.test(text)) {
    const port = portNumber(text)
    if (port === undefined || port === 0) throw new Fault(`invalid port in ${of}`)
    return { kind: 'tcp', host: '*', port }
  }
  const parts = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/.exec(text)
  if (parts === null) throw new Fault(`invalid host in ${of}`)
  const host = bare(parts[1]!)
  if (host === '') throw new Fault(`no host in ${of}`)
  if (host !== '*' && !isHost(parts[1]!)) throw new Fault(`invalid host in ${of}`)
  const port = parts[2] === undefined ? 80 : portNumber(parts[2])
  if (port === undefined || port === 0) throw new Fault(`invalid port in ${of}`)
  return { kind: 'tcp', host, port }
}

/** The canonical text of an address: `*:80`, `127.0.0.1:80`, `[::1]:80` or `unix:/path`. */
export function formatAddress(address: Address): string {
  if (address.kind === 'unix') return `unix:${address.path}`
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}

/** What `proxy_pass` says, taken apart. */
export interface ProxyAddress {
  /** Host with its port as written, or `unix:/path`: `$proxy_host`, and the name of a group without a port. */
  readonly authority: string
  /** The host alone: lower case, IPv6 without its brackets; the path for a Unix socket. */
  readonly host: string
  readonly unix: boolean
  /** Undefined when not written, which for a peer means 80, or 443 with TLS. */
  readonly port: number | undefined
  /** Whether TLS is spoken there: `https`, `grpcs`. */
  readonly secure: boolean
  /** From the first `/` or `?` on; undefined when there is none. */
  readonly uri: string | undefined
}

/**
 * The name of the group that is meant: a declared one's, or of a host the address with the port where that is not the
 * usual one.
 * @param declared names of groups, lower case
 */
export function groupMeant(
  { authority, secure, unix, port }: ProxyAddress,
  declared: ReadonlySet<string>,
): string {
  const usual = !secure || unix || port !== undefined || declared.has(authority.toLowerCase())
  return usual ? authority : `${authority}:443`
}

/** Names of the groups that are declared, lower case. */
export function declaredGroups({ upstreams = {} }: { readonly upstreams?: object }): ReadonlySet<string> {
  return new Set(Object.keys(upstreams).map((name) => name.toLowerCase()))
}

/** Whether a text has a variable in it. */
export function hasVariables(text: string): boolean {
  return /\$[A-Za-z0-9_{]/.test(text)
}

/**
 * Takes the argument of `proxy_pass` apart: of the directive, or of its text once variables are filled in.
 * @throws Fault with nginx's text
 */
export function proxyAddress(text: string): ProxyAddress {
  const scheme = /^http(s?):\/\//i.exec(text)
  if (scheme === null) throw new Fault(`invalid URL prefix in "${text}", it is "http://" or "https://"`)
  const secure = scheme[1] !== ''
  const rest = text.slice(scheme[0].length)
  if (/^unix:/i.test(rest)) {
    const end = rest.indexOf(':', 5)
    const path = rest.slice(5, end < 0 ? undefined : end)
    if (path === '') throw new Fault(`no path in the unix domain socket in upstream "${rest}"`)
    const uri = end < 0 ? undefined : rest.slice(end + 1)
    return { ...unixHost(path), secure, uri: uri || undefined }
  }
  const end = rest.search(/[/?]/)
  const uri = end < 0 ? undefined : rest.slice(end)
  return { ...tcpHost(end < 0 ? rest : rest.slice(0, end), rest), secure, uri }
}

/**
 * The same of `grpc_pass`: `grpc://`, `grpcs://` or nothing, and an address without a path.
 * @throws Fault with nginx's text
 */
export function grpcAddress(text: string): ProxyAddress {
  const scheme = /^grpc(s?):\/\//i.exec(text)
  const secure = scheme !== null && scheme[1] !== ''
  if (scheme === null && /^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    throw new Fault(`invalid URL prefix in "${text}", it is "grpc://" or "grpcs://"`)
  }
  const rest = text.slice(scheme?.[0].length ?? 0)
  if (/^unix:/i.test(rest)) {
    const path = rest.slice(5)
    if (path === '') throw new Fault(`no path in the unix domain socket in upstream "${rest}"`)
    return { ...unixHost(path), secure, uri: undefined }
  }
  if (/[/?]/.test(rest)) throw new Fault(`invalid host in upstream "${rest}"`)
  return { ...tcpHost(rest, rest), secure, uri: undefined }
}

/** The port, written or not. */
export function passPort({ port, secure }: Pick<ProxyAddress, 'port' | 'secure'>): number {
  return port ?? (secure ? 443 : 80)
}

type PassHost = Omit<ProxyAddress, 'secure' | 'uri'>

function unixHost(path: string): PassHost {
  return { authority: `unix:${path}`, host: path, unix: true, port: undefined }
}

/** @param whole what a message repeats where there is no host */
function tcpHost(authority: string, whole: string): PassHost {
  const { host, port } = hostAndPort(authority, 'upstream')
  if (host === '') throw new Fault(`no host in upstream "${whole}"`)
  if (port === 0) throw new Fault(`invalid port in upstream "${authority}"`)
  return { authority, host: host.toLowerCase(), unix: false, port }
}

/** How a location is chosen. */
export interface LocationKey {
  readonly kind: 'prefix' | 'exact' | 'prefix-only' | 'regex' | 'regex-any-case' | 'named'
  /** The path, the regular expression, or the name with its `@`. */
  readonly text: string
}

const locationKinds = [
  ['= ', 'exact'],
  ['^~ ', 'prefix-only'],
  ['~* ', 'regex-any-case'],
  ['~ ', 'regex'],
  ['@', 'named'],
] as const

/** Takes a key of `locations` apart: `= /x`, `^~ /x`, `~ re`, `~* re`, `@name` or `/x`. */
export function locationKey(key: string): LocationKey {
  const [mark, kind] = locationKinds.find(([mark]) => key.startsWith(mark)) ?? ['', 'prefix' as const]
  return { kind, text: kind === 'named' ? key : key.slice(mark.length) }
}

/**
 * The canonical key of a location from nginx's words.
 * @param words one or two: `/x`, `=/x`, or `=` and `/x`
 * @throws Fault with nginx's text
 */
export function formatLocation(words: readonly string[]): string {
  const [first = '', second] = words
  if (second !== undefined) {
    if (!['=', '^~', '~', '~*'].includes(first)) throw new Fault(`invalid location modifier "${first}"`)
    return `${first} ${second}`
  }
  const [, mark = '', text = ''] = /^(=|\^~|~\*|~)? ?(.*)$/s.exec(first) ?? []
  return mark === '' ? first : `${mark} ${text}`
}

function hostAndPort(text: string, what: string): { host: string; port: number | undefined } {
  const parts = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/.exec(text)
  if (parts === null) throw new Fault(`invalid host in ${what} "${text}"`)
  if (parts[1] !== '' && !isHost(parts[1]!)) throw new Fault(`invalid host in ${what} "${text}"`)
  const port = parts[2] === undefined ? undefined : portNumber(parts[2])
  if (parts[2] !== undefined && port === undefined) throw new Fault(`invalid port in ${what} "${text}"`)
  return { host: bare(parts[1]!), port }
}

function isHost(text: string): boolean {
  if (text.startsWith('[')) return isIPv6(bare(text))
  // Underscores stand in names of groups and of containers.
  return isIPv4(text) || /^[A-Za-z0-9._~-]+$/.test(text)
}

function bare(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host
}

/** @returns undefined for what is none */
export function portNumber(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined
}

function unixAddress(path: string, text: string): Address {
  if (path === '') throw new Fault(`no path in the unix domain socket in upstream "${text}"`)
  return { kind: 'unix', path }
}
