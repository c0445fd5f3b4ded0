import { lookup } from 'node:dns/promises'
import type { Wanted } from '../../feedback/carry.ts'
import type { Address } from '../../feedback/peer.ts'
import type { NewServer } from '../admin/runtime-facts.ts'
import type { Plan } from '../build/plans.ts'
import { formatAddress, serverAddress } from '../config/address.ts'
import { serverOptions } from '../config/server-options.ts'
import type { ServerLine } from '../config/upstream-model.ts'
import { type Aim, aimAt, canonical, type Next, Refusal, type Wisher } from './aim.ts'
import { type Made, saying, wordsOfLine } from './changes.ts'
import { isLiteral, Misfit, readLine } from './lines.ts'

/**
 * What another server makes of the changes of a group. A name is looked up now, and not followed.
 * @throws Refusal
 */
export async function adding(
  plan: Plan,
  made: readonly Made[],
  server: NewServer,
  { by, at }: Wisher,
): Promise<Next> {
  const { name, wanted } = plan
  needZone(plan)
  const again = returning(made, server)
  if (again !== undefined) return again
  const line = parsed(name, server)
  const peers: Wanted[] = []
  for (const address of await addressesOf(line)) {
    const own = formatAddress(address)
    if (peers.some((peer) => peer.name === own)) continue
    peers.push({ server: line.address, name: own, address, options: serverOptions(line, own) })
  }
  const names = peers.map((peer) => peer.name)
  const there = names.find((name) => wanted.some((peer) => peer.name === name))
  if (there !== undefined) throw new Refusal(409, `upstream "${name}" has a peer "${there}" already`)
  const gone = made.find(
    ({ kind, whole, target }) =>
      kind === 'removed' && (whole ? target === line.address : names.includes(target)),
  )
  if (gone !== undefined) {
    const text = `peer "${gone.target}" is in the file: give "server":"${gone.target}" alone, and it comes back as it stands there`
    throw new Refusal(409, text)
  }
  const change: Made = {
    upstream: name,
    kind: 'added',
    target: line.address,
    whole: true,
    value: wordsOfLine(line),
    file: undefined,
    ...{ at, by, line, peers },
    lines: [line.address],
    was: '',
  }
  return { made: [...made, change], peers: names, deeds: ['add'], words: [`server ${change.value} is added`] }
}

/** What was removed comes back by its name alone, whatever that stands for. */
function returning(made: readonly Made[], server: NewServer): Next | undefined {
  if (Object.keys(server).length !== 1 || typeof server['server'] !== 'string') return undefined
  const text = server['server']
  const own = canonical(text)
  const gone = made.filter(({ kind, target }) => kind === 'removed' && (target === text || target === own))
  if (gone.length === 0) return undefined
  const [{ target }] = gone as [Made]
  const left = made.filter((change) => !gone.includes(change))
  return { made: left, peers: [target], deeds: ['add'], words: [`${target} is back as in the file`] }
}

function parsed(group: string, server: NewServer): ServerLine {
  try {
    return readLine(group, server)
  } catch (error) {
    throw error instanceof Misfit ? new Refusal(422, error.message) : error
  }
}

async function addressesOf({ address: text }: ServerLine): Promise<readonly Address[]> {
  const address = serverAddress(text)
  if (address.kind === 'unix' || isLiteral(text)) return [address]
  try {
    const found = await lookup(address.host, { all: true })
    return found.map(({ address: host }) => ({ kind: 'tcp', host, port: address.port }))
  } catch {
    throw new Refusal(422, `host not found in upstream "${text}"`)
  }
}

/**
 * What it makes of them that a peer goes.
 * @throws Refusal
 */
export function removing(plan: Plan, made: readonly Made[], address: string, { by, at }: Wisher): Next {
  needZone(plan)
  const aim = aimAt(plan, made, address)
  const { whole, target, lines } = aim
  const leaves = new Set(aim.peers.filter(({ options }) => !options.backup))
  if (leaves.size > 0 && plan.wanted.every((peer) => peer.options.backup || leaves.has(peer))) {
    const text = `"${target}" is the last primary of upstream "${plan.name}": set its state to "down" instead`
    throw new Refusal(409, text)
  }
  // What was changed of it goes with it.
  const about = (change: Made) =>
    change.kind !== 'added' &&
    (whole ? change.lines.includes(target) : !change.whole && change.target === target)
  const next = made.flatMap((change) => (about(change) ? [] : cut(change, aim)))
  const own = (plan.block.servers ?? []).filter((line) => lines.includes(line.address))
  if (own.length > 0) {
    next.push({
      upstream: plan.name,
      kind: 'removed',
      value: undefined,
      file: own.map(wordsOfLine).join(', '),
      ...{ target, whole, at, by },
      lines: own.map((line) => line.address),
      was: saying(own, 'removed'),
    })
  }
  const peers = aim.peers.map(({ name }) => name)
  return { made: next, peers, deeds: ['remove'], words: [`${target} is removed`], conflict: true }
}

/** What is left of an addition. */
function cut(change: Made, { whole, target }: Aim): Made[] {
  if (change.kind !== 'added' || change.peers === undefined) return [change]
  if (whole) return change.target === target ? [] : [change]
  const peers = change.peers.filter(({ name }) => name !== target)
  if (peers.length === change.peers.length) return [change]
  return peers.length === 0 ? [] : [{ ...change, peers }]
}

function needZone({ name, block }: Plan): void {
  if (block.zone !== undefined) return
  throw new Refusal(
    409,
    `upstream "${name}" has no "zone": servers can be added and removed only where there is one`,
  )
}
