import { isIPv4, isIPv6 } from 'node:net'

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
