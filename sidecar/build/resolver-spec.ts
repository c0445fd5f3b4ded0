import { timeMs } from '../config/units.ts'
import type { Resolving } from '../config/upstream-model.ts'
import type { ResolverSpec } from '../membership.ts'
import { type NameServers, nameServersOf, serversOf } from './name-servers.ts'

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
  return specOf([outer, group], await nameServersOf(line === undefined ? [] : [line]))
}

/**
 * Who looks up the names that a `proxy_pass` with variables comes to.
 * @param levels from the outermost to the innermost
 * @param hosts of all their lines
 * @returns undefined where nobody does
 */
export function lookedUpBy(levels: readonly Resolving[], hosts: NameServers): ResolverSpec | undefined {
  const line = innermost(levels, 'resolver')
  return line === undefined || line === 'off' ? undefined : specOf(levels, hosts)
}

function specOf(levels: readonly Resolving[], hosts: NameServers): ResolverSpec {
  const line = innermost(levels, 'resolver')
  const timeout = innermost(levels, 'resolver_timeout') ?? '30s'
  const { valid, ipv4, ipv6, status_zone } = line === 'off' || line === undefined ? {} : line
  return {
    servers: line === 'off' || line === undefined ? undefined : serversOf(line, hosts),
    validMs: valid === undefined ? undefined : timeMs(valid),
    ipv4: ipv4 !== 'off',
    ipv6: ipv6 !== 'off',
    timeoutMs: timeMs(timeout) ?? 30_000,
    statusZone: status_zone,
  }
}

function innermost<K extends keyof Resolving>(
  levels: readonly Resolving[],
  key: K,
): Resolving[K] | undefined {
  return levels.findLast((level) => level[key] !== undefined)?.[key]
}
