import { Type } from '../../../feedback/schema-type.ts'
import { type Context, directive, type Part } from '../directive.ts'
import { Fault } from '../fault.ts'
import { flag, integer, line, seconds, size, text, time, word } from '../schema.ts'
import { tlsProtocols } from '../tls-model.ts'
import { formatSize, sizeBytes } from '../units.ts'
import { filePath } from './file-path.ts'

const levels: readonly Context[] = ['http', 'server', 'stream', 'stream server']
const streams: readonly Context[] = ['stream', 'stream server']

/** Known, and spoken neither by this program nor by anything that should be spoken with. */
const oldProtocols = ['SSLv2', 'SSLv3', 'TLSv1', 'TLSv1.1'] as const

/** Eight pages: less would not hold sessions in nginx's shared memory. */
const leastCache = 32_768

/** Some word; an empty one would be a list of nothing. */
const someText = Type.String({ pattern: '^[^\\r\\n\\u0000]+$' })

/** What `ssl_protocols` and its kin of the peers' side are alike. */
export const protocolArgs = {
  args: Type.Array(word(...tlsProtocols)),
  default: tlsProtocols.join(' '),
  ignored: oldProtocols,
} as const

/**
 * @param directive that is written
 * @throws Fault where all that was written is too old
 */
export function someProtocols<T>(directive: string, protocols: readonly T[]): readonly T[] {
  if (protocols.length > 0) return protocols
  throw new Fault(`no protocol of "${directive}" directive is supported, TLSv1.2 and TLSv1.3 are`)
}

const file = (name: string, doc: string, more: { readonly many?: true } = {}) =>
  directive({ name, in: levels, doc, args: someText, ...more, tidy: (path) => filePath(name, path) })

/** A file that an inner level may do without, by an empty text. */
const spareFile = (name: string, doc: string) =>
  directive({ name, in: levels, doc, args: line, tidy: (path) => filePath(name, path) })

const sharedCache = Type.Object({ name: text, size })

