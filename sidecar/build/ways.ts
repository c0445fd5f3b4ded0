import { bytes } from '../../feedback/bytes.ts'
import { Call } from '../../feedback/call.ts'
import type { Peer } from '../../feedback/peer.ts'
import { sessionKey } from '../../feedback/sessions/sessions.ts'
import type { StickyFacts, SwitchFacts, UpstreamFacts } from '../admin/facts.ts'
import type { Group } from '../balance/group.ts'
import { hasVariables, serverAddress } from '../config/address.ts'
import { timeMs } from '../config/units.ts'
import type { UpstreamBlock } from '../config/upstream-model.ts'
import type { LiveGroup } from './groups.ts'
import type { Plan } from './plans.ts'
import { queueOptions } from './queues.ts'

/** What the admin server shows of what a group's block says beside its method. */
export function waysOf({
  balancing,
  plan: { block, wanted },
}: LiveGroup): Pick<UpstreamFacts, 'service' | 'followed' | 'sticky' | 'queue' | 'backupSwitch'> {
  return {
    service: servicesOf(block, wanted),
    followed: followedOf(block),
    sticky: stickyFacts(block, balancing),
    queue: queueOptions(block),
    backupSwitch: switchFacts(block),
  }
}

/** Most groups have no services: nothing is looked for there. */
function servicesOf(block: UpstreamBlock, wanted: Plan['wanted']): UpstreamFacts['service'] {
  const lines = new Map<string, string>()
  for (const { address, service } of block.servers ?? []) if (service) lines.set(address, service)
  if (lines.size === 0) return () => undefined
  const found = new Map<string, string | undefined>()
  for (const { name, server, line } of wanted) found.set(`${name} ${server}`, lines.get(line ?? server))
  return ({ name, server }) => found.get(`${name} ${server}`)
}

function followedOf({ servers = [] }: UpstreamBlock): UpstreamFacts['followed'] {
  return servers.flatMap(({ address: text, resolve, service }) => {
    const address = resolve ? serverAddress(text) : undefined
    return address?.kind === 'tcp' ? [{ host: address.host.toLowerCase(), service }] : []
  })
}

function stickyFacts(
  { sticky, sticky_secret: secret = '', sticky_strict: strict = false }: UpstreamBlock,
  group: Group,
): StickyFacts | undefined {
  if (sticky === undefined) return undefined
  const known = 'learn' in sticky || !hasVariables(secret)
  return {
    mode: 'cookie' in sticky ? 'cookie' : 'route' in sticky ? 'route' : 'learn',
    strict,
    bound: (session, now) => (known ? boundPeers(group, bytes(session), now) : undefined),
  }
}

/** @param session bytes; see `StickyFacts.bound` */
function boundPeers({ sticky }: Group, session: string, now: number): readonly Peer[] {
  if (sticky === undefined) return []
  const { ids, rules } = sticky
  const { book, secret } = rules
  const hint = book === undefined ? session : book.find(sessionKey(session), now)
  return hint === '' ? [] : ids.find(hint, secret?.(new Call()))
}

function switchFacts({ backup_switch: line }: UpstreamBlock): SwitchFacts | undefined {
  if (line === undefined) return undefined
  return { after: line.permanent === true ? undefined : timeMs(line.permanent) }
}
