import { isIP } from 'node:net'
import type { Address } from '../../../feedback/peer.ts'
import { kindOf, probeKinds } from '../../../probes/kinds.ts'
import type { ProbeKind } from '../../../probes/probe.ts'
import { hasVariables, proxyAddress, serverAddress } from '../address.ts'
import { kindArgs } from '../directives/probe.ts'
import type { HttpBlock, LocationBlock, Model, ProbeLine } from '../model.ts'
import { fail, type Reading } from '../reading.ts'
import { fleetLack } from './fleet.ts'

/** The kind that a line asks for. */
export function kindOfLine(line: ProbeLine): ProbeKind {
  // The schema admits no other word.
  return kindOf(line.type ?? probeKinds[0].name)!
}

/**
 * What is wrong with asking a peer in the way that a line says.
 * @returns undefined when nothing is
 */
export function probeMisfit(line: ProbeLine, address: Address): string | undefined {
  const kind = kindOfLine(line)
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
  const groups = new Map(
    Object.entries(http.upstreams ?? {}).map(([name, group]) => [name.toLowerCase(), group]),
  )
  const names = new Set<string>()
  const refuse = (part: object, key: string, text: string): never =>
    fail(reading.at(part, key) ?? { file: '', line: 0, syntax: 'yaml' }, text)
  const one = (line: ProbeLine, location: LocationBlock) => {
    const requires = (what: string) => refuse(line, '', `"upstream_probe" directive requires ${what}`)
    const url = location.proxy_pass
    if (url === undefined) return requires('"proxy_pass" in the same location')
    const { host, port } = hasVariables(url) ? { host: '', port: undefined } : proxyAddress(url)
    const group = port === undefined ? groups.get(host) : undefined
    if (group === undefined) return requires('"proxy_pass" to a named upstream')
    if (group.zone === undefined) return requires(`"zone" in upstream "${host}"`)
    const own = `${host} ${line.name}`
    if (names.has(own)) refuse(line, '', `duplicate probe "${line.name}" of upstream "${host}"`)
    names.add(own)
    if (line.scope === 'fleet') {
      const lacks = fleetLack(fleet, group)
      if (lacks !== undefined) refuse(line, 'scope', `"scope=fleet" parameter ${lacks}`)
    }
    for (const server of group.servers ?? []) {
      const address = serverAddress(server.address)
      // A name shows what is behind it when the group is built.
      if (address.kind === 'tcp' && !isIP(address.host)) continue
      const misfit = probeMisfit(line, address)
      if (misfit !== undefined) refuse(line, '', misfit)
    }
  }
  const walk = (locations: Readonly<Record<string, LocationBlock>> | undefined) => {
    for (const location of Object.values(locations ?? {})) {
      for (const line of location.upstream_probe ?? []) one(line, location)
      walk(location.locations)
    }
  }
  for (const server of http.servers ?? []) walk(server.locations)
}
