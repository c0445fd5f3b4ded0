import type { Peer } from '../../feedback/peer.ts'
import type { StickyFacts, SwitchFacts, UpstreamFacts } from '../admin/facts.ts'
import type { UpstreamBlock } from '../config/model.ts'
import { timeMs } from '../config/units.ts'
import type { Plan } from './plans.ts'
import { queueOptions } from './queues.ts'

/** What the admin server shows of what a group's block says beside its method. */
export function waysOf({
  block,
  wanted,
}: Plan): Pick<UpstreamFacts, 'service' | 'sticky' | 'queue' | 'backupSwitch'> {
  return {
    service: (peer) => serviceOf(peer, block, wanted),
    sticky: stickyFacts(block),
    queue: queueOptions(block),
    backupSwitch: switchFacts(block),
  }
}

function serviceOf({ name, server }: Peer, block: UpstreamBlock, wanted: Plan['wanted']): string | undefined {
  const own = wanted.find((one) => one.name === name && one.server === server)
  const line = own?.line ?? own?.server
  return line === undefined ? undefined : block.servers?.find(({ address }) => address === line)?.service
}

function stickyFacts({ sticky, sticky_strict: strict = false }: UpstreamBlock): StickyFacts | undefined {
  if (sticky === undefined) return undefined
  if ('cookie' in sticky) return { mode: 'cookie', strict }
  return { mode: 'route' in sticky ? 'route' : 'learn', strict }
}

function switchFacts({ backup_switch: line }: UpstreamBlock): SwitchFacts | undefined {
  if (line === undefined) return undefined
  return { after: line.permanent === true ? undefined : timeMs(line.permanent) }
}
