import { Type } from '../../../feedback/schema-type.ts'
import type { Method } from '../../balance/method.ts'
import { defaultMethod, methods } from '../../balance/methods.ts'
import { serverAddress } from '../address.ts'
import { type Directive, directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { flag, integer, line, seconds, size, text, time, word } from '../schema.ts'
import { sizeBytes } from '../units.ts'
import { split } from './split.ts'

/** Eight pages: less would not hold a group in nginx's shared memory. */
const leastZone = 32_768

const trackName = /^[A-Za-z0-9._-]{1,64}$/

/** Directives of a group but its method. */
const groupDirectives = [
  directive({
    name: 'server',
    in: ['upstream'],
    key: 'servers',
    doc:
      'A server of the group: `host[:port]`, `[v6][:port]` or `unix:/path`; a name stands for all its addresses. ' +
      '`track` is 1 to 64 ASCII letters, digits, dots, underscores or hyphens.',
    default: 'weight=1 max_conns=0 max_fails=1 fail_timeout=10s slow_start=0 track=stable',
    args: Type.Object({
      address: line,
      weight: Type.Optional(integer(1, 1_000_000)),
      max_conns: Type.Optional(integer(0)),
      max_conns_scope: Type.Optional(word('instance', 'fleet')),
      max_fails: Type.Optional(integer(0)),
      fail_timeout: Type.Optional(seconds),
      slow_start: Type.Optional(time),
      backup: Type.Optional(flag),
      down: Type.Optional(flag),
      sid: Type.Optional(text),
      track: Type.Optional(
        Type.String({
          pattern: trackName.source,
          description: '1 to 64 ASCII letters, digits, dots, underscores or hyphens',
        }),
      ),
    }),
    words: ['address'],
    many: true,
    alias: { route: 'sid' },
    later: ['resolve', 'service', 'drain'],
    tidy(server) {
      serverAddress(server.address)
      if (server.max_conns_scope === 'fleet' && !server.max_conns) {
        throw new Fault('"max_conns_scope=fleet" parameter requires "max_conns"', 'max_conns_scope')
      }
      if (server.sid === '') throw new Fault('sid is empty')
      if (Buffer.byteLength(server.sid ?? '') > 32) throw new Fault('sid is too long')
      return server
    },
  }),
  directive({
    name: 'zone',
    in: ['upstream'],
    doc: 'Names the shared memory. Every group has one here, with or without this line; the size is checked and not needed.',
    args: Type.Object({ name: text, size: Type.Optional(size) }),
    words: ['name', 'size'],
    split([name = '', ...rest]) {
      if (name === '' || rest.length > 1) throw new Fault('invalid number of arguments in "zone" directive')
      const colon = name.indexOf(':')
      if (colon >= 0 && rest.length === 0) return { name: name.slice(0, colon), size: name.slice(colon + 1) }
      return rest.length === 0 ? { name } : { name, size: rest[0]! }
    },
    wrong: (size) => `invalid zone size "${size}"`,
    tidy(zone) {
      if (zone.name === '') throw new Fault('invalid zone name ""')
      if (zone.size !== undefined && sizeBytes(zone.size)! < leastZone) {
        throw new Fault(`zone "${zone.name}" is too small, at least ${leastZone} bytes expected`)
      }
      return zone
    },
  }),
  directive({
    name: 'keepalive',
    in: ['upstream'],
    doc: 'Idle connections to keep, a group and thread; 0 switches that off.',
    default: '32',
    args: integer(0),
    wrong: (number) => `invalid value "${number}" in "keepalive" directive`,
  }),
  directive({
    name: 'keepalive_requests',
    in: ['upstream'],
    doc: 'How many requests one connection to a peer may carry.',
    default: '1000',
    args: integer(1),
  }),
  directive({
    name: 'keepalive_time',
    in: ['upstream'],
    doc: 'How old a connection to a peer may get.',
    default: '1h',
    args: time,
  }),
  directive({
    name: 'keepalive_timeout',
    in: ['upstream'],
    doc: 'How long an idle connection to a peer is kept.',
    default: '60s',
    args: time,
  }),
  directive({
    name: 'response_time_factor',
    in: ['http', 'upstream'],
    doc: 'How much of the old average of response times stays with each new one, in percent.',
    default: '90',
    args: integer(0, 99),
  }),
]

const everyMethod: readonly Directive[] = methods.map((method: Method) => ({
  name: method.name,
  in: ['upstream'],
  doc: method.summary,
  args: method.args,
  words: method.words,
  method: true,
  tidy(args: never) {
    const misfit = method.misfit?.(args)
    if (misfit !== undefined) throw new Fault(`invalid parameter "${misfit}"`)
    return args
  },
}))

/** The methods' own lines; round robin is what a group has without one. */
const methodDirectives = everyMethod.filter(({ name }) => name !== defaultMethod.name)

const shadow = directive({
  name: 'shadow',
  in: ['upstream'],
  doc:
    'A method that is tried beside the own one, here also `round_robin`: it picks too, on a state of its own, and nothing is sent. ' +
    'Metrics and `/explain` say what it would have done.',
  args: Type.Object({}),
  inner: everyMethod,
  wrong: (method) => `unknown balancing method "${method}" in "shadow" directive`,
  syntax: 'shadow METHOD [PARAMETER …];',
})

export const upstreamDirectives: readonly Directive[] = [
  ...groupDirectives,
  ...methodDirectives,
  split,
  shadow,
]
