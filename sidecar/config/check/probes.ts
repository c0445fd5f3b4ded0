import { isIP } from 'node:net'
import type { Address } from '../../../feedback/peer.ts'
import { kindOf, probeKinds, streamKindOf } from '../../../probes/kinds.ts'
import type { ProbeKind } from '../../../probes/probe.ts'
import { grpcAddress, hasVariables, proxyAddress, serverAddress, streamTarget } from '../address.ts'
import { kindArgs } from '../directives/probe.ts'
import type { HttpBlock, LocationBlock, Model, ProbeLine } from '../model.ts'
import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { StreamBlock, StreamProbeLine } from '../stream-model.ts'
import type { UpstreamBlock } from '../upstream-model.ts'
import { fleetLack } from './fleet.ts'
import type { Groups } from './upstreams.ts'

/** The kind that a line asks for. */
export function kindOfLine(line: ProbeLine): ProbeKind {
  // The schema admits no other word.
  return kindOf(line.type ?? probeKinds[0].name)!
}

/** The same in `stream`. */
export function kindOfStreamLine(line: StreamProbeLine): ProbeKind {
  return streamKindOf(line.type, line.udp)!
}

/**
 * What is wrong with asking a peer in the way that a line says.
 * @returns undefined when nothing is
 */
export function probeMisfit(
  line: StreamProbeLine,
  address: Address,
  kind: ProbeKind = kindOfLine(line),
): string | undefined {
  const misfit = kind.misfit?.(address, kindArgs(kind, line))
  if (misfit !== undefined) return misfit
  const moved = line.port !== undefined && address.kind === 'unix'
  return moved ? `parameter "port=${line.port}" needs a TCP peer` : undefined
}

/**
 * Rules of probes: whom they ask, and that their names are told apart.
 * @throws ConfigError
 */
export function checkProbes(http: HttpBlock, fleet: Model['fleet'], reading: Reading): void {
  const check = new ProbeCheck(http, fleet, reading)
  const walk = (locations: Readonly<Record<string, LocationBlock>> | undefined) => {
    for (const location of Object.values(locations ?? {})) {
      const key = location.proxy_pass === undefined ? 'grpc_pass' : 'proxy_pass'
      const text = location[key]
      const parse = key === 'grpc_pass' ? grpcAddress : proxyAddress
      const target = text === undefined || hasVariables(text) ? undefined : parse(text)
      const name = target?.port === undefined ? target?.host : undefined
      for (const line of location.upstream_probe ?? []) {
        const kind = kindOfLine(line)
        check.one(line, kind, { block: 'location', key: text === undefined ? 'proxy_pass' : key, text, name })
      }
      walk(location.locations)
    }
  }
  for (const server of http.servers ?? []) walk(server.locations)
}

/**
 * The same in `stream`.
 * @throws ConfigError
 */
export function checkStreamProbes(stream: StreamBlock, fleet: Model['fleet'], reading: Reading): void {
  const check = new ProbeCheck(stream, fleet, reading)
  for (const { proxy_pass: text, upstream_probe: lines = [] } of stream.servers ?? []) {
    const target = text === undefined || hasVariables(text) ? undefined : streamTarget(text)
    const name = target?.kind === 'tcp' && target.port === undefined ? target.host : undefined
    const pass: Pass = { block: 'server', key: 'proxy_pass', text, name }
    for (const line of lines) check.one(line, kindOfStreamLine(line), pass)
  }
}

/** Where the peers of a probe are named. */
interface Pass {
  readonly block: 'location' | 'server'
  readonly key: 'proxy_pass' | 'grpc_pass'
  /** What it says; undefined where it does not stand. */
  readonly text: string | undefined
  /** The group that it may mean, lower case. */
  readonly name: string | undefined
}

class ProbeCheck {
  readonly #fleet: Model['fleet']
  readonly #reading: Reading
  /** By name, lower case. */
  readonly #groups: ReadonlyMap<string, UpstreamBlock>
  readonly #names = new Set<string>()

  constructor({ upstreams = {} }: Groups, fleet: Model['fleet'], reading: Reading) {
    this.#fleet = fleet
    this.#reading = reading
    this.#groups = new Map(Object.entries(upstreams).map(([name, group]) => [name.toLowerCase(), group]))
  }

  one(line: StreamProbeLine, kind: ProbeKind, { block, key, text, name }: Pass): void {
    if (text === undefined) this.#lacks(line, `"${key}" in the same ${block}`)
    const group = name === undefined ? undefined : this.#groups.get(name)
    if (group === undefined) this.#lacks(line, `"${key}" to a named upstream`)
    if (group.zone === undefined) this.#lacks(line, `"zone" in upstream "${name}"`)
    const own = `${name} ${line.name}`
    if (this.#names.has(own)) this.#refuse(line, '', `duplicate probe "${line.name}" of upstream "${name}"`)
    this.#names.add(own)
    if (line.scope === 'fleet') {
      const lacks = fleetLack(this.#fleet, group)
      if (lacks !== undefined) this.#refuse(line, 'scope', `"scope=fleet" parameter ${lacks}`)
    }
    for (const server of group.servers ?? []) {
      const address = serverAddress(server.address)
      // A name shows what is behind it when the group is built.
      if (address.kind === 'tcp' && !isIP(address.host)) continue
      const misfit = probeMisfit(line, address, kind)
      if (misfit !== undefined) this.#refuse(line, '', misfit)
    }
  }

  #lacks(line: StreamProbeLine, what: string): never {
    this.#refuse(line, '', `"upstream_probe" directive requires ${what}`)
  }

  #refuse(part: object, key: string, text: string): never {
    fail(this.#reading.at(part, key) ?? { file: '', line: 0, syntax: 'yaml' }, text)
  }
}
