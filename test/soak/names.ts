import type { DnsServer } from '../support/dns-server.ts'
import { followedName, followedPeers } from './configuration.ts'

/** The question that the program asks. */
const asked = `_http._tcp.${followedName}`

/** Has the name mean one or more of its peers, drawn anew, or makes the server fail for a while. */
export async function moveName(
  dns: DnsServer,
  address: (name: string) => string,
  dice: () => number,
): Promise<void> {
  const at = dice()
  if (at < 0.1) return dns.instead(asked, { code: 'SERVFAIL' })
  if (at < 0.15) return dns.instead(asked, { how: 'drop' })
  const there = followedPeers.filter(() => dice() < 0.6)
  // Retries need somebody to go to.
  while (there.length < 2) there.push(followedPeers[there.length === 1 && there[0] === 'a' ? 1 : 0]!)
  const answers = there.map((name) => {
    const port = Number(address(name).split(':')[1])
    const priority = dice() < 0.8 ? 1 : 2
    const data = { priority, weight: Math.floor(dice() * 10), port, target: `host.${followedName}` }
    return { type: 'SRV' as const, name: asked, ttl: 0, data }
  })
  await dns.set({
    [`* ${asked}`]: { answers },
    [`A host.${followedName}`]: {
      answers: [{ type: 'A', name: `host.${followedName}`, ttl: 0, data: '127.0.0.1' }],
    },
  })
}
