import type { CallPreread } from '../../feedback/call-tls.ts'
import { opening } from '../tls/client-hello.ts'

const nothing: CallPreread = { serverName: '', protocol: '', alpn: [] }

/** nginx's names of versions. */
const versions: ReadonlyMap<number, string> = new Map([
  [0x0002, 'SSLv2'],
  [0x0300, 'SSLv3'],
  [0x0301, 'TLSv1'],
  [0x0302, 'TLSv1.1'],
  [0x0303, 'TLSv1.2'],
  [0x0304, 'TLSv1.3'],
])

/**
 * What the first bytes of a client say of TLS. What is none, or cannot be read, says nothing, and goes on.
 * @param bytes all that have come
 * @returns undefined: more has to come
 */
export function preread(bytes: Buffer): CallPreread | undefined {
  const old = oldHello(bytes)
  if (old !== 'no') return old
  const found = opening(bytes)
  if (found.kind === 'more') return undefined
  if (found.kind !== 'hello') return nothing
  const { serverName, alpn, versions: spoken } = found.hello
  // Clients put numbers among them that are no versions, so that nobody gets used to a fixed list (RFC 8701).
  const known = spoken.filter((version) => versions.has(version))
  return { serverName, protocol: versions.get(Math.max(0, ...known)) ?? '', alpn }
}

/** A message in the form of SSL 2, by which clients of long ago ask for later versions as well: it names no host. */
function oldHello(bytes: Buffer): CallPreread | undefined | 'no' {
  const [first = 0, , type = 1, major = 0, minor] = bytes
  if ((first & 0x80) === 0 || type !== 1 || (major !== 0 && major !== 3)) return 'no'
  if (minor === undefined) return undefined
  return { ...nothing, protocol: versions.get((major << 8) + minor) ?? '' }
}
