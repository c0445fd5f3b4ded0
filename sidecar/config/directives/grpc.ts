import { Type } from '../../../feedback/schema-type.ts'
import { grpcAddress, hasVariables } from '../address.ts'
import { type Context, type Directive, directive } from '../directive.ts'
import { word } from '../schema.ts'
import { grpcNextUpstreamWords } from '../tls-model.ts'
import { proxyDirectives } from './proxy.ts'
import { grpcTlsDirectives } from './tls-peer.ts'

const levels: readonly Context[] = ['http', 'server', 'location']

/** A directive that is one of HTTP's under another name. */
function twin(name: string, differing: Partial<Pick<Directive, 'doc' | 'default'>> = {}): Directive {
  const proxy: readonly Directive[] = proxyDirectives
  const entry = proxy.find((entry) => entry.name === `proxy_${name}`)
  if (entry === undefined) throw new Error(`no directive "proxy_${name}"`)
  const { syntax } = entry
  return {
    ...entry,
    ...differing,
    name: `grpc_${name}`,
    ...(syntax === undefined ? {} : { syntax: syntax.replace('proxy_', 'grpc_') }),
  }
}

/** Directives of gRPC. */
export const grpcDirectives: readonly Directive[] = [
  directive({
    name: 'grpc_pass',
    in: ['location', 'if'],
    doc: 'Which group or address the calls go to, by HTTP/2: `grpc://NAME[:PORT]`, `grpcs://…` for TLS, or without a scheme, with variables where wanted.',
    args: Type.String({ pattern: '^[^\\s\\u0000]*$' }),
    tidy(address) {
      if (!hasVariables(address)) grpcAddress(address)
      return address
    },
  }),
  twin('set_header', { default: 'Host $proxy_host' }),
  twin('hide_header'),
  twin('pass_header'),
  twin('connect_timeout'),
  twin('send_timeout'),
  twin('read_timeout'),
  twin('buffer_size'),
  twin('intercept_errors'),
  twin('connection_drop'),
  directive({
    name: 'grpc_next_upstream',
    in: levels,
    doc:
      'Which failures may go on to another peer; a listed status is a failure. `grpc_…` are statuses of gRPC, as long as ' +
      'nothing else has been answered.',
    default: 'error timeout',
    args: Type.Array(word(...grpcNextUpstreamWords)),
  }),
  twin('next_upstream_tries'),
  twin('next_upstream_timeout'),
  twin('next_upstream_budget'),
  twin('next_upstream_backoff'),
  ...grpcTlsDirectives,
]
