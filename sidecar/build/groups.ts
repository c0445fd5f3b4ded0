import { isDeepStrictEqual } from 'node:util'
import { retire } from '../../feedback/carry.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Sessions } from '../../feedback/sessions/sessions.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Group } from '../balance/group.ts'
import { maxRingPoints, ringPoints } from '../balance/ring.ts'
import {
  declaredGroups,
  groupMeant,
  grpcAddress,
  hasVariables,
  type ProxyAddress,
  proxyAddress,
} from '../config/address.ts'
import { methodOf, shadowOf } from '../config/check/upstreams.ts'
import type { HttpBlock, LocationBlock } from '../config/model.ts'
import type { IfBlock } from '../config/rewrite-model.ts'
import { timeMs } from '../config/units.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'
import { type Forms, type PeerGroup, Pool, type PoolOptions } from '../proxy/pools.ts'
import { buildGroup } from './balancing.ts'
import type { Memory } from './memory.ts'
import type { Plan } from './plans.ts'
import { queueOf } from './queues.ts'
import { isNumeric, mostWritten, writtenTexts, writtenValues } from './written-targets.ts'

/** A group as it runs. Its pool and the numbers of its peers live on across reloads. */
export interface LiveGroup extends PeerGroup {
  readonly plan: Plan
  readonly balancing: Group
  readonly pool: Pool
}

/** Peers that a reload takes away, with the group whose zone and pool they have. */
export interface Leaving {
  readonly group: LiveGroup
  readonly peers: readonly Peer[]
  /** Those that stood for some of them in the zone of the group's shadow, which stays. */
  readonly twins: readonly Peer[]
  /** The table of its sessions until now, where there is one of another size. */
  readonly outgrown: Sessions | undefined
}

/** What groups of a kind have in common. */
export interface GroupLevel {
  /** `response_time_factor` of `http` or `stream`. */
  readonly factor: number | undefined
  readonly variables: Variables
}

/** The groups of a configuration, and what is no longer among them. */
export interface BuiltGroups {
  /** By lower-case name. */
  readonly groups: ReadonlyMap<string, LiveGroup>
  /** To be seen off once requests go by the new groups. */
  readonly leaving: readonly Leaving[]
}

/**
 * Builds the groups. With those that run now, by lower-case name, what was learnt of peers that stay is taken over.
 * @param memory where their numbers lie
 * @param same whether those that run now are of the same configuration: then those with the same peers go on as they are
 */
export function buildGroups(
  plans: readonly Plan[],
  levels: Readonly<Record<Plan['kind'], GroupLevel>>,
  memory: Memory,
  old: ReadonlyMap<string, LiveGroup>,
  same = false,
): BuiltGroups {
  const groups = new Map<string, LiveGroup>()
  const leaving: Leaving[] = []
  for (const plan of plans) {
    const key = plan.name.toLowerCase()
    const before = old.get(key)
    if (same && before !== undefined && alike(plan, before.plan) && memory.holds(before)) {
      groups.set(key, before)
      continue
    }
    checkRing(plan)
    const { zone, peers, backups, removed } = memory.seat(plan, before)
    const tracks = memory.tracks(plan, before)
    const table = memory.sessions(plan, before)
    const { name, kind, block, fleet } = plan
    const { factor, variables } = levels[kind]
    const { group: balancing, removed: twins } = buildGroup(
      {
        name,
        kind,
        block,
        keep: (block.response_time_factor ?? factor ?? 90) / 100,
        fleet,
        variables,
        seated: { zone, peers, backups, tracks, table },
        seatShadow: (kept, anew) => memory.shadow(plan, kept, anew),
      },
      before?.balancing,
    )
    const pool = before?.pool ?? new Pool(zone, poolOptions(block))
    pool.configure(poolOptions(block))
    pool.welcome([...peers, ...backups])
    const forms: Forms = before?.forms ?? { latest: undefined }
    const queue = queueOf(balancing.upstream, before?.queue)
    const group: LiveGroup = { plan, balancing, pool, queue, forms }
    forms.latest = group
    groups.set(key, group)
    const outgrown = outgrownBy(table, before)
    if (outgrown !== undefined) before!.balancing.upstream.sessions!.follow(balancing.upstream.sessions!)
    if (removed.length > 0 || twins.length > 0 || outgrown !== undefined)
      leaving.push({ group, peers: removed, twins, outgrown })
  }
  for (const [key, group] of old) {
    if (groups.has(key)) continue
    const { peers, backups } = group.balancing.upstream
    leaving.push({ group, peers: [...peers, ...backups], twins: [], outgrown: undefined })
  }
  return { groups, leaving }
}

