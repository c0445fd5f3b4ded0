import { randomBytes } from 'node:crypto'
import type { Call } from '../call.ts'
import { addressBytes } from '../client-address.ts'
import { monotonic } from '../clock.ts'
import { isoTime, localTime, seconds } from './clock.ts'

/** Variables that tell of the request, its client and its response: nginx's names and meanings. */

type Read = (call: Call) => string

const uri: Read = (call) => call.uri
const args: Read = (call) => call.args
const empty: Read = () => ''

/** Draws the 32 digits of `$request_id`; a block of random bytes serves many calls, for each draw is a system call. */
let pool = ''
export function drawRequestId(): string {
  if (pool.length < 32) pool = randomBytes(1024).toString('hex')
  const id = pool.slice(0, 32)
  pool = pool.slice(32)
  return id
}

/** The user of Basic credentials; empty where there are none. */
function user(call: Call): string {
  const text = call.header('authorization')
  if (text === undefined || !/^basic /i.test(text)) return ''
  const plain = Buffer.from(text.slice(6).trim(), 'base64').toString('latin1')
  const colon = plain.indexOf(':')
  return colon < 0 ? '' : plain.slice(0, colon)
}

function forwardedFor(call: Call): string {
  const before = call.header('x-forwarded-for')
  return before === undefined || before === '' ? call.remoteAddr : `${before}, ${call.remoteAddr}`
}

/** What the version was agreed on as; empty for other ones. */
function http2(call: Call): string {
  if (call.httpVersion !== '2.0') return ''
  return call.tls === undefined ? 'h2c' : 'h2'
}

const binary = (call: Call): string => addressBytes(call.remoteAddr)?.toString('latin1') ?? call.remoteAddr

export const requestVariables: ReadonlyMap<string, Read> = new Map<string, Read>([
  // The request line as the client sent it: an error page's GET does not show.
  ['request', (call) => `${call.originalMethod ?? call.method} ${call.target} HTTP/${call.httpVersion}`],
  ['request_method', (call) => call.method],
  ['request_uri', (call) => call.target],
  ['uri', uri],
  ['document_uri', uri],
  ['args', args],
  ['query_string', args],
  ['is_args', (call) => (call.args === '' ? '' : '?')],
  ['host', (call) => call.host],
  ['server_name', (call) => call.serverName],
  ['server_addr', (call) => call.serverAddr],
  ['server_port', (call) => call.serverPort],
  ['server_protocol', (call) => `HTTP/${call.httpVersion}`],
  ['http2', http2],
  ['scheme', (call) => call.scheme],
  ['https', (call) => (call.scheme === 'https' ? 'on' : '')],
  ['remote_addr', (call) => call.remoteAddr],
  ['remote_port', (call) => call.remotePort],
  ['remote_user', user],
  ['binary_remote_addr', binary],
  ['realip_remote_addr', (call) => call.realipRemoteAddr],
  ['realip_remote_port', (call) => call.realipRemotePort],
  ['connection', (call) => `${call.connection}`],
  ['connection_requests', (call) => `${call.connectionRequests}`],
  [
    'connection_time',
    (call) => (call.connectedAt === 0 ? '' : seconds((call.endedAt || monotonic()) - call.connectedAt)),
  ],
  ['content_length', (call) => call.header('content-length') ?? ''],
  ['content_type', (call) => call.header('content-type') ?? ''],
  ['request_length', (call) => `${call.requestLength}`],
  ['request_time', (call) => seconds((call.endedAt || monotonic()) - call.startedAt)],
  ['request_completion', (call) => (call.completed ? 'OK' : '')],
  ['request_id', (call) => call.requestId(drawRequestId)],
  ['request_body', (call) => call.body?.toString('latin1') ?? ''],
  ['msec', () => seconds(Date.now())],
  ['time_local', () => localTime(Date.now())],
  ['time_iso8601', () => isoTime(Date.now())],
  // nginx writes three digits, and 000 before there is a status. In an error page it is the one that is answered.
  ['status', (call) => `${call.status || call.statusOverride || '000'}`],
  ['bytes_sent', (call) => `${call.bytesSent}`],
  ['body_bytes_sent', (call) => `${call.bodyBytesSent}`],
  ['proxy_host', (call) => call.proxyHost],
  ['proxy_port', (call) => call.proxyPort],
  ['proxy_add_x_forwarded_for', forwardedFor],
  ['proxy_protocol_addr', (call) => call.proxied?.addr ?? ''],
  ['proxy_protocol_port', (call) => call.proxied?.port ?? ''],
  ['proxy_protocol_server_addr', (call) => call.proxied?.serverAddr ?? ''],
  ['proxy_protocol_server_port', (call) => call.proxied?.serverPort ?? ''],
  ['pipe', () => '.'],
  // What this proxy has nothing to say of, and log formats in use name: compression, caching and HTTP/3.
  ...['limit_rate', 'gzip_ratio', 'upstream_cache_status', 'http3', 'ssl_early_data'].map(
    (name): [string, Read] => [name, empty],
  ),
])
