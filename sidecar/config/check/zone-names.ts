import type { Model, UpstreamBlock } from '../model.ts'
import { fail, type Place, type Reading } from '../reading.ts'

/**
 * Rules of the memory that groups name: a table of sessions is of one group, and shares its name with nothing else.
 * @throws ConfigError
 */
export function checkZoneNames({ http, stream }: Model, reading: Reading): void {
  const tables = new Set<string>()
  /** What each name stands for. */
  const uses = new Map<string, string>()
  const claim = (name: string, use: string, place: Place | undefined) => {
    const before = uses.get(name) ?? use
    uses.set(name, use)
    if (before === use) return
    const text = `the shared memory zone "${name}" is already declared for a different use`
    fail(place ?? { file: '', line: 0, syntax: 'yaml' }, text)
  }
  const one = (group: UpstreamBlock, kind: string) => {
    const { zone, sticky } = group
    if (zone !== undefined) claim(zone.name, kind, reading.at(zone))
    if (sticky === undefined || !('learn' in sticky)) return
    const { name } = sticky.learn.zone
    const place = reading.at(group, 'sticky')
    claim(name, 'sessions', place)
    if (tables.has(name)) {
      fail(
        place ?? { file: '', line: 0, syntax: 'yaml' },
        `sticky zone "${name}" is already used in upstream`,
      )
    }
    tables.add(name)
  }
  for (const group of Object.values(http?.upstreams ?? {})) one(group, 'http')
  for (const group of Object.values(stream?.upstreams ?? {})) one(group, 'stream')
}
