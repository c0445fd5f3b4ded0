import { isIP } from 'node:net'
import type { Static } from 'typebox'
import { Type } from '../../../feedback/schema-type.ts'
import { serverAddress, writtenPort } from '../address.ts'
import { type Directive, directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { flag, integer, line, seconds, text, time, word } from '../schema.ts'

const trackName = /^[A-Za-z0-9._-]{1,64}$/

const args = Type.Object({
  address: line,
  weight: Type.Optional(integer(1, 1_000_000)),
  max_conns: Type.Optional(integer(0)),
  max_conns_scope: Type.Optional(word('instance', 'fleet')),
  max_fails: Type.Optional(integer(0)),
  fail_timeout: Type.Optional(seconds),
  slow_start: Type.Optional(time),
  backup: Type.Optional(flag),
  down: Type.Optional(flag),
  drain: Type.Optional(flag),
  sid: Type.Optional(text),
  resolve: Type.Optional(flag),
  service: Type.Optional(text),
  track: Type.Optional(
    Type.String({
      pattern: trackName.source,
      description: '1 to 64 ASCII letters, digits, dots, underscores or hyphens',
    }),
  ),
})

type Server = Static<typeof args>

const shared = {
  name: 'server',
  key: 'servers',
  default: 'weight=1 max_conns=0 max_fails=1 fail_timeout=10s slow_start=0 track=stable',
  args,
  words: ['address'],
  many: true,
  alias: { route: 'sid' },
} as const

const meaning =
  'A name stands for all its addresses, with `resolve` for those that it has at each time, and with `service` for those of its SRV records. ' +
  'A server with `drain` takes only requests of sessions that are bound to it by its `sid`. ' +
  '`track` is 1 to 64 ASCII letters, digits, dots, underscores or hyphens.'

/** The `server` lines of groups. */
export const serverLines: readonly Directive[] = [
  directive({
    ...shared,
    in: ['upstream'],
    doc: `A server of the group: \`host[:port]\`, \`[v6][:port]\` or \`unix:/path\`. ${meaning}`,
    tidy: tidied,
  }),
  directive({
    ...shared,
    in: ['stream upstream'],
    doc: `A server of the group: \`host:port\`, \`[v6]:port\` or \`unix:/path\`. ${meaning}`,
    tidy(server) {
      const own = tidied(server)
      const { address, service } = server
      if (
        service === undefined &&
        serverAddress(address).kind === 'tcp' &&
        writtenPort(address) === undefined
      ) {
        throw new Fault(`no port in upstream "${address}"`)
      }
      return own
    },
  }),
]

function tidied({ resolve, ...server }: Server): Server {
  const address = serverAddress(server.address)
  if (server.down && server.drain) throw new Fault('incompatible parameters "down" and "drain"', 'drain')
  if (server.max_conns_scope === 'fleet' && !server.max_conns) {
    throw new Fault('"max_conns_scope=fleet" parameter requires "max_conns"', 'max_conns_scope')
  }
  if (server.sid === '') throw new Fault('sid is empty')
  if (Buffer.byteLength(server.sid ?? '') > 32) throw new Fault('sid is too long')
  const named = address.kind === 'tcp' && isIP(address.host) === 0
  if (server.service !== undefined) checkService(server.address, server.service, resolve === true, named)
  // An address has nothing that could be looked up.
  return resolve && named ? { ...server, resolve } : server
}

function checkService(address: string, service: string, resolve: boolean, named: boolean): void {
  if (service === '') throw new Fault('service is empty', 'service')
  const upstream = `service upstream "${address}"`
  if (!resolve) throw new Fault(`${upstream} requires "resolve" parameter`, 'service')
  if (writtenPort(address) !== undefined) throw new Fault(`${upstream} may not have port`, 'service')
  if (!named) throw new Fault(`${upstream} requires domain name`, 'service')
}
