import type { ResolverCounts } from '../../feedback/resolver-counts.ts'

/*
 * What is shown of resolvers, and of the names of `server` lines whose addresses they follow.
 */

/** A resolver at work. */
export interface ResolverFacts {
  /** Its `status_zone`; undefined: it has none. Several that differ may have one in common. */
  readonly zone: string | undefined
  /** Whom it asks now, `127.0.0.1:53`. */
  readonly servers: readonly string[]
  readonly counts: ResolverCounts
  readonly names: readonly NameFacts[]
}

/** A name that is followed. */
export interface NameFacts {
  readonly host: string
  /** `service=` as written; undefined: addresses are asked for. */
  readonly service: string | undefined
  /** Addresses, of services with their ports. */
  readonly addresses: readonly string[]
  /** Milliseconds since they were last heard; undefined: never. */
  readonly ageMs: number | undefined
  /** Milliseconds until it is looked up again; 0 while that is under way. */
  readonly nextMs: number
  /** Why the last look-up did not find it; undefined where it did. */
  readonly error: string | undefined
}

/** A resolver as it is shown: those with one name are one. */
export interface ShownResolver extends Omit<ResolverFacts, 'zone'> {
  /** Its `status_zone` or, where it has none, whom it asks. */
  readonly name: string
}

/** Resolvers by the name under which they are shown. */
export function shownResolvers(all: Iterable<ResolverFacts>): readonly ShownResolver[] {
  const found = new Map<string, ShownResolver>()
  for (const { zone, servers, counts, names } of all) {
    const name = zone ?? (servers.join(' ') || 'none')
    const other = found.get(name)
    found.set(name, {
      name,
      servers: [...new Set([...(other?.servers ?? []), ...servers])],
      counts: other === undefined ? counts : together(other.counts, counts),
      names: apart([...(other?.names ?? []), ...names]),
    })
  }
  return [...found.values()]
}

/** Each name once, and where several look it up the one that has trouble with it. */
function apart(names: readonly NameFacts[]): NameFacts[] {
  const found = new Map<string, NameFacts>()
  for (const about of names) {
    const text = nameText(about)
    if (found.get(text)?.error === undefined) found.set(text, about)
  }
  return [...found.values()]
}

function together(one: ResolverCounts, other: ResolverCounts): ResolverCounts {
  return {
    queries: sums(one.queries, other.queries),
    sent: sums(one.sent, other.sent),
    responses: sums(one.responses, other.responses),
  }
}

function sums<K extends string>(
  one: Readonly<Record<K, number>>,
  other: Readonly<Record<K, number>>,
): Record<K, number> {
  const total: Record<K, number> = { ...one }
  // The keys of a record are its own.
  for (const key of Object.keys(other) as K[]) total[key] += other[key]
  return total
}

/** A followed name as people would write it: `_http._tcp.shop.internal` for a service, as DNS has it. */
export function nameText({ host, service }: Pick<NameFacts, 'host' | 'service'>): string {
  if (service === undefined) return host
  return service.includes('.') ? `${service}.${host}` : `_${service}._tcp.${host}`
}
