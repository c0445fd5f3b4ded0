import { isIPv4 } from 'node:net'
import type { ResolverSpec } from '../membership.ts'
import { follow } from './chain.ts'
import type { AskServer } from './exchange.ts'
import { bare, type Found, sorted } from './found.ts'
import { localAddresses } from './hosts.ts'
import { askable, type Resource, type Service } from './message.ts'
import { candidates } from './resolv-conf.ts'
import type { Asked, Servers } from './servers.ts'
import type { System } from './system.ts'

/** What a look-up came to. */
export type Lookup =
  | {
      readonly kind: 'found'
      /** At least one; in an order of their own, since servers change theirs with every answer. */
      readonly found: readonly Found[]
      /** Seconds that all of it is good for. */
      readonly ttl: number
      /** What could not be asked, while the rest could. */
      readonly error: string | undefined
    }
  /** There is no such name. */
  | { readonly kind: 'absent' }
  /** The name is there, and has no address. */
  | { readonly kind: 'empty' }
  | { readonly kind: 'failed'; readonly error: string }

/** The last good answers of one name, by question: what stands in where a part of it cannot be asked. */
export type Memo = Map<string, readonly string[]>

export interface LookupEnv {
  readonly ask: AskServer
  /** Monotonic milliseconds. */
  now(): number
  readonly system: System
}

type Family = 'A' | 'AAAA'
type Nothing = Exclude<Lookup, { readonly kind: 'found' }>
/** What one question came to. */
interface Records {
  readonly kind: 'found'
  readonly ttl: number
  readonly addresses: readonly string[]
  readonly services: readonly Service[]
  readonly additionals: readonly Resource[]
}
/** What a host came to. */
interface Addresses {
  readonly kind: 'found'
  readonly ttl: number
  readonly addresses: readonly string[]
  readonly error: string | undefined
  /** Whether any of it has been heard just now. */
  readonly fresh: boolean
}

/** How often an alias that leads out of an answer is asked for. */
const mostAliases = 8
/** How soon is asked again for what an old answer stands in for, seconds. */
const soonTtl = 5
/** A message holds some thousands of services, and another one as many addresses of each: so many are taken of them. */
const mostFound = 4096
/** Seconds that what the system knows itself is good for. */
const localTtl = 5

/** One look-up, which has its time in all. */
export class Work {
  readonly #spec: ResolverSpec
  readonly #env: LookupEnv
  readonly #servers: Servers
  readonly #memo: Memo
  readonly #used: Memo
  readonly #endsAt: number
  readonly #asked: Asked

  constructor(spec: ResolverSpec, env: LookupEnv, servers: Servers, memo: Memo, used: Memo) {
    this.#spec = spec
    this.#env = env
    this.#servers = servers
    this.#memo = memo
    this.#used = used
    this.#endsAt = env.now() + spec.timeoutMs
    this.#asked = askedOf(spec, env.system)
  }

