import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Wanted } from '../../feedback/carry.ts'
import type { Address, Peer } from '../../feedback/peer.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Group } from '../balance/pick.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { HttpBlock, LocationBlock, ServerLine, UpstreamBlock } from '../config/model.ts'
import { serverOptions } from '../config/server-options.ts'
import { timeMs } from '../config/units.ts'
import { type PeerGroup, Pool, type PoolOptions } from '../proxy/pools.ts'
import { buildGroup } from './balancing.ts'
import type { Memory } from './memory.ts'

/** A group as it runs. Its pool and the numbers of its peers live on across reloads. */
export interface LiveGroup extends PeerGroup {
  readonly balancing: Group
  readonly pool: Pool
}

/** Peers that a reload takes away, with the group whose zone and pool they have. */
export interface Leaving {
  readonly group: LiveGroup
  readonly peers: readonly Peer[]
  /** Those that stood for some of them in the zone of the group's shadow, which stays. */
  readonly twins: readonly Peer[]
}

/** The groups of a configuration, and what is no longer among them. */
export interface BuiltGroups {
  /** By lower-case name. */
  readonly groups: ReadonlyMap<string, LiveGroup>
  /** To be seen off once requests go by the new groups. */
  readonly leaving: readonly Leaving[]
}

/** A host that is not known. The message is nginx's. */
export class HostNotFound extends Error {}

/** A group as it is to be built, its hosts looked up. Plain data. */
export interface Plan {
  readonly name: string
  readonly block: UpstreamBlock
  readonly wanted: readonly Wanted[]
  /** Whether it is shared with other instances. */
  readonly fleet: boolean
}

/**
 * Looks up the hosts of every group of the configuration, the ones that a `proxy_pass` to a host implies too.
 * @param fleet whether there are other instances to share with
 * @throws HostNotFound
 */
export async function planGroups(
  http: HttpBlock,
  implied: readonly string[],
  fleet: boolean,
): Promise<readonly Plan[]> {
  const blocks = new Map<string, UpstreamBlock>(Object.entries(http.upstreams ?? {}))
  for (const authority of implied) blocks.set(authority, { servers: [{ address: authority }] })
  const plans: Plan[] = []
  for (const [name, block] of blocks) {
    const wanted: Wanted[] = []
    for (const line of block.servers ?? []) wanted.push(...(await peersOf(line)))
    plans.push({ name, block, wanted, fleet: fleet && block.fleet !== 'off' })
  }
  return plans
}

/**
 * Builds the groups. With those that run now, by lower-case name, what was learnt of peers that stay is taken over.
 * @param memory where their numbers lie
 */
export function buildGroups(
  plans: readonly Plan[],
  http: HttpBlock,
  variables: Variables,
  memory: Memory,
  old: ReadonlyMap<string, LiveGroup>,
): BuiltGroups {
  const groups = new Map<string, LiveGroup>()
  const leaving: Leaving[] = []
  for (const plan of plans) {
    const key = plan.name.toLowerCase()
    const before = old.get(key)
    const { zone, peers, backups, removed } = memory.seat(plan, before)
    const tracks = memory.tracks(plan, before)
    const { name, block, fleet } = plan
    const { group: balancing, removed: twins } = buildGroup(
      {
        name,
        block,
        keep: (block.response_time_factor ?? http.response_time_factor ?? 90) / 100,
        fleet,
        variables,
        seated: { zone, peers, backups, tracks },
        seatShadow: (kept, anew) => memory.shadow(plan, kept, anew),
      },
      before?.balancing,
    )
    const pool = before?.pool ?? new Pool(zone, poolOptions(block))
    pool.configure(poolOptions(block))
    const group = { balancing, pool }
    groups.set(key, group)
    if (removed.length > 0 || twins.length > 0) leaving.push({ group, peers: removed, twins })
  }
  for (const [key, group] of old) {
    if (groups.has(key)) continue
    const { peers, backups } = group.balancing.upstream
    leaving.push({ group, peers: [...peers, ...backups], twins: [] })
  }
  return { groups, leaving }
}

/** Closes the connections kept to peers that are gone. */
export function closeLeaving(leaving: readonly Leaving[]): void {
  for (const { group, peers } of leaving) for (const { name } of peers) group.pool.close(name)
}

/** Every authority that a `proxy_pass` without variables names and that is no group. */
export function impliedAuthorities(
  http: HttpBlock,
  authorityOf: (text: string) => string | undefined,
): string[] {
  const known = new Set(Object.keys(http.upstreams ?? {}).map((name) => name.toLowerCase()))
  const found = new Set<string>()
  const note = (text: string | undefined) => {
    const authority = text === undefined ? undefined : authorityOf(text)
    if (authority !== undefined && !known.has(authority.toLowerCase())) found.add(authority)
  }
  const walk = (locations: Readonly<Record<string, LocationBlock>> | undefined) => {
    for (const location of Object.values(locations ?? {})) {
      note(location.proxy_pass)
      for (const step of location.rewrites ?? []) if ('if' in step) note(step.proxy_pass)
      walk(location.locations)
    }
  }
  for (const server of http.servers ?? []) walk(server.locations)
  return [...found]
}

/** The peers of a `server` line: one for each address that its host has. */
async function peersOf(line: ServerLine): Promise<Wanted[]> {
  const address = serverAddress(line.address)
  const addresses =
    address.kind === 'unix' || isIP(address.host) ? [address] : await resolve(address, line.address)
  return addresses.map((address) => {
    const name = formatAddress(address)
    return { server: line.address, name, address, options: serverOptions(line, name) }
  })
}

async function resolve(address: Address & { kind: 'tcp' }, text: string): Promise<Address[]> {
  try {
    const found = await lookup(address.host, { all: true })
    return found.map(({ address: host }) => ({ kind: 'tcp', host, port: address.port }))
  } catch {
    throw new HostNotFound(`host not found in upstream "${text}"`)
  }
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
