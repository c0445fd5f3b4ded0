import type { TProperties, TSchema } from 'typebox'
import { Type } from '../../../feedback/schema-type.ts'
import { kindOf, probeKinds, streamKindOf, streamProbeKinds } from '../../../probes/kinds.ts'
import { probeModes } from '../../../probes/live-probe.ts'
import type { ProbeKind } from '../../../probes/probe.ts'
import { directive, type Value } from '../directive.ts'
import { Fault } from '../fault.ts'
import type { ProbeLine } from '../model.ts'
import { flag, integer, shapeOf, time, word } from '../schema.ts'
import type { StreamProbeLine } from '../stream-model.ts'
import { formatTime, timeMs } from '../units.ts'

const defaultKind = probeKinds[0]

/** What may be asked in a block, and of whom. */
interface Ways {
  readonly kinds: readonly ProbeKind[]
  /** Kinds whose answers have nothing that a test could look at. */
  readonly mute: readonly string[]
}

const ways: Ways = { kinds: probeKinds, mute: ['tcp', 'agent', 'backlog'] }
const streamWays: Ways = { kinds: streamProbeKinds, mute: ['agent', 'backlog'] }

/** Arguments of the location's request, which only kinds that send it can use. */
const ofRequests = ['uri', 'method'] as const

/** Names of a kind's own arguments, and those it cannot do without. */
function own(kind: ProbeKind): { readonly names: readonly string[]; readonly required: readonly string[] } {
  const { properties = {}, required = [] } = shapeOf(kind.args)
  return { names: Object.keys(properties), required }
}

/** The arguments of a probe that are its kind's. */
export function kindArgs(kind: ProbeKind, line: ProbeLine): Readonly<Record<string, Value>> {
  const { names } = own(kind)
  return Object.fromEntries(Object.entries(line).filter(([name]) => names.includes(name)))
}

/** Every kind's arguments: which of them a probe needs is a matter of its type. */
function ofKinds({ kinds }: Ways): TProperties {
  const all: TProperties = {}
  for (const { args } of kinds) {
    for (const [name, schema] of Object.entries(shapeOf(args).properties ?? {})) {
      // A schema's properties are schemas.
      all[name] = Type.Optional(schema as TSchema)
    }
  }
  return all
}

const port = { port: Type.Optional(integer(1, 65_535)) }

/** Arguments of every probe, in the order in which they are printed. */
const shared = {
  name: Type.String({ pattern: '^[^\\s\\u0000-\\u001f\\u007f]+$' }),
  rhythm: {
    interval: Type.Optional(time),
    timeout: Type.Optional(time),
    fails: Type.Optional(integer(1)),
    passes: Type.Optional(integer(1)),
    test: Type.Optional(
      Type.String({ pattern: '^[^\\u0000]+$', description: 'must come out neither empty nor 0' }),
    ),
    essential: Type.Optional(flag),
    persistent: Type.Optional(flag),
    mode: Type.Optional(word(...probeModes)),
  },
  scope: { scope: Type.Optional(word('fleet', 'instance')) },
}

const typeOf = ({ kinds }: Ways) => ({ type: Type.Optional(word(...kinds.map(({ name }) => name))) })

