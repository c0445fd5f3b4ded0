import { isIP } from 'node:net'
import type { Call } from '../../feedback/call.ts'
import { plain, Trusted } from '../net/trusted.ts'

/** What `set_real_ip_from` and its kin say. */
export interface RealIpOptions {
  /** Addresses, networks (`10.0.0.0/8`), or `unix:` for clients on a Unix socket. */
  readonly from: readonly string[]
  /** `X-Real-IP`, `X-Forwarded-For` or another field's name, or `proxy_protocol`. */
  readonly header: string
  /** Whether to go on, from the last address of the field to the first, past trusted ones. */
  readonly recursive: boolean
}

/**
 * Takes the client's address from a field that a trusted proxy has written: where the socket's address is trusted,
 * the last address of the field; with `recursive` the last one that is not trusted itself. A field from anybody
 * else is left alone.
 * @throws Error `invalid parameter "…"`
 */
export function realIp(options: RealIpOptions): (call: Call) => void {
  const trusted = new Trusted(options.from)
  const name = options.header.toLowerCase()
  if (name === 'proxy_protocol') return (call) => ofPrelude(call, trusted)
  return (call) => {
    // Once is enough: what was taken came from a client that is not trusted.
    if (call.remoteAddr !== call.realipRemoteAddr) return
    if (!trusted.has(call.remoteAddr)) return
    const value = call.header(name)
    if (value === undefined) return
    const entries = value.split(/[ ,]+/).filter((entry) => entry !== '')
    for (let i = entries.length - 1; i >= 0; i -= 1) {
      const found = addressOf(entries[i]!)
      if (!found) return
      call.remoteAddr = found.host
      call.remotePort = found.port
      if (!options.recursive || !trusted.has(found.host)) return
    }
  }
}

/** The same from the PROXY header of the connection. */
function ofPrelude(call: Call, trusted: Trusted): void {
  const { proxied } = call
  if (proxied === undefined || !trusted.has(call.realipRemoteAddr)) return
  call.remoteAddr = proxied.addr
  call.remotePort = proxied.port
}

/** Reads `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`; the port is empty where there is none. */
function addressOf(text: string): { readonly host: string; readonly port: string } | undefined {
  if (isIP(text) === 6) return { host: plain(text), port: '' }
  const [, v6, v4, port = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = v6 ?? v4 ?? ''
  if (isIP(host) !== (v6 === undefined ? 4 : 6) || +port > 65_535) return undefined
  return { host: plain(host), port }
}
