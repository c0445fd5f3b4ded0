import { Type } from '../../../feedback/schema-type.ts'
import { type Context, type Directive, directive } from '../directive.ts'
import { flag, integer, line } from '../schema.ts'
import type { TlsPeer, TlsPeerPrefix } from '../tls-model.ts'
import { filePath } from './file-path.ts'
import { protocolArgs, someProtocols } from './tls-server.ts'

const http: readonly Context[] = ['http', 'server', 'location']
const stream: readonly Context[] = ['stream', 'stream server']

const someText = Type.String({ pattern: '^[^\\r\\n\\u0000]+$' })

/**
 * The directives of TLS towards peers that begin with this.
 * @param levels where they may stand
 * @param pass the directive whose host is the peers' name where none is given
 */
function ofPrefix(prefix: TlsPeerPrefix, levels: readonly Context[], pass: string): Directive[] {
  const of = (key: keyof TlsPeer) => ({ name: `${prefix}${key}`, in: levels })
  const file = (key: keyof TlsPeer, doc: string) => {
    const { name } = of(key)
    return directive({ name, in: levels, doc, args: line, tidy: (path) => filePath(name, path) })
  }
  const protocols = of('protocols')
  return [
    directive({
      ...of('verify'),
      doc: 'Whether the certificate of a peer has to be signed by an authority and made out to its name.',
      default: 'off',
      args: flag,
    }),
    directive({
      ...of('verify_depth'),
      doc: 'How many certificates may stand between a peer’s and an authority.',
      default: '1',
      args: integer(0, 100),
    }),
    file('trusted_certificate', 'File with the authorities of peers’ certificates.'),
    file('crl', 'File with lists of certificates that are called back.'),
    directive({
      ...of('name'),
      doc: `Name that a peer’s certificate is made out to, and that \`${prefix}server_name\` sends. May have variables.`,
      default: `host of ${pass}`,
      args: someText,
    }),
    directive({
      ...of('server_name'),
      doc: 'Whether peers are told the name (SNI).',
      default: 'off',
      args: flag,
    }),
    file('certificate', 'File with the certificate that is shown to peers.'),
    file('certificate_key', 'File with its key.'),
    directive({
      ...of('password_file'),
      doc: 'File with pass phrases of the key, one a line, that are tried in turn.',
      args: someText,
      tidy: (path) => filePath(of('password_file').name, path),
    }),
    directive({
      ...protocolArgs,
      ...protocols,
      doc: 'Protocols that are spoken with peers. Older ones may be written and are left out.',
      tidy: (list) => someProtocols(protocols.name, list),
    }),
    directive({
      ...of('ciphers'),
      doc: 'Ciphers of TLS up to 1.2, as OpenSSL writes them.',
      default: 'DEFAULT',
      args: someText,
    }),
    directive({
      ...of('session_reuse'),
      doc: 'Whether sessions with a peer are taken up again.',
      default: 'on',
      args: flag,
    }),
  ]
}

/** Directives of TLS towards peers, but those of gRPC. */
export const tlsPeerDirectives: readonly Directive[] = [
  directive({
    name: 'proxy_ssl',
    in: stream,
    doc: 'Whether TLS is spoken with peers. In `http` the `https` of `proxy_pass` says it.',
    default: 'off',
    args: flag,
  }),
  ...ofPrefix('proxy_ssl_', [...http, ...stream], 'proxy_pass'),
]

/** The same of `grpc_pass grpcs://…`. */
export const grpcTlsDirectives: readonly Directive[] = ofPrefix('grpc_ssl_', http, 'grpc_pass')
