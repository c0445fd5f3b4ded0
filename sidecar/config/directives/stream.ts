import { Type } from '../../../feedback/schema-type.ts'
import { hasVariables, streamTarget } from '../address.ts'
import { type Context, directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { listenText } from '../listen-range.ts'
import { flag, integer, line, size, text, time, word } from '../schema.ts'
import { dropArgs } from './connection-drop.ts'
import { ipv6only } from './ipv6only.ts'
import { budgetArgs, triesArgs, tryingTimeArgs } from './next-upstream.ts'

const levels: readonly Context[] = ['stream', 'stream server']

const settings = (name: string, doc: string, unset: string, args: typeof flag | typeof time | typeof size) =>
  directive({ name, in: levels, doc, default: unset, args })

/** Directives of TCP and UDP sessions. */
export const streamDirectives = [
  directive({
    name: 'listen',
    in: ['stream server'],
    doc: 'Address and port, or range of ports (`8000-8010`), or Unix socket, to accept connections on, or datagrams with `udp`; with `ssl` TLS is spoken, with `proxy_protocol` each connection begins with a PROXY header.',
    args: Type.Object({
      address: line,
      udp: Type.Optional(flag),
      ssl: Type.Optional(flag),
      proxy_protocol: Type.Optional(flag),
      backlog: Type.Optional(integer(1, 65_535)),
      ipv6only: Type.Optional(ipv6only),
    }),
    words: ['address'],
    many: true,
    ignored: [
      ...['reuseport', 'so_keepalive', 'deferred', 'bind', 'rcvbuf', 'sndbuf', 'fastopen', 'setfib'],
      ...['accept_filter', 'multipath', 'default_server'],
    ],
    tidy({ ipv6only, ...value }) {
      const address = listenText(value.address)
      const unix = address.startsWith('unix:')
      if (!unix && !/(?:^|:)\d+(?:-\d+)?$/.test(value.address)) {
        throw new Fault(`no port in "${value.address}" of the "listen" directive`)
      }
      if (value.udp) {
        if (unix) throw new Fault(incompatible('udp', 'unix:'), 'udp')
        if (value.ssl) throw new Fault(incompatible('ssl', 'udp'), 'ssl')
        if (value.proxy_protocol) throw new Fault(incompatible('proxy_protocol', 'udp'), 'proxy_protocol')
        if (value.backlog !== undefined) throw new Fault(incompatible('backlog', 'udp'), 'backlog')
      }
      return { ...value, address }
    },
  }),
  directive({
    name: 'proxy_pass',
    in: ['stream server'],
    doc: 'Which group or address the sessions go to: `NAME`, `host:port`, `[v6]:port` or `unix:/path`, with variables where wanted.',
    args: Type.String({ pattern: '^[^\\s\\u0000]+$' }),
    tidy(target) {
      if (!hasVariables(target)) streamTarget(target)
      return target
    },
  }),
  directive({
    name: 'return',
    in: ['stream server'],
    doc: 'Sends a text, which may have variables, and ends the session.',
    args: text,
  }),
  settings('proxy_connect_timeout', 'How long connecting to a peer may take.', '60s', time),
  settings(
    'proxy_timeout',
    'How long a session may be without traffic in both directions together.',
    '10m',
    time,
  ),
  settings(
    'proxy_next_upstream',
    'Whether a peer that cannot be connected to makes way for another.',
    'on',
    flag,
  ),
  directive({
    ...triesArgs,
    in: levels,
    doc: 'Most attempts of a session; 0 is as many as there are peers.',
  }),
  directive({ ...tryingTimeArgs, in: levels }),
  directive({
    ...budgetArgs,
    in: levels,
    doc: 'Most further attempts, in percent of the group’s sessions in `window`, with `min` a second on top.',
  }),
  directive({
    ...dropArgs,
    in: levels,
    doc:
      'Whether sessions are ended when their peer leaves its group or is marked `down`, by what a name or the ' +
      'API says: `on` at once, a time after that.',
  }),
  settings('proxy_half_close', 'Whether one direction goes on after the other has ended.', 'off', flag),
  directive({
    name: 'proxy_responses',
    in: levels,
    doc: 'How many datagrams a UDP peer answers one with; when they have come the session ends. 0: none are awaited.',
    args: integer(0),
  }),
  directive({
    name: 'proxy_requests',
    in: levels,
    doc: 'After how many datagrams of a client a new UDP session begins; 0 is never.',
    default: '0',
    args: integer(0),
  }),
  settings('proxy_buffer_size', 'How much is read at a time, in each direction.', '16k', size),
  directive({
    name: 'proxy_protocol',
    in: levels,
    doc: 'Whether a PROXY header, of version 1 unless said otherwise, is sent to peers.',
    default: 'off',
    args: Type.Union([flag, word('v1', 'v2')]),
    wrong: (word) =>
      `invalid value "${word}" in "proxy_protocol" directive, it must be "on", "off", "v1" or "v2"`,
  }),
  settings('proxy_protocol_timeout', 'How long a client may take to send its PROXY header.', '30s', time),
  settings(
    'ssl_preread',
    'Whether what a client asks of TLS is read before a peer is chosen, for `$ssl_preread_server_name` and its kin.',
    'off',
    flag,
  ),
  settings('preread_timeout', 'How long a client may take to send what is read so.', '30s', time),
  settings('preread_buffer_size', 'How much may be read so.', '16k', size),
]

function incompatible(one: string, other: string): string {
  return `"listen" directive "${one}" parameter is incompatible with "${other}"`
}
