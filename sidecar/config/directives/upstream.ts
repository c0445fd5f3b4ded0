import { Type } from '../../../feedback/schema-type.ts'
import { type Context, type Directive, directive } from '../directive.ts'
import { Fault } from '../fault.ts'
import { integer, size, text, time } from '../schema.ts'
import { sizeBytes } from '../units.ts'
import { methodDirectives } from './methods.ts'
import { resolverDirectives } from './resolver.ts'
import { serverLines } from './server-line.ts'
import { split } from './split.ts'
import { stickyDirectives } from './sticky.ts'
import { waitingDirectives } from './waiting.ts'

const groups: readonly Context[] = ['upstream', 'stream upstream']

/** Eight pages: less would not hold a group in nginx's shared memory. */
const leastZone = 32_768

/** Directives of a group but its servers and its method. */
const groupDirectives = [
  directive({
    name: 'zone',
    in: groups,
    doc: 'Names the shared memory. Every group has one here; the line is needed to add and remove servers at run time, and for `upstream_probe`. The size is checked and not needed.',
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
    // Connections are shared by locations that speak alike with peers, whatever it says.
    ignored: ['local'],
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
    in: ['http', 'stream', ...groups],
    doc: 'How much of the old average of response times stays with each new one, in percent.',
    default: '90',
    args: integer(0, 99),
  }),
]

export const upstreamDirectives: readonly Directive[] = [
  ...serverLines,
  ...groupDirectives,
  ...methodDirectives,
  split,
  ...stickyDirectives,
  ...waitingDirectives,
  ...resolverDirectives,
]
