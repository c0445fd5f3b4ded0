import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import type { Wanted } from '../../feedback/carry.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Address, Peer } from '../../feedback/peer.ts'
import type { Track } from '../../feedback/track.ts'
import { Upstream } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Zone } from '../../feedback/zone.ts'
import type { Env, Method } from '../balance/method.ts'
import { defaultMethod, methods } from '../balance/methods.ts'
import { Group } from '../balance/pick.ts'
import { Split, type SplitRule } from '../balance/split.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { HttpBlock, LocationBlock, ServerLine, SplitLine, UpstreamBlock } from '../config/model.ts'
import { serverOptions } from '../config/server-options.ts'
import { timeMs } from '../config/units.ts'
import { type PeerGroup, Pool, type PoolOptions } from '../proxy/pools.ts'
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

const env: Env = { now: () => monotonic(), random: Math.random }

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
    const { zone, peers, backups, removed } = memory.seat(plan, old.get(key))
    const tracks = memory.tracks(plan, old.get(key))
    const group = live(plan, http, variables, { zone, peers, backups, tracks }, old.get(key))
    groups.set(key, group)
    if (removed.length > 0) leaving.push({ group, peers: removed })
  }
  for (const [key, group] of old) {
    if (groups.has(key)) continue
    const { peers, backups } = group.balancing.upstream
    leaving.push({ group, peers: [...peers, ...backups] })
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

/** Where the numbers of a group lie. */
interface Seated {
  readonly zone: Zone
  readonly peers: readonly Peer[]
  readonly backups: readonly Peer[]
  readonly tracks: ReadonlyMap<string, Track>
}

function live(
  { block, name, fleet }: Plan,
  http: HttpBlock,
  variables: Variables,
  seated: Seated,
  old: LiveGroup | undefined,
): LiveGroup {
  const factor = (block.response_time_factor ?? http.response_time_factor ?? 90) / 100
  const { method, args } = methodOf(block)
  const compile = (text: string) => variables.compile(text)
  const upstream = new Upstream({
    name,
    ...seated,
    method: method.name,
    learning: method.learning(
      args,
      (text) => variables.fresh(text),
      factor,
      (text, is) => variables.involves(text, is),
    ),
    responseTimeFactor: factor,
    fleet,
    split: block.split !== undefined,
  })
  const make = (peers: readonly Peer[]) => method.create(upstream, peers, args, env, compile)
  const primary = block.split
    ? new Split(upstream.peers, splitRule(block.split, compile), make)
    : make(upstream.peers)
  const backup = upstream.backups.length > 0 ? make(upstream.backups) : undefined
  const options = poolOptions(block)
  const pool = old?.pool ?? new Pool(seated.zone, options)
  pool.configure(options)
  return { balancing: new Group(upstream, primary, backup), pool }
}

/** How requests are split, its variables compiled. */
function splitRule(
  { by, percent, key }: SplitLine,
  compile: (text: string) => (call: Call) => string,
): SplitRule {
  const reader = (text: string | undefined) =>
    text === undefined ? undefined : { text, read: compile(text) }
  return { variable: reader(by), percents: new Map(Object.entries(percent ?? {})), key: reader(key) }
}

function methodOf(block: UpstreamBlock): { method: Method; args: Record<string, unknown> } {
  const entries = new Map<string, unknown>(Object.entries(block))
  for (const method of methods) {
    const args = entries.get(method.name)
    // Arguments were checked by the method's own schema; `true` stands for none.
    if (args !== undefined) return { method, args: args === true ? {} : (args as Record<string, unknown>) }
  }
  return { method: defaultMethod, args: {} }
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
