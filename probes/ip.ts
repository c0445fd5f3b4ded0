import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * The bytes of an address: 4 of IPv4, also where it is written in IPv6's form (`::ffff:127.0.0.1`), 16 of IPv6, its
 * zone (`%eth0`) left out.
 * @returns undefined for a text that is no IP address
 */
export function ipBytes(host: string): Uint8Array | undefined {
  if (isIPv4(host)) return Uint8Array.from(host.split('.'), Number)
  if (!isIPv6(host)) return undefined
  const [text = ''] = host.split('%')
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  const right = groups(tail ?? '')
  // `::` stands for as many zeros as are missing.
  const bytes = Uint8Array.from([...left, ...Array(16 - left.length - right.length).fill(0), ...right])
  return isMapped(bytes) ? bytes.subarray(12) : bytes
}

function groups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}

function isMapped(bytes: Uint8Array): boolean {
  return bytes.every((byte, i) => i >= 12 || byte === (i < 10 ? 0 : 0xff))
}

/** Whether it is the address of all addresses: `0.0.0.0` or `::`. */
export function isWildcard(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0)
}

/** Whether this host answers to the address: its own, one of the loopback network, or the one of all addresses. */
export function isOwn(bytes: Uint8Array): boolean {
  if (isWildcard(bytes) || (bytes.length === 4 && bytes[0] === 127)) return true
  return Object.values(networkInterfaces()).some((addresses = []) =>
    addresses.some(({ address }) => same(bytes, ipBytes(address))),
  )
}

function same(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && Buffer.compare(a, b) === 0
}
