import type { Question, Reply, Resource, Service } from './message.ts'

/** What a reply says of a question. */
export type Chain =
  | {
      readonly kind: 'found'
      /** Of `A` and `AAAA`. */
      readonly addresses: readonly string[]
      /** Of `SRV`. */
      readonly services: readonly Service[]
      /** Seconds that all of it is good for, aliases on the way too. */
      readonly ttl: number
    }
  /** It ends at a name that the reply says nothing of: ask for that. */
  | { readonly kind: 'alias'; readonly name: string; readonly ttl: number }
  | { readonly kind: 'nothing' }

/** Longest chain of aliases. */
const longest = 16

/** Follows the aliases in an answer from the name that was asked for to its records. */
export function follow({ name, type }: Question, { answers, negative }: Reply): Chain {
  const passed = new Set([name])
  let at = name
  let ttl = Number.POSITIVE_INFINITY
  for (;;) {
    const own = answers.filter((record) => record.name === at)
    const found = own.filter((record) => record.type === type)
    if (found.length > 0) return foundOf(found, ttl)
    const alias = own.find((record) => record.type === 'CNAME')
    if (alias === undefined) break
    ttl = Math.min(ttl, alias.ttl)
    at = alias.alias
    // A circle, or as good as one.
    if (passed.has(at) || passed.size === longest) return { kind: 'nothing' }
    passed.add(at)
  }
  // With its authority named, the end of the chain is known to have no such record.
  return at === name || negative ? { kind: 'nothing' } : { kind: 'alias', name: at, ttl }
}

function foundOf(records: readonly Resource[], chainTtl: number): Chain {
  const addresses = new Set<string>()
  const services: Service[] = []
  let ttl = chainTtl
  for (const record of records) {
    ttl = Math.min(ttl, record.ttl)
    if (record.type === 'A' || record.type === 'AAAA') addresses.add(record.address)
    if (record.type === 'SRV') services.push(record.service)
  }
  return { kind: 'found', addresses: [...addresses], services, ttl }
}