  async host(host: string): Promise<Lookup> {
    const hosts = this.#spec.servers === undefined ? this.#env.system.hosts() : new Map<string, string[]>()
    const local = localAddresses(host, hosts)?.filter((address) =>
      isIPv4(address) ? this.#spec.ipv4 : this.#spec.ipv6,
    )
    if (local !== undefined && local.length > 0) {
      return { kind: 'found', found: sorted(local.map(bare)), ttl: localTtl, error: undefined }
    }
    return this.#search(host, async (name) => {
      const how = await this.#addresses(name, [])
      if (how.kind !== 'found') return how
      const { addresses, ttl, error, fresh } = how
      if (!fresh) return { kind: 'failed', error: error ?? '' }
      return { kind: 'found', found: sorted(addresses.map(bare)), ttl, error }
    })
  }

  services(service: string, host: string): Promise<Lookup> {
    const name = service.includes('.') ? `${service}.${host}` : `_${service}._tcp.${host}`
    return this.#search(name.toLowerCase(), async (name) => {
      const how = await this.#records(name, 'SRV')
      return how.kind === 'found' ? this.#targets(how) : how
    })
  }

  /** Looks for a name where it may be. What could not be asked might have been there: then it is not absent. */
  async #search(name: string, look: (name: string) => Promise<Lookup>): Promise<Lookup> {
    const places = this.#spec.servers === undefined ? this.#env.system.conf() : nowhere
    let worst: Lookup = { kind: 'absent' }
    for (const candidate of candidates(name, places)) {
      if (!askable(candidate)) continue
      const how = await look(candidate)
      if (how.kind === 'found') return how
      if (how.kind === 'failed' || worst.kind === 'absent') worst = how
    }
    return worst
  }

  async #targets({ services, additionals, ttl: srvTtl }: Records): Promise<Lookup> {
    const offered = services.filter(({ target, port }) => target !== '' && port > 0)
    // RFC 2782: a target of `.` says that the service is decidedly not to be had.
    if (offered.length === 0) return { kind: 'absent' }
    const targets = new Map<string, Addresses | Nothing>()
    const names = new Set(offered.map(({ target }) => target))
    const asking = Array.from(names, async (name) => {
      targets.set(name, await this.#addresses(name, additionals))
    })
    await Promise.all(asking)
    let ttl = srvTtl
    let error: string | undefined
    const found: Found[] = []
    for (const service of offered.toSorted(inOrder)) {
      const how = targets.get(service.target)!
      if (how.kind === 'failed') ttl = Math.min(ttl, soonTtl)
      if (how.kind === 'failed' || how.kind === 'found')
        error ??= how.error && `${service.target}: ${how.error}`
      if (how.kind !== 'found') continue
      ttl = Math.min(ttl, how.ttl)
      for (const host of how.addresses) {
        if (found.length < mostFound) found.push({ host, service })
        else error ??= `more than ${mostFound} addresses`
      }
    }
    if (found.length > 0) return { kind: 'found', found: sorted(found), ttl, error }
    return error === undefined ? { kind: 'empty' } : { kind: 'failed', error }
  }

  /** Both families at once: what one of them has counts, whatever becomes of the other. */
  async #addresses(name: string, additionals: readonly Resource[]): Promise<Addresses | Nothing> {
    const families: Family[] = []
    if (this.#spec.ipv4) families.push('A')
    if (this.#spec.ipv6) families.push('AAAA')
    const all = await Promise.all(families.map((family) => this.#family(name, family, additionals)))
    const addresses: string[] = []
    let ttl = Number.POSITIVE_INFINITY
    let error: string | undefined
    let absent = true
    let fresh = false
    for (const how of all) {
      if (how.kind === 'found') {
        addresses.push(...how.addresses)
        ttl = Math.min(ttl, how.ttl)
        fresh ||= how.fresh
      }
      if (how.kind === 'found' || how.kind === 'failed') error ??= how.error
      absent &&= how.kind === 'absent'
    }
    if (addresses.length > 0)
      return { kind: 'found', addresses, ttl: error ? Math.min(ttl, soonTtl) : ttl, error, fresh }
    if (error !== undefined) return { kind: 'failed', error }
    return { kind: absent ? 'absent' : 'empty' }
  }

  async #family(
    name: string,
    family: Family,
    additionals: readonly Resource[],
  ): Promise<Addresses | Nothing> {
    const key = `${family} ${name}`
    const good = (addresses: readonly string[], ttl: number, error?: string): Addresses => {
      this.#used.set(key, addresses)
      return { kind: 'found', addresses, ttl, error, fresh: error === undefined }
    }
    const given = additionals.filter((record) => record.name === name && record.type === family)
    if (given.length > 0) {
      const addresses = given.flatMap((record) => ('address' in record ? record.address : []))
      return good([...new Set(addresses)], Math.min(...given.map(({ ttl }) => ttl)))
    }
    const how = await this.#records(name, family)
    if (how.kind === 'found') return good(how.addresses, how.ttl)
    const old = this.#memo.get(key)
    return how.kind === 'failed' && old !== undefined ? good(old, soonTtl, how.error) : how
  }

  async #records(name: string, type: Family | 'SRV'): Promise<Records | Nothing> {
    let at = name
    let ttl = Number.POSITIVE_INFINITY
    for (let aliases = 0; aliases <= mostAliases && askable(at); aliases++) {
      const question = { name: at, type }
      const asking = await this.#servers.ask(this.#asked, question, this.#endsAt)
      if (asking.kind === 'failed') return asking
      const { reply } = asking
      if (reply.code === 'NXDOMAIN') return { kind: 'absent' }
      const chain = follow(question, reply)
      if (chain.kind === 'nothing') return { kind: 'empty' }
      ttl = Math.min(ttl, chain.ttl)
      if (chain.kind === 'found') {
        const { addresses, services } = chain
        return { kind: 'found', ttl, addresses, services, additionals: reply.additionals }
      }
      at = chain.name
    }
    return { kind: 'empty' }
  }
}

const nowhere = { search: [], ndots: 1 }

/** Those that are to be used first come first, and otherwise by what does not change with the order of an answer. */
function inOrder(one: Service, other: Service): number {
  return (
    one.priority - other.priority ||
    (one.target < other.target ? -1 : one.target > other.target ? 1 : one.port - other.port)
  )
}

/** nginx waits five seconds for a server; a second one is asked sooner here. */
function askedOf({ servers }: ResolverSpec, system: System): Asked {
  if (servers !== undefined) return { servers, tryMs: 2000, rounds: 10, rotate: true }
  const { servers: own, timeoutMs, attempts, rotate } = system.conf()
  return { servers: own, tryMs: timeoutMs, rounds: attempts, rotate }
}
