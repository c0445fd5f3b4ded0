import { Type } from '../../../feedback/schema-type.ts'
import { hasVariables, proxyAddress } from '../address.ts'
import { type Context, directive } from '../directive.ts'
import { checkPattern } from '../fault.ts'
import { nextUpstreamWords } from '../model.ts'
import { fieldName, flag, integer, line, size, text, time, word } from '../schema.ts'
import { dropArgs } from './connection-drop.ts'
import { budgetArgs, triesArgs, tryingTimeArgs } from './next-upstream.ts'

const levels: readonly Context[] = ['http', 'server', 'location']

const settings = (name: string, doc: string, unset: string, args: typeof flag | typeof time | typeof size) =>
  directive({ name, in: levels, doc, default: unset, args })

/** Directives on the peers' side. */
export const proxyDirectives = [
  directive({
    name: 'proxy_pass',
    in: ['location', 'if'],
    doc: 'Which group or address the requests go to: `http://NAME[:PORT][URI]` or `https://…` for TLS, with variables where wanted.',
    args: Type.String({ pattern: '^[^\\s\\u0000]*$' }),
    tidy(url) {
      if (!hasVariables(url)) proxyAddress(url)
      return url
    },
  }),
  directive({
    name: 'proxy_set_header',
    in: levels,
    doc: 'A field of the request to the peer; an empty value removes it.',
    default: 'Host $proxy_host',
    args: Type.Object({ name: fieldName, value: line }),
    words: ['name', 'value'],
    many: true,
  }),
  directive({
    name: 'proxy_hide_header',
    in: levels,
    doc: 'A field of the peer’s response that is not passed to the client.',
    default: 'Date Server X-Pad X-Accel-…',
    args: fieldName,
    many: true,
  }),
  directive({
    name: 'proxy_pass_header',
    in: levels,
    doc: 'A field that is passed although it would be hidden.',
    args: fieldName,
    many: true,
  }),
  directive({
    name: 'proxy_http_version',
    in: levels,
    doc: 'HTTP version to the peer; 1.0 sends 1.1 with `Connection: close`.',
    default: '1.1',
    args: word('1.0', '1.1', '2'),
    remark(version) {
      return version === '1.0'
        ? '"proxy_http_version 1.0" sends HTTP/1.1 with "Connection: close"'
        : undefined
    },
  }),
  settings('proxy_connect_timeout', 'How long connecting to a peer may take.', '60s', time),
  settings('proxy_send_timeout', 'How long a peer may pause while it takes a request.', '60s', time),
  settings('proxy_read_timeout', 'How long a peer may pause before and in its response.', '60s', time),
  directive({
    name: 'proxy_next_upstream',
    in: levels,
    doc: 'Which failures may go on to another peer; a listed status is a failure.',
    default: 'error timeout',
    args: Type.Array(word(...nextUpstreamWords)),
  }),
  directive({
    ...triesArgs,
    in: levels,
    doc: 'Most attempts of a request; 0 is as many as there are peers.',
  }),
  directive({ ...tryingTimeArgs, in: levels }),
  directive({
    ...budgetArgs,
    in: levels,
    doc: 'Most retries, in percent of the group’s requests in `window`, with `min` a second on top.',
  }),
  directive({
    name: 'proxy_next_upstream_backoff',
    in: levels,
    doc: 'Wait before the second retry and later ones: up to BASE, then up to twice as much each time, at most MAX.',
    default: '25ms 250ms',
    args: Type.Object({ base: time, max: time }),
    words: ['base', 'max'],
    off: true,
  }),
  settings('proxy_buffering', 'Whether to read ahead of a slow client.', 'on', flag),
  settings('proxy_request_buffering', 'Whether to read the whole request before it is sent.', 'on', flag),
  settings('proxy_buffer_size', 'Largest head of a response.', '8k', size),
  directive({
    name: 'proxy_buffers',
    in: levels,
    doc: 'How far to read ahead of a slow client: number times size.',
    default: '8 16k',
    args: Type.Object({ number: integer(1), size }),
    words: ['number', 'size'],
  }),
  directive({
    name: 'proxy_busy_buffers_size',
    in: levels,
    doc: 'How much may wait to be sent to the client at once.',
    default: '16k',
    args: size,
    unheeded: true,
  }),
  settings(
    'proxy_replay_buffer',
    'How much of a request’s body is kept so that it can be sent again.',
    '64k',
    size,
  ),
  settings('proxy_intercept_errors', 'Whether `error_page` applies to statuses of peers.', 'off', flag),
  directive({
    name: 'proxy_redirect',
    in: levels,
    doc: 'How `Location` and `Refresh` of a response are rewritten; `default` undoes what `proxy_pass` does.',
    default: 'default',
    args: Type.Union([Type.Literal('default'), Type.Object({ redirect: line, replacement: line })]),
    words: ['redirect', 'replacement'],
    many: true,
    off: true,
    tidy(value) {
      if (value !== 'default' && value.redirect.startsWith('~')) {
        const anyCase = value.redirect.startsWith('~*')
        checkPattern(value.redirect.slice(anyCase ? 2 : 1), anyCase)
      }
      return value
    },
  }),
  directive({
    name: 'proxy_method',
    in: levels,
    doc: 'Method of the request to the peer in place of the client’s.',
    args: Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~{}-]+$" }),
  }),
  directive({
    name: 'proxy_set_body',
    in: levels,
    doc: 'Body of the request to the peer in place of the client’s.',
    args: text,
  }),
  settings('proxy_pass_request_headers', 'Whether the client’s fields go to the peer.', 'on', flag),
  settings('proxy_pass_request_body', 'Whether the client’s body goes to the peer.', 'on', flag),
  settings('proxy_ignore_client_abort', 'Whether an attempt goes on when the client leaves.', 'off', flag),
  directive({
    ...dropArgs,
    in: levels,
    doc:
      'Whether requests and tunnels under way are ended when their peer leaves its group or is marked `down`, by what a ' +
      'name or the API says: `on` at once, a time after that.',
  }),
  directive({
    name: 'api',
    in: ['location'],
    doc: 'Serves the status tree from this path on.',
    args: Type.String({ pattern: '^/[^\\s\\u0000]*$' }),
    wrong: (path) => `invalid path "${path}" in "api" directive`,
  }),
  directive({
    name: 'prometheus',
    in: ['location'],
    doc: 'Serves the metrics of a template; `all` is built in.',
    args: text,
  }),
]
