import { BlockList, isIP } from 'node:net'

/** Whose word on a client's address is taken: `set_real_ip_from`. */
export class Trusted {
  #unix = false
  readonly #list = new BlockList()

  /**
   * @param from addresses, networks (`10.0.0.0/8`), or `unix:` for clients on a Unix socket
   * @throws Error `invalid parameter "…"`
   */
  constructor(from: readonly string[]) {
    for (const text of from) {
      if (text === 'unix:') {
        this.#unix = true
        continue
      }
      const [host = '', bits, more] = text.split('/')
      const kind = isIP(host)
      const most = kind === 4 ? 32 : 128
      if (
        kind === 0 ||
        more !== undefined ||
        (bits !== undefined && !(/^\d+$/.test(bits) && +bits <= most))
      ) {
        throw new Error(`invalid parameter "${text}"`)
      }
      const family = kind === 4 ? 'ipv4' : 'ipv6'
      if (bits === undefined) this.#list.addAddress(host, family)
      else this.#list.addSubnet(host, +bits, family)
    }
  }

  has(address: string): boolean {
    if (address.startsWith('unix:')) return this.#unix
    const kind = isIP(address)
    return kind !== 0 && this.#list.check(address, kind === 4 ? 'ipv4' : 'ipv6')
  }
}

/** An IPv4 address in IPv6's clothes is the IPv4 address. */
export function plain(address: string): string {
  return /^::ffff:[\d.]+$/i.test(address) ? address.slice(7) : address.toLowerCase()
}
