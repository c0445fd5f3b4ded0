import type { Call } from '../call.ts'

/**
 * What a PROXY header of version 2 says beside the addresses, by type: `$proxy_protocol_tlv_alpn`,
 * `$proxy_protocol_tlv_0xEA`, and `$proxy_protocol_tlv_ssl_cn` of what is inside of the type `ssl`. nginx's names.
 */

const types: Readonly<Record<string, number>> = {
  __proto__: null as never,
  alpn: 0x01,
  authority: 0x02,
  unique_id: 0x05,
  ssl: 0x20,
  netns: 0x30,
}
const insideSsl: Readonly<Record<string, number>> = {
  __proto__: null as never,
  version: 0x21,
  cn: 0x22,
  cipher: 0x23,
  sig_alg: 0x24,
  key_alg: 0x25,
}

/** Before what is inside of `ssl`: a byte of flags, and four that are zero where the certificate has passed. */
const sslHead = 5

/** @param rest the name after `proxy_protocol_tlv_`, lower case; one that there is not is empty, as in nginx */
export function tlvRead(rest: string): (call: Call) => string {
  const inside = rest.startsWith('ssl_')
  if (rest === 'ssl_verify') return (call) => verified(find(call.proxied?.more, types['ssl']!))
  const type = typeOf(inside ? rest.slice(4) : rest, inside ? insideSsl : types)
  if (type === undefined) return () => ''
  if (!inside) return (call) => find(call.proxied?.more, type)?.toString('latin1') ?? ''
  return (call) => {
    const ssl = find(call.proxied?.more, types['ssl']!)
    return find(ssl?.subarray(sslHead), type)?.toString('latin1') ?? ''
  }
}

function typeOf(name: string, named: Readonly<Record<string, number>>): number | undefined {
  return /^0x[0-9a-f]{1,2}$/.test(name) ? Number(name) : named[name]
}

/** The first one of that type: a byte of type, two of length, and so many more. */
function find(bytes: Buffer | undefined, type: number): Buffer | undefined {
  if (bytes === undefined) return undefined
  for (let at = 0; at + 3 <= bytes.length; ) {
    const end = at + 3 + bytes.readUInt16BE(at + 1)
    if (end > bytes.length) return undefined
    if (bytes[at] === type) return bytes.subarray(at + 3, end)
    at = end
  }
  return undefined
}

function verified(ssl: Buffer | undefined): string {
  return ssl === undefined || ssl.length < sslHead ? '' : `${ssl.readUInt32BE(1)}`
}
