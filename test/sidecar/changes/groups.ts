import type { Wanted } from '../../../feedback/carry.ts'
import type { Plan } from '../../../sidecar/build/plans.ts'
import { Changes, type Made } from '../../../sidecar/changes/changes.ts'
import { misfit, type WrittenGroup } from '../../../sidecar/changes/lines.ts'
import { formatAddress, serverAddress } from '../../../sidecar/config/address.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { serverOptions } from '../../../sidecar/config/server-options.ts'
import type { UpstreamBlock } from '../../../sidecar/config/upstream-model.ts'

/** Addresses that names have. */
export type Hosts = Readonly<Record<string, readonly string[]>>

/** The group `app` of a file, as it is before anything was changed of it. @param lines what stands in its block */
export function written(lines: string, hosts: Hosts = {}): Plan {
  const text = `events {} http { upstream app { ${lines} } server { listen 8080; location / { proxy_pass http://app; } } }`
  const { model } = loadText(text, 'test.conf', 'nginx')
  return planOf(model.http!.upstreams!['app']!, hosts)
}

function planOf(block: UpstreamBlock, hosts: Hosts = {}): Plan {
  const wanted = (block.servers ?? []).flatMap((line): Wanted[] => {
    const own = serverAddress(line.address)
    const host = own.kind === 'unix' ? '' : own.host
    const addresses = hosts[host]?.map((address) => ({ ...own, host: address })) ?? [own]
    return addresses.map((address) => {
      // A name's addresses are TCP ones.
      const name = formatAddress(address as typeof own)
      return {
        server: line.address,
        name,
        address: address as typeof own,
        options: serverOptions(line, name),
      }
    })
  })
  return { name: 'app', kind: 'http', block, wanted, fleet: false }
}

/** What fits, as the program has it. */
export const fits = (group: unknown, made: readonly Made[]): string | undefined =>
  // The plans of these tests have whole blocks.
  misfit(group as WrittenGroup, made)

/** The plan with changes in force. */
export function inForce(plan: Plan, made: readonly Made[]): Plan {
  return { ...plan, wanted: new Changes().with('app', made).apply('app', plan.wanted) }
}

/** Peers as people read them: name, and what differs from a plain line. */
export function read({ wanted }: Pick<Plan, 'wanted'>): string {
  return wanted
    .map(({ name, options: { weight, max_conns, down, drain, backup } }) =>
      [
        name.replace(/^127\.0\.0\.1:(?=8...$)/, ''),
        weight !== 1 && `weight=${weight}`,
        max_conns !== 0 && `max_conns=${max_conns}`,
        down && 'down',
        drain && 'drain',
        backup && 'backup',
      ]
        .filter(Boolean)
        .join(' '),
    )
    .join(', ')
}
