import { isIPv6 } from 'node:net'
import { Fault } from './fault.ts'

/** A URL of the `fleet` directive. */
export interface FleetUrl {
  /** As written, the scheme in lower case. */
  readonly text: string
  /** Whether it is `rediss://`. */
  readonly tls: boolean
  /** Where the URL names none: 0. */
  readonly database: number
}

/**
 * Takes `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]` apart. Characters of a user or a password that mean something
 * in a URL are written as `%40` and the like.
 * @throws Fault with nginx's text, in which no password stands
 */
export function fleetUrl(text: string): FleetUrl {
  const refuse = (what: string): never => {
    throw new Fault(`${what} in "${shownUrl(text)}" of the "fleet" directive`, 'urls')
  }
  const [prefix, scheme] = /^(rediss?):\/\//i.exec(text) ?? []
  if (prefix === undefined || scheme === undefined) return refuse('invalid URL prefix')
  const rest = text.slice(prefix.length)
  const end = rest.search(/[/?#]/)
  const authority = end < 0 ? rest : rest.slice(0, end)
  const at = authority.lastIndexOf('@')
  if (at >= 0 && !isUserInfo(authority.slice(0, at))) refuse('invalid user or password')
  const parts = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/s.exec(authority.slice(at + 1))
  if (parts === null) return refuse('invalid host')
  const [, host = '', port] = parts
  if (host === '') refuse('no host')
  if (!isHost(host)) refuse('invalid host')
  if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) <= 65_535)) {
    refuse('invalid port')
  }
  if (/[?#]/.test(rest)) refuse('invalid query')
  const database = /^\/?$|^\/(\d{1,9})$/.exec(end < 0 ? '' : rest.slice(end))
  if (database === null) return refuse('invalid database number')
  const canonical = scheme.toLowerCase()
  return {
    text: `${canonical}://${rest}`,
    tls: canonical === 'rediss',
    database: Number(database[1] ?? 0),
  }
}

/** A URL, or what was meant for one, without what may be a password: all up to the last `@`, and a query. */
export function shownUrl(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? ''
  const at = text.lastIndexOf('@')
  const rest = at < 0 ? text.slice(scheme.length) : `***${text.slice(at)}`
  return scheme + rest.replace(/\?.*$/s, '?***')
}

function isUserInfo(text: string): boolean {
  if (/[\s@\u0000-\u001f\u007f]/.test(text) || text.split(':').length > 2) return false
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function isHost(text: string): boolean {
  if (text.startsWith('[')) return isIPv6(text.slice(1, -1))
  // Underscores stand in names of containers.
  return /^[A-Za-z0-9._-]+$/.test(text)
}
