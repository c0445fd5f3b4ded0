import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import type { Call } from './call.ts'

/**
 * The bytes of an address: 4 of IPv4, 16 of IPv6; an IPv4 address inside an IPv6 one stays 16.
 * @returns undefined when the text is no IP address
 */
export function addressBytes(text: string): Buffer | undefined {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number))
  if (!isIPv6(text)) return undefined
  let plain = text.split('%')[0]!
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain)
  if (tail) {
    const [a, b, c, d] = tail.slice(2).map(Number)
    plain = `${tail[1]}${((a! << 8) | b!).toString(16)}:${((c! << 8) | d!).toString(16)}`
  }
  const [left, right] = plain.split('::')
  const words = (part: string | undefined) => (part ? part.split(':') : [])
  const [first, last] = [words(left), words(right)]
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  const bytes = Buffer.alloc(16)
  for (const [i, word] of [...first, ...zeros, ...last].entries())
    bytes.writeUInt16BE(Number.parseInt(word, 16), i * 2)
  return bytes
}

/** Where a client's address comes from when it reaches this proxy through others. */
export interface RealIpOptions {
  /** `set_real_ip_from`: addresses and networks (`10.0.0.0/8`) that are believed, and `unix:` for Unix sockets. */
  readonly from: readonly string[]
  /** `real_ip_header`: name of the field, any letter case. */
  readonly header: string
  /** `real_ip_recursive`: go on to the left past addresses that are believed as well. */
  readonly recursive: boolean
}

/**
 * Makes what replaces `$remote_addr` and `$remote_port` of a call whose client is a believed proxy, after nginx's realip
 * rules: the field's last address counts; with `recursive` the last that is not believed. A port may stand at it;
 * without one `$remote_port` is empty. What is no address ends the search.
 * @returns undefined when nobody is believed
 * @throws Error for what is neither address nor network
 */
export function compileRealIp(options: RealIpOptions): ((call: Call) => void) | undefined {
  const { from, recursive } = options
  if (from.length === 0) return undefined
  const networks = new BlockList()
  let unix = false
  for (const text of from) {
    if (text === 'unix:') unix = true
    else addNetwork(networks, text)
  }
  const name = options.header.toLowerCase()
  const believed = (address: string): boolean => {
    if (address.startsWith('unix:')) return unix
    const plain = unmapped(address)
    const version = isIP(plain)
    return version !== 0 && networks.check(plain, version === 4 ? 'ipv4' : 'ipv6')
  }
  return (call) => {
    if (!believed(call.remoteAddr)) return
    const value = call.header(name)
    if (value === undefined) return
    const items = value.split(/[ ,]+/).filter((item) => item !== '')
    for (let i = items.length - 1; i >= 0; i--) {
      const found = parseAddress(items[i]!)
      if (!found) return
      call.remoteAddr = found.host
      call.remotePort = found.port
      if (!recursive || !believed(found.host)) return
    }
  }
}

function addNetwork(networks: BlockList, text: string): void {
  const [address, bits, ...rest] = text.split('/')
  const version = isIP(address!)
  const most = version === 4 ? 32 : 128
  const width = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (version === 0 || rest.length > 0 || !(width <= most)) {
    throw new Error(`invalid address or network "${text}" in "set_real_ip_from"`)
  }
  networks.addSubnet(address!, width, version === 4 ? 'ipv4' : 'ipv6')
}

/** `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]` or `[::1]:80`. */
function parseAddress(text: string): { host: string; port: string } | undefined {
  if (isIP(text)) return { host: text, port: '' }
  const parts = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text)
  const host = parts?.[1] ?? parts?.[2] ?? ''
  const port = parts?.[3] ?? ''
  if (isIP(host) !== (parts?.[1] === undefined ? 4 : 6) || Number(port) > 65535) return undefined
  return { host, port }
}

/** An IPv4 client of a socket that listens on IPv6 too is believed as what it is. */
function unmapped(address: string): string {
  const inner = /^::ffff:(.+)$/i.exec(address)?.[1]
  return inner !== undefined && isIPv4(inner) ? inner : address
}
