import { type Context, directive } from '../directive.ts'
import { flag, integer } from '../schema.ts'

const levels: readonly Context[] = ['http', 'server']

/** Directives of HTTP/2 towards clients. */
export const http2Directives = [
  directive({
    name: 'http2',
    in: levels,
    doc: 'Whether HTTP/2 is spoken: with TLS where a client asks for it, without TLS where it begins so.',
    default: 'off',
    args: flag,
  }),
  directive({
    name: 'http2_max_concurrent_streams',
    in: levels,
    doc: 'How many requests of one connection may be in progress at once.',
    default: '128',
    args: integer(1, 2 ** 31 - 1),
  }),
]
