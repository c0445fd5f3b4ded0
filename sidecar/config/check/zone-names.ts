import type { Model } from '../model.ts'
import { fail, type Place } from '../place.ts'
import type { Reading } from '../reading.ts'
import type { TlsServerSettings } from '../tls-model.ts'
import type { UpstreamBlock } from '../upstream-model.ts'

/**
 * Rules of the memory that is named: a table of sessions is of one group, and shares its name with nothing else; a
 * cache of TLS sessions may serve many servers, and is of one size.
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
  const sizes = new Map<string, string>()
  const cache = ({ ssl_session_cache: cache }: TlsServerSettings, use: string) => {
    if (typeof cache !== 'object' || cache.shared === undefined) return
    const { name, size } = cache.shared
    const place = reading.at(cache, 'shared') ?? { file: '', line: 0, syntax: 'yaml' }
    claim(name, use, place)
    const before = sizes.get(name) ?? size
    sizes.set(name, before)
    if (before === size) return
    fail(
      place,
      `the size ${size} of shared memory zone "${name}" conflicts with already declared size ${before}`,
    )
  }
  for (const level of [http ?? {}, ...(http?.servers ?? [])]) cache(level, 'TLS in http')
  for (const level of [stream ?? {}, ...(stream?.servers ?? [])]) cache(level, 'TLS in stream')
  for (const group of Object.values(http?.upstreams ?? {})) one(group, 'http')
  for (const group of Object.values(stream?.upstreams ?? {})) one(group, 'stream')
}
