import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'

/** Why a request is turned away. */
export interface Refusal {
  readonly status: 401 | 403 | 415 | 421
  readonly error: string
}

/** What the guard must know of a request. Header values as received; undefined where absent. */
export interface Asked {
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly contentType: string | undefined
  readonly authorization: string | undefined
}

/** Where the request came in, and what the configuration says of such requests. */
export interface Gate {
  /** Whether the listener can be reached over loopback alone, or is a Unix socket. */
  readonly local: boolean
  readonly unix: boolean
  /** Further host names, lower case. */
  readonly hosts: readonly string[]
  /** Undefined where none is configured. */
  readonly token: string | undefined
}

/**
 * Refuses a request whose Host is a name that this server does not know. A page that a browser has loaded from
 * `evil.example` could otherwise reach a server on loopback by letting that name resolve to it (DNS rebinding);
 * the browser then sends that name. No browser speaks over a Unix socket, so there the field means nothing.
 */
export function refuseHost(asked: Asked, gate: Gate): Refusal | undefined {
  if (gate.unix || knownHost(asked.host, gate.hosts)) return undefined
  return { status: 421, error: 'the Host of the request is not a name of this server; see "admin_host"' }
}

function knownHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return false
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host)
  if (bracketed) return isIP(bracketed[1]!) === 6
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return name === 'localhost' || isIP(name) === 4 || names.includes(name)
}

/** Refuses a request that would change something and that may be another site's or a stranger's. */
export function refuseChange(asked: Asked, gate: Gate): Refusal | undefined {
  if (asked.origin !== undefined && !sameOrigin(asked.origin, asked.host)) {
    return { status: 403, error: 'the request comes from another origin' }
  }
  // A form of another site cannot send this type without asking first.
  const type = (asked.contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== 'application/json') {
    return { status: 415, error: 'a request that changes something needs "Content-Type: application/json"' }
  }
  if (gate.token === undefined) {
    if (gate.local) return undefined
    return { status: 403, error: 'changes from outside this host need "admin_token_file" to be configured' }
  }
  const given = /^Bearer +(\S+)$/i.exec(asked.authorization ?? '')?.[1]
  if (given !== undefined && sameSecret(given, gate.token)) return undefined
  return { status: 401, error: 'a valid token is required: "Authorization: Bearer TOKEN"' }
}

/** Whether an Origin is the server that the request was sent to. `null` is nobody's. */
function sameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false
  const url = new URL(origin)
  const own = `${url.protocol}//${host}`
  return url.host !== '' && URL.canParse(own) && new URL(own).host === url.host
}

/** Compares in a time that says nothing of where the two differ, nor of their lengths. */
export function sameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(secret))
}