/** Directives of TLS towards clients. */
export const tlsServerDirectives = [
  file(
    'ssl_certificate',
    'File with a certificate and those that lead up to an authority. Several, each of another kind of key, may stand.',
    { many: true },
  ),
  file('ssl_certificate_key', 'File with the key of a certificate: the first key is the first one’s.', {
    many: true,
  }),
  file('ssl_password_file', 'File with pass phrases of keys, one a line, that are tried in turn.'),
  directive({
    ...protocolArgs,
    name: 'ssl_protocols',
    in: levels,
    doc: 'Protocols that are spoken with clients. Older ones may be written and are left out.',
    tidy: (protocols) => someProtocols('ssl_protocols', protocols),
  }),
  directive({
    name: 'ssl_ciphers',
    in: levels,
    doc: 'Ciphers of TLS up to 1.2, as OpenSSL writes them.',
    default: 'HIGH:!aNULL:!MD5',
    args: someText,
  }),
  directive({
    name: 'ssl_prefer_server_ciphers',
    in: levels,
    doc: 'Whether the order of `ssl_ciphers` counts, and not the client’s.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'ssl_ecdh_curve',
    in: levels,
    doc: 'Curves for the exchange of keys, with colons between them; `auto` is OpenSSL’s own list.',
    default: 'auto',
    args: someText,
  }),
  spareFile('ssl_dhparam', 'File with parameters for DHE ciphers, which are not offered without it.'),
  directive({
    name: 'ssl_session_cache',
    in: levels,
    doc: 'Where nginx keeps sessions whose clients take no tickets. Here sessions are taken up again by tickets, which need no memory.',
    unheeded: true,
    default: 'none',
    syntax: 'ssl_session_cache off | none | [builtin[:NUMBER]] [shared:NAME:SIZE];',
    args: Type.Union([
      Type.Literal('none'),
      Type.Object({
        builtin: Type.Optional(Type.Union([Type.Literal(true), integer(1)])),
        shared: Type.Optional(Type.Union([sharedCache, text])),
      }),
    ]),
    off: true,
    split: cacheParts,
    tidy(cache) {
      if (cache === 'none') return cache
      const { shared, ...rest } = cache
      if (Object.keys(cache).length === 0) {
        throw new Fault('invalid number of arguments in "ssl_session_cache" directive')
      }
      return shared === undefined ? rest : { ...rest, shared: cacheOf(shared) }
    },
  }),
  directive({
    name: 'ssl_session_tickets',
    in: levels,
    doc: 'Whether sessions are taken up again by tickets. Their keys are the same in all threads.',
    default: 'on',
    args: flag,
  }),
  file(
    'ssl_session_ticket_key',
    'File of 48 or 80 bytes with the key of tickets, for several instances that take each other’s; of several files the first one counts. Without it a key is made at the start, and kept over reloads.',
    { many: true },
  ),
  directive({
    name: 'ssl_session_timeout',
    in: levels,
    doc: 'How long a session may be taken up again.',
    default: '5m',
    args: seconds,
  }),
  spareFile(
    'ssl_client_certificate',
    'File with the authorities of clients’ certificates, whose names clients are told.',
  ),
  spareFile(
    'ssl_trusted_certificate',
    'File with further authorities of clients’ certificates, which they are not told of.',
  ),
  directive({
    name: 'ssl_verify_client',
    in: levels,
    doc: 'Whether clients have to show a certificate; with `optional` they may, with `optional_no_ca` any.',
    default: 'off',
    args: Type.Union([flag, word('optional', 'optional_no_ca')]),
    wrong: (word) => `invalid value "${word}"`,
  }),
  directive({
    name: 'ssl_verify_depth',
    in: levels,
    doc: 'How many certificates may stand between a client’s and an authority.',
    default: '1',
    args: integer(0, 100),
  }),
  spareFile('ssl_crl', 'File with lists of certificates that are called back.'),
  directive({
    name: 'ssl_reject_handshake',
    in: levels,
    doc: 'Refuses every handshake that ends up in this server, which needs no certificate then.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'ssl_handshake_timeout',
    in: streams,
    doc: 'How long a handshake may take.',
    default: '60s',
    args: time,
  }),
  directive({
    name: 'ssl_alpn',
    in: streams,
    doc: 'Protocols that clients may choose from by ALPN, the one liked best first.',
    args: Type.Array(someText),
    tidy(protocols) {
      if (protocols.length === 0) throw new Fault('invalid number of arguments in "ssl_alpn" directive')
      if (protocols.some((name) => Buffer.byteLength(name) > 255)) throw new Fault('protocol too long')
      return protocols
    },
  }),
]

/** `builtin`, `builtin:N` and `shared:NAME:SIZE` in any order. */
function cacheParts(words: readonly string[]): Record<string, Part> {
  const parts: Record<string, Part> = Object.create(null)
  for (const word of words) {
    const [, name = '', value] = /^(builtin|shared)(?::(.*))?$/s.exec(word) ?? []
    const builtin = name === 'builtin' && /^[1-9]\d*$/.test(value ?? '1')
    if (!builtin && (name !== 'shared' || value === undefined)) throw badCache(word)
    parts[name] = value ?? 'true'
  }
  return parts
}

function cacheOf(shared: string | { readonly name: string; readonly size?: string }) {
  const { name: table, size: length } = typeof shared === 'string' ? { name: shared } : shared
  const written = [table, length].filter((part) => part !== undefined).join(':')
  const [, name, size = ''] = /^([^:]+):(.+)$/s.exec(written) ?? []
  const bytes = sizeBytes(size)
  if (name === undefined || bytes === undefined) throw badCache(`shared:${written}`)
  if (bytes < leastCache) throw new Fault(`session cache "shared:${written}" is too small`, 'shared')
  return { name, size: formatSize(bytes) }
}

function badCache(word: string): Fault {
  return new Fault(`invalid session cache "${word}"`)
}
