import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { serverAddress } from '../config/address.ts'
import type { LocationBlock, Model } from '../config/model.ts'
import type { ResolverLine, Resolving } from '../config/upstream-model.ts'
import type { DnsServer } from '../resolve/exchange.ts'
import { PartError } from './place.ts'

/** IP addresses of name servers that a `resolver` line names by their hosts, by its text. Plain data. */
export type NameServers = ReadonlyMap<string, readonly string[]>

/**
 * Looks up the name servers themselves, where they are hosts.
 * @throws PartError where one is not known
 */
export async function nameServersOf(lines: readonly ResolverLine[]): Promise<NameServers> {
  const hosts = new Map<string, readonly string[]>()
  for (const line of lines) {
    for (const text of line.addresses) {
      const { host } = tcp(text, line)
      if (!isIP(host) && !hosts.has(text)) hosts.set(text, await addressesOf(host, text, line))
    }
  }
  return hosts
}

/** @param hosts what `nameServersOf` has found for the line */
export function serversOf(line: ResolverLine, hosts: NameServers): DnsServer[] {
  return line.addresses.flatMap((text) => {
    const { host, port } = tcp(text, line)
    const all = isIP(host) ? [host] : (hosts.get(text) ?? [])
    return all.map((host) => ({ host, port }))
  })
}

/** Every `resolver` line that may count for a `proxy_pass`. */
export function resolverLines({ http = {}, stream = {} }: Pick<Model, 'http' | 'stream'>): ResolverLine[] {
  const lines: ResolverLine[] = []
  const note = ({ resolver }: Resolving) => {
    if (resolver !== undefined && resolver !== 'off') lines.push(resolver)
  }
  const walk = (locations: Readonly<Record<string, LocationBlock>> = {}) => {
    for (const location of Object.values(locations)) {
      note(location)
      walk(location.locations)
    }
  }
  note(http)
  note(stream)
  for (const server of http.servers ?? []) {
    note(server)
    walk(server.locations)
  }
  for (const server of stream.servers ?? []) note(server)
  return lines
}

function tcp(text: string, line: ResolverLine): { readonly host: string; readonly port: number } {
  const address = serverAddress(text, 53)
  if (address.kind === 'unix') throw new PartError(`invalid host in resolver "${text}"`, line, 'addresses')
  return address
}

async function addressesOf(host: string, text: string, line: ResolverLine): Promise<string[]> {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    throw new PartError(`host not found in resolver "${text}"`, line, 'addresses')
  }
}
