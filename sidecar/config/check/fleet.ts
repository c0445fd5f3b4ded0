import type { Model } from '../model.ts'
import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { UpstreamBlock } from '../upstream-model.ts'

/**
 * Why a group cannot share anything.
 * @returns how a message about what wants to be shared goes on; undefined when it can
 */
export function fleetLack(fleet: Model['fleet'], group: UpstreamBlock): string | undefined {
  if (fleet === undefined) return 'requires "fleet"'
  return group.fleet === 'off' ? 'is incompatible with "fleet off"' : undefined
}

/**
 * Rules of what instances share: there have to be others.
 * @throws ConfigError
 */
export function checkFleet({ http, stream, fleet }: Model, reading: Reading): void {
  const groups = [http, stream].flatMap((block) => Object.values(block?.upstreams ?? {}))
  for (const group of groups) {
    const lacks = fleetLack(fleet, group)
    if (lacks === undefined) continue
    for (const server of group.servers ?? []) {
      if (server.max_conns_scope !== 'fleet') continue
      const place = reading.at(server, 'max_conns_scope') ?? { file: '', line: 0, syntax: 'yaml' }
      fail(place, `"max_conns_scope=fleet" parameter ${lacks}`)
    }
  }
}
