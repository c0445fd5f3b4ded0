import { isIP } from 'node:net'
import type { DnsServer } from './exchange.ts'

/** What `/etc/resolv.conf` says, as far as it matters here. */
export interface ResolvConf {
  /** At least one. */
  readonly servers: readonly DnsServer[]
  /** Domains in which short names are looked for, lower case. */
  readonly search: readonly string[]
  /** A name with fewer dots is looked for in the domains first. */
  readonly ndots: number
  /** How long a server may take, milliseconds. */
  readonly timeoutMs: number
  /** How often each is asked. */
  readonly attempts: number
  readonly rotate: boolean
}

/** The C library reads no more than three. */
const mostServers = 3

/** Reads it as the C library does: resolv.conf(5). What cannot be read is passed over. */
export function readResolvConf(text: string): ResolvConf {
  const servers: DnsServer[] = []
  let search: string[] = []
  const options = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (/^\s*[#;]/.test(line)) continue
    const [word, ...rest] = line.trim().split(/\s+/)
    if (word === 'nameserver') {
      const server = serverOf(rest[0] ?? '')
      if (server !== undefined && servers.length < mostServers) servers.push(server)
    }
    // Of these two the last one holds.
    if (word === 'domain') search = rest.slice(0, 1)
    if (word === 'search') search = rest
    if (word === 'options') {
      for (const option of rest) {
        const [name = '', value = ''] = option.split(':')
        options.set(name, value)
      }
    }
  }
  const number = (name: string, otherwise: number, most: number) => {
    const text = options.get(name)
    return text !== undefined && /^\d+$/.test(text) ? Math.min(most, Number(text)) : otherwise
  }
  return {
    servers: servers.length > 0 ? servers : [{ host: '127.0.0.1', port: 53 }],
    search: search.map((domain) => domain.toLowerCase().replace(/\.$/, '')).filter((domain) => domain !== ''),
    ndots: number('ndots', 1, 15),
    timeoutMs: 1000 * Math.max(1, number('timeout', 5, 30)),
    attempts: Math.max(1, number('attempts', 2, 5)),
    rotate: options.has('rotate'),
  }
}

/** `[::1]:5353` and `127.0.0.1:5353` too, for name servers that do not have the port to themselves. */
function serverOf(text: string): DnsServer | undefined {
  if (isIP(text)) return { host: text, port: 53 }
  const [, six, four, port] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? []
  const host = six ?? four ?? ''
  return isIP(host) ? { host, port: Number(port) } : undefined
}

/**
 * The names that a name may stand for, in the order in which they are looked for.
 * @param name lower case; with a dot at its end it stands for itself alone
 */
export function candidates(name: string, { search, ndots }: Pick<ResolvConf, 'search' | 'ndots'>): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)]
  const inside = search.map((domain) => `${name}.${domain}`)
  const dots = name.split('.').length - 1
  return dots >= ndots ? [name, ...inside] : [...inside, name]
}
