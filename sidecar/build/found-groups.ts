import { monotonic } from '../../feedback/clock.ts'
import type { Address } from '../../feedback/peer.ts'
import { streamPrefix } from '../../feedback/upstream.ts'
import { formatAddress } from '../config/address.ts'
import { serverOptions } from '../config/server-options.ts'
import type { ResolverSpec } from '../membership.ts'
import type { Room } from '../proxy/pools.ts'
import type { Nowhere } from '../proxy/route.ts'
import type { Answer, Answers } from '../resolve/answers.ts'
import { buildGroups, closeLeaving, type GroupLevel, type LiveGroup, retireLeaving } from './groups.ts'
import { scantMemory } from './memory.ts'
import type { Plan } from './plans.ts'
import { isNumeric } from './written-targets.ts'

/** What an address comes to: a group of its own, or nowhere; a promise where its name has to be looked up. */
export type Found = LiveGroup | Nowhere | Promise<LiveGroup | Nowhere>

/** Finds the group of an address that no group of the configuration has. */
export type Finder = (address: Address) => Found

interface Entry {
  group: LiveGroup
  /** Its peers: the very object that was found. */
  hosts: readonly string[]
  /** Monotonic milliseconds. */
  usedAt: number
}

/** Groups that are remembered at most, and connections that may rest in all of them together. */
export const mostFoundGroups = 256
const mostResting = 256

/**
 * Groups of addresses that requests bring along, each of the IP addresses that its name has. They are this thread's own
 * and appear nowhere, since clients may choose them: in the status tree and in metrics they would grow without end. One
 * lives on, with what is known of its peers, as long as it is not the longest unused of too many.
 */
export class FoundGroups {
  readonly #levels: Readonly<Record<Plan['kind'], GroupLevel>>
  readonly #answersOf: (spec: ResolverSpec) => Answers
  readonly #resolvers = new Map<string, { readonly answers: Answers; readonly serial: number }>()
  readonly #entries = new Map<string, Entry>()
  readonly #room: Room = { resting: 0, most: mostResting }

  /** @param answersOf what looks names up as a `resolver` line says */
  constructor(
    levels: Readonly<Record<Plan['kind'], GroupLevel>>,
    answersOf: (spec: ResolverSpec) => Answers,
  ) {
    this.#levels = levels
    this.#answersOf = answersOf
  }

  /** How many groups there are. */
  get size(): number {
    return this.#entries.size
  }

  /** @param spec who looks names up; undefined: nobody */
  finder(kind: Plan['kind'], spec: ResolverSpec | undefined): Finder {
    const prefix = kind === 'stream' ? streamPrefix : ''
    const own = (address: Address) => {
      const name = formatAddress(address)
      const known = this.#entries.get(`${prefix}${name}`)
      return known === undefined ? this.#enter(kind, `${prefix}${name}`, name, [address], []) : used(known)
    }
    if (spec === undefined) {
      return (address) => {
        if (address.kind === 'unix' || isNumeric(address.host)) return own(address)
        return { status: 502, text: `no resolver defined to resolve ${address.host}` }
      }
    }
    const { answers, serial } = this.#resolver(spec)
    const place = `${prefix}${serial} `
    const groupOf = (host: string, port: number, answer: Answer) => {
      if (answer.kind === 'failed')
        return { status: 502, text: `${host} could not be resolved (${answer.why})` }
      const key = `${place}${host}:${port}`
      const known = this.#entries.get(key)
      if (known !== undefined && known.hosts === answer.hosts) return used(known)
      const addresses = answer.hosts.map((host): Address => ({ kind: 'tcp', host, port }))
      return this.#enter(kind, key, `${host}:${port}`, addresses, answer.hosts)
    }
    return (address) => {
      if (address.kind === 'unix' || isNumeric(address.host)) return own(address)
      const { host, port } = address
      const answer = answers.of(host)
      if (answer instanceof Promise) return answer.then((answer) => groupOf(host, port, answer))
      return groupOf(host, port, answer)
    }
  }

  #resolver(spec: ResolverSpec) {
    const key = JSON.stringify(spec)
    const known = this.#resolvers.get(key)
    if (known !== undefined) return known
    const resolver = { answers: this.#answersOf(spec), serial: this.#resolvers.size }
    this.#resolvers.set(key, resolver)
    return resolver
  }

  /** Keeps no connection any more: other routes are in force. What is in progress goes on. */
  close(): void {
    this.#room.most = 0
    for (const { group } of this.#entries.values()) leave(group)
    this.#entries.clear()
  }

  #enter(
    kind: Plan['kind'],
    key: string,
    server: string,
    addresses: readonly Address[],
    hosts: readonly string[],
  ): LiveGroup {
    const before = this.#entries.get(key)
    if (before === undefined && this.#entries.size >= mostFoundGroups) this.#forgetOne()
    const name = kind === 'stream' ? `${streamPrefix}${server}` : server
    const wanted = addresses.map((address) => {
      const name = formatAddress(address)
      return { server, name, address, options: serverOptions({ address: server }, name) }
    })
    const plan: Plan = { name, kind, block: {}, wanted, fleet: false }
    const old = new Map(before && [[name.toLowerCase(), before.group]])
    const { groups, leaving } = buildGroups([plan], this.#levels, scantMemory(), old)
    const group = groups.get(name.toLowerCase())!
    group.pool.room = this.#room
    retireLeaving({ leaving, refreshed: true })
    closeLeaving(leaving)
    this.#entries.set(key, { group, hosts, usedAt: monotonic() })
    return group
  }

  /** The longest unused one goes. Attempts in it go on, and their connections are closed as they end. */
  #forgetOne(): void {
    let oldest: string | undefined
    let usedAt = Number.POSITIVE_INFINITY
    for (const [key, entry] of this.#entries) {
      if (entry.usedAt >= usedAt) continue
      oldest = key
      usedAt = entry.usedAt
    }
    if (oldest === undefined) return
    leave(this.#entries.get(oldest)!.group)
    this.#entries.delete(oldest)
  }
}

function used(entry: Entry): LiveGroup {
  entry.usedAt = monotonic()
  return entry.group
}

function leave({ pool, balancing }: LiveGroup): void {
  for (const { name } of balancing.upstream.peers) pool.leave(name)
}