/** The group's table of sessions before a new one, of another size, took its place. */
function outgrownBy(table: Sessions | undefined, before: LiveGroup | undefined): Sessions | undefined {
  const old = before?.balancing.upstream.sessions?.table
  return table !== undefined && old?.name === table.name && old !== table ? old : undefined
}

/** Weights of services are not known when the configuration is checked. */
function checkRing({ name, block, wanted }: Plan): void {
  const rings = [methodOf(block), shadowOf(block)].some(
    (line) => line?.name === 'hash' && line.args['consistent'] === true,
  )
  if (rings && ringPoints(wanted.map(({ options }) => options)) > maxRingPoints)
    throw new Error(`upstream "${name}" has too many hash points`)
}

/** Whether a group has the same peers by both. */
export function alike(one: Plan, other: Plan): boolean {
  return isDeepStrictEqual(one.wanted, other.wanted)
}

/** What takes peers away, and whether it is no other configuration. */
interface RetiredBy {
  readonly leaving: readonly Leaving[]
  readonly refreshed: boolean
}

/** Sees off what has left, once every thread picks from the new groups. */
export function retireLeaving({ leaving, refreshed }: RetiredBy): void {
  for (const { group, peers, twins, outgrown } of leaving) {
    const { zone, shadow, sessions } = group.balancing.upstream
    // What others have learnt there since the new one began.
    if (outgrown !== undefined) sessions?.table.merge(outgrown.all())
    retire(zone, peers, !refreshed)
    if (shadow !== undefined) retire(shadow.upstream.zone, twins)
  }
}

/** Closes the connections kept to peers that are gone. */
export function closeLeaving(leaving: readonly Leaving[]): void {
  for (const { group, peers: gone } of leaving) {
    const { peers, backups } = group.balancing.upstream
    // Another line may have the same address.
    const stay = [...peers, ...backups].filter((peer) => !gone.includes(peer)).map(({ name }) => name)
    for (const { name } of gone) if (!stay.includes(name)) group.pool.leave(name)
  }
}

/** Every authority that a `proxy_pass` or a `grpc_pass` names, by a `map` or a `set` too, and that is no group. */
export function impliedAuthorities(http: HttpBlock): string[] {
  const declared = declaredGroups(http)
  const written = writtenValues(http)
  const named = new Set<string>()
  const mapped = new Set<string>()
  const note = (text: string | undefined, grpc: boolean) => {
    if (text === undefined) return
    const addressOf = grpc ? grpcAddress : proxyAddress
    if (!hasVariables(text)) named.add(groupMeant(addressOf(text), declared))
    else for (const one of writtenTexts(text, written)) noteWritten(one, addressOf)
  }
  const noteWritten = (text: string, addressOf: (text: string) => ProxyAddress) => {
    try {
      const address = addressOf(text)
      if (address.unix || isNumeric(address.host)) mapped.add(groupMeant(address, declared))
    } catch {
      // A request that comes to it is told so.
    }
  }
  const noteLevel = ({ proxy_pass: url, grpc_pass: address }: LocationBlock | IfBlock) => {
    note(url, false)
    note(address, true)
  }
  const walk = (locations: Readonly<Record<string, LocationBlock>> | undefined) => {
    for (const location of Object.values(locations ?? {})) {
      noteLevel(location)
      for (const step of location.rewrites ?? []) if ('if' in step) noteLevel(step)
      walk(location.locations)
    }
  }
  for (const server of http.servers ?? []) walk(server.locations)
  const unknown = (names: Iterable<string>) => [...names].filter((name) => !declared.has(name.toLowerCase()))
  return [...new Set([...unknown(named), ...unknown(mapped).slice(0, mostWritten)])]
}

/** nginx keeps 32 idle connections a group since 1.29.7; `keepalive 0` keeps none. */
function poolOptions(block: UpstreamBlock): PoolOptions {
  return {
    keepalive: block.keepalive ?? 32,
    requests: block.keepalive_requests ?? 1000,
    time: ms(block.keepalive_time, 3_600_000),
    timeout: ms(block.keepalive_timeout, 60_000),
  }
}

function ms(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : (timeMs(text) ?? otherwise)
}
