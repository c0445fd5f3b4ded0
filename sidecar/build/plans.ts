import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Wanted } from '../../feedback/carry.ts'
import type { Address } from '../../feedback/peer.ts'
import { streamPrefix } from '../../feedback/upstream.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import type { HttpBlock } from '../config/model.ts'
import { serverOptions } from '../config/server-options.ts'
import type { Resolving, ServerLine, UpstreamBlock } from '../config/upstream-model.ts'
import type { FollowedName, FoundAddress, Membership } from '../membership.ts'
import { PartError } from './place.ts'
import { resolverSpec } from './resolver-spec.ts'

/** A host that is not known. The message is nginx's. */
class HostNotFound extends Error {}

/** A group as it is to be built, with the peers that it has now. Plain data. */
export interface Plan {
  /** That of its `Upstream`: of `stream`, with the prefix. */
  readonly name: string
  readonly kind: 'http' | 'stream'
  readonly block: UpstreamBlock
  readonly wanted: readonly Wanted[]
  /** Whether it is shared with other instances. */
  readonly fleet: boolean
}

/** A line of a group: its addresses, or the name that says which they are at the moment. */
interface DraftLine {
  readonly line: ServerLine
  readonly addresses: readonly Address[]
  readonly name: FollowedName | undefined
}

/** A group of the configuration, the hosts of its lines looked up where they are not followed. */
export interface Draft extends Omit<Plan, 'wanted'> {
  readonly lines: readonly DraftLine[]
}

/**
 * Looks up the hosts of every group of the configuration, the ones that a `proxy_pass` to a host implies too.
 * @param outer `http` or `stream`
 * @param fleet whether there are other instances to share with
 * @throws HostNotFound
 */
export async function draftGroups(
  outer: Resolving & Pick<HttpBlock, 'upstreams'>,
  implied: readonly string[],
  fleet: boolean,
  kind: 'http' | 'stream' = 'http',
): Promise<readonly Draft[]> {
  const blocks = new Map<string, UpstreamBlock>(Object.entries(outer.upstreams ?? {}))
  for (const authority of implied) blocks.set(authority, { servers: [{ address: authority }] })
  const drafts: Draft[] = []
  for (const [name, block] of blocks) {
    const lines: DraftLine[] = []
    for (const line of block.servers ?? []) lines.push(await draftLine(line, name, block, outer))
    const full = kind === 'stream' ? `${streamPrefix}${name}` : name
    drafts.push({ name: full, kind, block, lines, fleet: fleet && block.fleet !== 'off' })
  }
  return drafts
}

/** Every name that has to be followed for these groups. */
export function followedNames(drafts: readonly Draft[]): readonly FollowedName[] {
  return drafts.flatMap(({ lines }) => lines.flatMap(({ name }) => name ?? []))
}

/** The groups with the peers that they have at the moment. */
export function planGroups(drafts: readonly Draft[], membership: Membership): readonly Plan[] {
  const plans = drafts.map(({ lines, ...group }) => ({
    ...group,
    wanted: lines.flatMap((line) => wantedOf(line, membership)),
  }))
  return membership.changed(plans)
}

function wantedOf({ line, addresses, name }: DraftLine, membership: Membership): Wanted[] {
  if (name === undefined) return addresses.map((address) => peerOf(line, address, line.address))
  return membership.resolved(name).flatMap((found) => peersFound(line, found))
}

/**
 * Of services, those to be used first make primaries and the others backups; of a line that is a backup itself, the
 * first make backups and the others nothing (as nginx has it).
 */
function peersFound(line: ServerLine, { address, target, weight, secondary }: FoundAddress): Wanted[] {
  if (secondary && line.backup) return []
  const usual = line.weight === undefined || line.weight === 1
  const own = {
    ...line,
    ...(weight !== undefined && usual && { weight }),
    ...(secondary && { backup: true as const }),
  }
  return [peerOf(own, address, target ?? line.address)]
}

function peerOf(line: ServerLine, address: Address, server: string): Wanted {
  const name = formatAddress(address)
  const from = server === line.address ? {} : { line: line.address }
  return { server, ...from, name, address, options: serverOptions(line, name) }
}

async function draftLine(
  line: ServerLine,
  group: string,
  block: UpstreamBlock,
  outer: Resolving,
): Promise<DraftLine> {
  const address = serverAddress(line.address)
  if (address.kind === 'unix' || isIP(address.host)) return { line, addresses: [address], name: undefined }
  if (line.resolve) return { line, addresses: [], name: await followed(line, address, group, block, outer) }
  return { line, addresses: await lookUp(address, line.address), name: undefined }
}

async function followed(
  line: ServerLine,
  { host, port }: Address & { kind: 'tcp' },
  group: string,
  block: UpstreamBlock,
  outer: Resolving,
): Promise<FollowedName> {
  const resolver = await resolverSpec(block, outer)
  if (resolver === 'off') {
    const text = `no resolver configured for resolving names at run time in upstream "${group}"`
    throw new PartError(text, line, 'resolve')
  }
  return { host, port, service: line.service, resolver }
}

async function lookUp(address: Address & { kind: 'tcp' }, text: string): Promise<Address[]> {
  try {
    const found = await lookup(address.host, { all: true })
    return found.map(({ address: host }) => ({ kind: 'tcp', host, port: address.port }))
  } catch {
    throw new HostNotFound(`host not found in upstream "${text}"`)
  }
}
