import { isIPv4, isIPv6 } from 'node:net'
import { Type } from '../../../feedback/schema-type.ts'
import { type Context, directive } from '../directive.ts'
import { checkPattern, Fault } from '../fault.ts'
import { listenText } from '../listen-range.ts'
import { fieldName, flag, integer, line, size, time } from '../schema.ts'
import { ipv6only } from './ipv6only.ts'

const server: readonly Context[] = ['http', 'server']
const location: readonly Context[] = ['http', 'server', 'location']

/** Directives on the client's side: listeners, limits and what is said to the client. */
export const clientDirectives = [
  directive({
    name: 'listen',
    in: ['server'],
    doc: 'Address, port, range of ports (`8000-8010`) or Unix socket to accept requests on; with `ssl` they come by TLS, with `proxy_protocol` each connection begins with a PROXY header.',
    default: '*:80',
    args: Type.Object({
      address: line,
      default_server: Type.Optional(flag),
      ssl: Type.Optional(flag),
      http2: Type.Optional(flag),
      proxy_protocol: Type.Optional(flag),
      backlog: Type.Optional(integer(1, 65_535)),
      ipv6only: Type.Optional(ipv6only),
    }),
    words: ['address'],
    many: true,
    alias: { default: 'default_server' },
    ignored: [
      ...['reuseport', 'so_keepalive', 'deferred', 'bind', 'rcvbuf', 'sndbuf', 'fastopen', 'setfib'],
      ...['accept_filter', 'multipath'],
    ],
    later: ['http3', 'quic', 'spdy'],
    stray: (token) =>
      `invalid parameter "${token}"${token === 'udp' ? ', datagrams are for servers of "stream"' : ''}`,
    tidy({ ipv6only, ...value }) {
      return { ...value, address: listenText(value.address) }
    },
  }),
  directive({
    name: 'server_name',
    in: ['server'],
    doc: 'Names of the server: exact, `*.example.com`, `www.example.*`, `.example.com` or `~regex`.',
    default: '""',
    args: Type.Array(line),
    many: true,
    tidy: (names) => names.map(serverName),
  }),
  directive({
    name: 'status_zone',
    in: ['server', 'location', 'stream server'],
    doc: 'Name under which the requests or sessions of this place are counted in the status tree.',
    args: Type.String({ pattern: '^[^$\\s]+$' }),
    wrong: (name) => `"status_zone" of "${name}" is not supported yet, give it a fixed name`,
    stray: (word) =>
      `"${word.replace(/=.*/s, '')}" parameter of "status_zone" is not supported yet, give it a fixed name`,
  }),
  directive({
    name: 'client_header_timeout',
    in: server,
    doc: 'How long a client may take to send the head of a request.',
    default: '60s',
    args: time,
  }),
  directive({
    name: 'client_header_buffer_size',
    in: server,
    unheeded: true,
    doc: 'Memory for the head of a request to begin with; `large_client_header_buffers` is the limit.',
    default: '1k',
    args: size,
  }),
  directive({
    name: 'large_client_header_buffers',
    in: server,
    doc: 'Largest head of a request: number times size; no line may be longer than one buffer.',
    default: '4 8k',
    args: Type.Object({ number: integer(1), size }),
    words: ['number', 'size'],
  }),
  directive({
    name: 'underscores_in_headers',
    in: server,
    doc: 'Whether names of request fields may have underscores.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'ignore_invalid_headers',
    in: server,
    doc: 'Whether request fields with unusual names (other than letters, digits, hyphens and underscores) are dropped instead of passed on. A name with other characters than HTTP allows is refused either way.',
    default: 'on',
    args: flag,
  }),
  directive({
    name: 'merge_slashes',
    in: server,
    doc: 'Whether adjacent slashes of a path count as one where a location is looked for.',
    default: 'on',
    args: flag,
  }),
  directive({
    name: 'client_max_body_size',
    in: location,
    doc: 'Largest body of a request; 0 is unlimited.',
    default: '1m',
    args: size,
  }),
  directive({
    name: 'client_body_timeout',
    in: location,
    doc: 'How long a client may pause while it sends a body.',
    default: '60s',
    args: time,
  }),
  directive({
    name: 'send_timeout',
    in: location,
    doc: 'How long a client may pause while it takes a response.',
    default: '60s',
    args: time,
  }),
  directive({
    name: 'keepalive_timeout',
    in: ['http', 'server', 'location'],
    doc: 'How long an idle connection of a client is kept, and what the `Keep-Alive` field says of it.',
    default: '75s',
    args: Type.Object({ timeout: time, header_timeout: Type.Optional(time) }),
    words: ['timeout', 'header_timeout'],
    unheeded: ['header_timeout'],
  }),
  directive({
    name: 'keepalive_requests',
    in: ['http', 'server', 'location'],
    doc: 'How many requests one connection of a client may carry.',
    default: '1000',
    args: integer(1),
  }),
  directive({
    name: 'keepalive_time',
    in: ['http', 'server', 'location'],
    doc: 'How old a connection of a client may get.',
    default: '1h',
    args: time,
  }),
  directive({
    name: 'reset_timedout_connection',
    in: location,
    unheeded: true,
    doc: 'Whether a connection that timed out is reset.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'set_real_ip_from',
    in: [...location, 'stream', 'stream server'],
    doc: 'Addresses and networks whose word on the client’s address is taken; in `stream` that is a PROXY header.',
    args: line,
    many: true,
    tidy: network,
  }),
  directive({
    name: 'real_ip_header',
    in: location,
    doc: 'Field that tells the client’s address, or `proxy_protocol` for the PROXY header of its connection.',
    default: 'X-Real-IP',
    args: fieldName,
    tidy(name) {
      return /^proxy_protocol$/i.test(name) ? 'proxy_protocol' : name
    },
  }),
  directive({
    name: 'real_ip_recursive',
    in: location,
    doc: 'Whether the last address of the field that is not trusted is taken, instead of the last.',
    default: 'off',
    args: flag,
  }),
]

function network(text: string): string {
  if (text === 'unix:') return text
  const [address = '', bits, more] = text.split('/')
  const longest = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1
  const fits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest)
  if (longest < 0 || !fits || more !== undefined) throw new Fault(`invalid parameter "${text}"`)
  return text
}

function serverName(name: string): string {
  if (name.startsWith('~')) {
    if (name.length === 1) throw new Fault('empty regex in server name "~"')
    checkPattern(name.slice(1), true)
    return name
  }
  // A star may stand for whole labels at one end, and nowhere else.
  const inside = name.replace(/^\*\.|\.\*$/, '')
  if (name === '*' || /[*\s/]/.test(inside)) throw new Fault(`invalid server name or wildcard "${name}"`)
  return name.toLowerCase()
}
