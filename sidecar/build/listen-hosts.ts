import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { listenAddress } from '../config/address.ts'
import { listenTexts } from '../config/listen-range.ts'
import type { Model } from '../config/model.ts'
import { PartError } from './place.ts'

/**
 * Looks up the hosts of `listen` lines, so that a wrong one shows before anything is opened.
 * @throws PartError where one is not known
 */
export async function checkListenHosts({
  http = {},
  stream = {},
}: Pick<Model, 'http' | 'stream'>): Promise<void> {
  const known = new Set<string>()
  for (const { listen = [] } of [...(http.servers ?? []), ...(stream.servers ?? [])]) {
    for (const line of listen) {
      const address = listenAddress(listenTexts(line.address)[0]!)
      if (address.kind === 'unix' || address.host === '*' || isIP(address.host) || known.has(address.host))
        continue
      known.add(address.host)
      await lookup(address.host).catch(() => {
        throw new PartError(`host not found in "${line.address}" of the "listen" directive`, line, 'address')
      })
    }
  }
}
