import { isIP } from 'node:net'

/** Addresses by name, lower case, as `/etc/hosts` has them; see hosts(5). */
export function readHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*$/, '').trim().split(/\s+/)
    // A scoped address is of use on one link alone.
    if (!isIP(address) || address.includes('%')) continue
    for (const name of names) {
      const known = hosts.get(name.toLowerCase()) ?? []
      if (!known.includes(address)) known.push(address)
      hosts.set(name.toLowerCase(), known)
    }
  }
  return hosts
}

const loopback = ['127.0.0.1', '::1']

/**
 * Addresses of a name that is not to be asked for. `localhost` is never asked for (RFC 6761, 6.3).
 * @param name lower case
 */
export function localAddresses(
  name: string,
  hosts: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  const bare = name.replace(/\.$/, '')
  return hosts.get(bare) ?? (/(^|\.)localhost$/.test(bare) ? loopback : undefined)
}
