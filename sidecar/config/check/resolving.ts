import { fail } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { Resolving } from '../upstream-model.ts'
import type { Groups } from './upstreams.ts'

/**
 * Rules of names that are followed while the program runs.
 * @throws ConfigError
 */
export function checkResolving(block: Groups & Resolving, reading: Reading): void {
  for (const [name, group] of Object.entries(block.upstreams ?? {})) {
    const server = group.servers?.find(({ resolve }) => resolve)
    if (server === undefined) continue
    const place = reading.at(server, 'resolve') ?? { file: '', line: 0, syntax: 'yaml' }
    const what = 'resolving names at run time'
    if (group.zone === undefined) {
      fail(place, `${what} requires shared memory zone configured for upstream "${name}"`)
    }
    if ((group.resolver ?? block.resolver) === 'off') {
      fail(place, `no resolver configured for ${what} in upstream "${name}"`)
    }
  }
}