export const probeDirectives = [
  directive({
    name: 'upstream_probe',
    in: ['location'],
    doc:
      'Asks every peer of the group of `proxy_pass` on a schedule, whatever clients do, and takes those out that ' +
      'fail. Several may stand in a location.',
    default: `type=${defaultKind.name} uri=/ method=GET interval=5s timeout=1s fails=1 passes=1 mode=always max_body=256k`,
    args: Type.Object({
      name: shared.name,
      ...typeOf(ways),
      uri: Type.Optional(Type.String({ pattern: '^[^\\s\\u0000-\\u001f\\u007f#]+$' })),
      ...port,
      method: Type.Optional(Type.String({ pattern: "^(?!CONNECT$)[A-Za-z0-9!#$%&'*+.^_`|~-]+$" })),
      ...shared.rhythm,
      ...ofKinds(ways),
      ...shared.scope,
    }),
    words: ['name'],
    many: true,
    later: ['ping', 'ping_timeout'],
    tidy(given) {
      // The schema is put together of parts, so its type does not say what it checks.
      const line = given as ProbeLine
      checkLine(line, kindOf(line.type ?? defaultKind.name)!, ways)
      return given as Value
    },
  }),
  directive({
    name: 'upstream_probe',
    in: ['stream server'],
    doc:
      'Asks every peer of the group of `proxy_pass` on a schedule, whatever clients do, and takes those out that ' +
      'fail. Several may stand in a server. `udp` is another word for `type=udp`.',
    default: 'type=tcp interval=5s timeout=1s fails=1 passes=1 mode=always max_response=256k',
    args: Type.Object({
      name: shared.name,
      ...typeOf(streamWays),
      udp: Type.Optional(flag),
      ...port,
      ...shared.rhythm,
      ...ofKinds(streamWays),
      ...shared.scope,
    }),
    words: ['name'],
    many: true,
    later: ['ping', 'ping_timeout'],
    tidy(given) {
      const line = given as StreamProbeLine
      if (line.udp && line.type !== undefined && line.type !== 'udp') {
        throw new Fault(`incompatible parameters "udp" and "type=${line.type}"`, 'udp')
      }
      checkLine(line, streamKindOf(line.type, line.udp)!, streamWays)
      return given as Value
    },
  }),
  directive({
    name: 'upstream_probe_timeout',
    in: ['stream server'],
    doc: 'The `timeout` of the probes of this server that have none of their own.',
    default: '1s',
    args: time,
    tidy(timeout) {
      if (timeMs(timeout) === 0)
        throw new Fault(`"upstream_probe_timeout" directive invalid value "${timeout}"`)
      return timeout
    },
  }),
]

/** @throws Fault for what does not fit together in a line */
function checkLine(line: ProbeLine | StreamProbeLine, kind: ProbeKind, { kinds, mute }: Ways): void {
  if (line.name.includes('=')) {
    throw new Fault(`the first argument is the probe's name, and "${line.name}" looks like a parameter`)
  }
  const { names, required } = own(kind)
  const foreign = kinds.flatMap((other) => own(other).names).filter((name) => !names.includes(name))
  if (!kind.http) foreign.push(...ofRequests)
  if (mute.includes(kind.name)) foreign.push('test')
  for (const [name, value] of Object.entries(line)) {
    if (!foreign.includes(name)) continue
    throw new Fault(`type=${kind.name} does not support parameter "${name}=${value}"`, name)
  }
  // A peer's own port speaks the protocol of its clients.
  const asked = kind.name === 'agent' ? [...required, 'port'] : required
  for (const name of asked) {
    if (!(name in line)) throw new Fault(`type=${kind.name} requires parameter "${name}"`)
  }
  if (line.test !== undefined && !line.test.includes('$')) {
    throw new Fault(`parameter "test=${line.test}" has no variable, it would always be the same`, 'test')
  }
  const { interval, timeout } = line
  if (interval !== undefined && timeMs(interval)! < kind.leastInterval) {
    const least = formatTime(kind.leastInterval)
    throw new Fault(`interval "${interval}" is too short, at least ${least} expected`, 'interval')
  }
  if (timeout !== undefined && timeMs(timeout) === 0) {
    throw new Fault(`invalid parameter "timeout=${timeout}"`, 'timeout')
  }
  if (line.persistent && !line.essential) {
    throw new Fault('"persistent" parameter requires "essential"', 'persistent')
  }
  if (line.scope === 'fleet' && kind.name === 'backlog') {
    throw new Fault(`type=${kind.name} does not support parameter "scope=fleet"`, 'scope')
  }
}
