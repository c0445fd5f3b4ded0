import { createHash } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { type Adopted, adopt, retire, type Wanted } from '../../feedback/carry.ts'
import { monotonic } from '../../feedback/clock.ts'
import type { Address, ServerOptions } from '../../feedback/peer.ts'
import { Upstream } from '../../feedback/upstream.ts'
import type { Variables } from '../../feedback/variables.ts'
import type { Env, Method } from '../balance/method.ts'
import { defaultMethod, methods } from '../balance/methods.ts'
import { Group } from '../balance/pick.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { HttpBlock, LocationBlock, ServerLine, UpstreamBlock } from '../config/model.ts'
import { timeMs } from '../config/units.ts'
import { type PeerGroup, Pool, type PoolOptions } from '../proxy/pools.ts'

/** A group as it runs. Its pool and the numbers of its peers live on across reloads. */
export interface LiveGroup extends PeerGroup {
  readonly balancing: Group
  readonly pool: Pool
}

/** Groups whose hosts are known, ready to be built. */
export interface PlannedGroups {
  /**
   * Builds them. With the groups that run now, by lower-case name, what was learnt of peers that stay is taken over,
   * and those groups must not be given new requests afterwards.
   */
  build(variables: Variables, old: ReadonlyMap<string, LiveGroup>): ReadonlyMap<string, LiveGroup>
}

/** A host that is not known. The message is nginx's. */
export class HostNotFound extends Error {}

interface Plan {
  readonly name: string
  readonly block: UpstreamBlock
  readonly wanted: readonly Wanted[]
}

const env: Env = { now: () => monotonic(), random: Math.random }

/**
 * Looks up the hosts of every group of the configuration, the ones that a `proxy_pass` to a host implies too.
 * @throws HostNotFound
 */
export async function planGroups(http: HttpBlock, implied: readonly string[]): Promise<PlannedGroups> {
  const blocks = new Map<string, UpstreamBlock>(Object.entries(http.upstreams ?? {}))
  for (const authority of implied) blocks.set(authority, { servers: [{ address: authority }] })
  const plans: Plan[] = []
  for (const [name, block] of blocks) {
    const wanted: Wanted[] = []
    for (const line of block.servers ?? []) wanted.push(...(await peersOf(line)))
    plans.push({ name, block, wanted })
  }
  return {
    build(variables, old) {
      const groups = new Map<string, LiveGroup>()
      for (const plan of plans) {
        const key = plan.name.toLowerCase()
        groups.set(key, live(plan, http, variables, old.get(key)))
      }
      for (const [key, group] of old) {
        if (groups.has(key)) continue
        group.pool.close()
        const { zone, peers, backups } = group.balancing.upstream
        retire(zone, [...peers, ...backups])
      }
      return groups
    },
  }
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

function serverOptions(line: ServerLine, name: string): ServerOptions {
  return {
    weight: line.weight ?? 1,
    max_conns: line.max_conns ?? 0,
    max_fails: line.max_fails ?? 1,
    fail_timeout: ms(line.fail_timeout, 10_000),
    slow_start: ms(line.slow_start, 0),
    backup: line.backup === true,
    down: line.down === true,
    track: line.track ?? 'stable',
    sid: line.sid ?? createHash('md5').update(name).digest('hex'),
  }
}

function live(plan: Plan, http: HttpBlock, variables: Variables, old: LiveGroup | undefined): LiveGroup {
  const { block, name } = plan
  const adopted: Adopted = adopt(old?.balancing.upstream, plan.wanted, name)
  const factor = (block.response_time_factor ?? http.response_time_factor ?? 90) / 100
  const { method, args } = methodOf(block)
  const compile = (text: string) => variables.compile(text)
  const upstream = new Upstream({
    name,
    zone: adopted.zone,
    peers: adopted.peers,
    backups: adopted.backups,
    method: method.name,
    learning: method.learning(args, compile),
    responseTimeFactor: factor,
  })
  const primary = method.create(upstream, upstream.peers, args, env, compile)
  const backup =
    upstream.backups.length > 0 ? method.create(upstream, upstream.backups, args, env, compile) : undefined
  const options = poolOptions(block)
  const pool = old?.pool ?? new Pool(adopted.zone, options)
  pool.configure(options)
  for (const peer of adopted.removed) pool.close(peer.name)
  retire(adopted.zone, adopted.removed)
  return { balancing: new Group(upstream, primary, backup), pool }
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
