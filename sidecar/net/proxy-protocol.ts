import { isIPv4, isIPv6 } from 'node:net'
import type { ProxiedAddresses } from '../../feedback/call.ts'
import { addressBytes } from '../../feedback/client-address.ts'
import { plain } from './trusted.ts'

/*
 * The PROXY protocol, versions 1 and 2 (HAProxy's specification): a header before the first byte of a connection, by which
 * whoever passes it on says between whom it was.
 */

/** A whole header. */
export interface ProxyHeader {
  /** Undefined where it says nothing of them: `UNKNOWN`, `LOCAL`, and sockets that have no ports. */
  readonly addresses: ProxiedAddresses | undefined
  /** Its bytes; what follows is the connection's own. */
  readonly length: number
}

/** What is no header, and why. */
export interface ProxyFault {
  readonly fault: string
}

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const word = Buffer.from('PROXY ', 'latin1')
/** Longest line of version 1, its line end included. */
const longestLine = 107
/** Longest header of version 2, with all that may be appended to the addresses; nginx's limit. */
const longestBinary = 4096

/**
 * Reads the header at the beginning of what has come of a connection.
 * @returns undefined as long as more of it is needed
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader | ProxyFault | undefined {
  if (begins(bytes, word)) return bytes.length < word.length ? undefined : readLine(bytes)
  if (begins(bytes, signature)) return bytes.length < 16 ? undefined : readBinary(bytes)
  return { fault: 'broken header' }
}

/** Whether the bytes begin so, as far as there are any. */
function begins(bytes: Buffer, wanted: Buffer): boolean {
  const length = Math.min(bytes.length, wanted.length)
  return bytes.compare(wanted, 0, length, 0, length) === 0
}

function readLine(bytes: Buffer): ProxyHeader | ProxyFault | undefined {
  const end = bytes.subarray(0, longestLine).indexOf('\r\n')
  if (end < 0) return bytes.length < longestLine ? undefined : { fault: 'header too long' }
  const line = bytes.toString('latin1', 0, end)
  const length = end + 2
  if (/^PROXY UNKNOWN(?: [^\r\n]*)?$/.test(line)) return { addresses: undefined, length }
  const [, family, from = '', to = '', fromPort = '', toPort = ''] =
    /^PROXY TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5})$/.exec(line) ?? []
  const is = family === '4' ? isIPv4 : isIPv6
  // The zone of a link is no part of an address that is worth anything elsewhere.
  const zoned = from.includes('%') || to.includes('%')
  if (family === undefined || !is(from) || !is(to) || zoned || +fromPort > 65_535 || +toPort > 65_535) {
    return { fault: 'broken header' }
  }
  return { addresses: addressesOf(from, +fromPort, to, +toPort), length }
}

function readBinary(bytes: Buffer): ProxyHeader | ProxyFault | undefined {
  const [version, command] = nibbles(bytes[12]!)
  const [family, transport] = nibbles(bytes[13]!)
  const length = 16 + bytes.readUInt16BE(14)
  if (version !== 2) return { fault: `unknown version ${version}` }
  if (command > 1) return { fault: `unknown command ${command}` }
  if (length > longestBinary) return { fault: 'header too long' }
  if (bytes.length < length) return undefined
  // Of a health check of the sender's own, and of families and transports without such addresses, nothing is taken.
  if (command === 0 || transport !== 1 || (family !== 1 && family !== 2)) {
    return { addresses: undefined, length }
  }
  const size = family === 1 ? 4 : 16
  if (length < 16 + 2 * size + 4) return { fault: 'broken header' }
  const text = (at: number) => addressText(bytes.subarray(at, at + size))
  const ports = 16 + 2 * size
  const addresses = addressesOf(
    text(16),
    bytes.readUInt16BE(ports),
    text(16 + size),
    bytes.readUInt16BE(ports + 2),
  )
  // A copy: what it was read from may be large.
  const more = Buffer.from(bytes.subarray(ports + 4, length))
  return { addresses: more.length > 0 ? { ...addresses, more } : addresses, length }
}

function nibbles(byte: number): [number, number] {
  return [byte >> 4, byte & 15]
}

function addressesOf(addr: string, port: number, serverAddr: string, serverPort: number): ProxiedAddresses {
  return { addr: plain(addr), port: `${port}`, serverAddr: plain(serverAddr), serverPort: `${serverPort}` }
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const inside = bytes.readUInt16BE(10) === 0xffff && bytes.subarray(0, 10).every((byte) => byte === 0)
  if (inside) return bytes.subarray(12).join('.')
  const words = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  // A URL's host is written as RFC 5952 has it.
  return new URL(`http://[${words.join(':')}]`).hostname.slice(1, -1)
}

/** Between whom a connection is. */
export interface Ends {
  readonly remoteAddr: string
  readonly remotePort: string
  readonly serverAddr: string
  readonly serverPort: string
}

/**
 * The header that tells a peer between whom a connection was; `UNKNOWN`, or `LOCAL`, where one end has no such address,
 * as on a Unix socket.
 * @param datagrams whether it is UDP, which version 1 has no word for
 */
export function proxyHeader(version: 'v1' | 'v2', ends: Ends, datagrams = false): Buffer {
  let from = addressBytes(ends.remoteAddr)
  let to = addressBytes(ends.serverAddr)
  if (from === undefined || to === undefined) {
    if (version === 'v1') return Buffer.from('PROXY UNKNOWN\r\n')
    return Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])])
  }
  // One family must do for both ends: where they differ, the IPv4 address is told as IPv6 has it.
  const mixed = from.length !== to.length
  if (mixed) [from, to] = [mapped(from), mapped(to)]
  const [fromPort, toPort] = [Number(ends.remotePort) || 0, Number(ends.serverPort) || 0]
  if (version === 'v1') {
    const text = (address: string) => (mixed && isIPv4(address) ? `::ffff:${address}` : address)
    const family = from.length === 4 ? 'TCP4' : 'TCP6'
    return Buffer.from(
      `PROXY ${family} ${text(ends.remoteAddr)} ${text(ends.serverAddr)} ${fromPort} ${toPort}\r\n`,
      'latin1',
    )
  }
  const family = (from.length === 4 ? 0x10 : 0x20) + (datagrams ? 2 : 1)
  const head = Buffer.from([0x21, family, 0, 2 * from.length + 4])
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(fromPort, 0)
  ports.writeUInt16BE(toPort, 2)
  return Buffer.concat([signature, head, from, to, ports])
}

function mapped(address: Buffer): Buffer {
  return address.length === 16
    ? address
    : Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xff]), address])
}
