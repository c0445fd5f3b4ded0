import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { serverAddress } from '../config/address.ts'
import { timeMs } from '../config/units.ts'
import type { ResolverLine, Resolving } from '../config/upstream-model.ts'
import type { ResolverSpec } from '../membership.ts'
import type { DnsServer } from '../resolve/exchange.ts'
import { PartError } from './place.ts'

/**
 * Who looks up names of a group, in numbers.
 * @param group what the group says itself
 * @param outer what `http` or `stream` says
 * @returns `off`: nobody is to
 * @throws PartError where the name server is a host that is not known
 */
export async function resolverSpec(group: Resolving, outer: Resolving): Promise<ResolverSpec | 'off'> {
  const line = group.resolver ?? outer.resolver
  if (line === 'off') return 'off'
  const timeout = group.resolver_timeout ?? outer.resolver_timeout ?? '30s'
  const { valid, ipv4, ipv6, status_zone } = line ?? {}
  return {
    servers: line && (await serversOf(line)),
    validMs: valid === undefined ? undefined : timeMs(valid),
    ipv4: ipv4 !== 'off',
    ipv6: ipv6 !== 'off',
    timeoutMs: timeMs(timeout) ?? 30_000,
    statusZone: status_zone,
  }
}

async function serversOf(line: ResolverLine): Promise<DnsServer[]> {
  const servers: DnsServer[] = []
  for (const text of line.addresses) {
    const address = serverAddress(text, 53)
    if (address.kind === 'unix') throw new PartError(`invalid host in resolver "${text}"`, line, 'addresses')
    const { host, port } = address
    const hosts = isIP(host) ? [host] : await addressesOf(host, text, line)
    for (const host of hosts) servers.push({ host, port })
  }
  return servers
}

async function addressesOf(host: string, text: string, line: ResolverLine): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    throw new PartError(`host not found in resolver "${text}"`, line, 'addresses')
  }
}
