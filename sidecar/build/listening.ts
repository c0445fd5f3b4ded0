import type { Address } from '../../feedback/peer.ts'
import type { ListenAddress } from '../net/bind.ts'

/** Where an address of a `listen` line is: the host `*` is every IPv4 address. */
export function where(address: Address): ListenAddress {
  if (address.kind === 'unix') return address
  return { kind: 'tcp', host: address.host === '*' ? '0.0.0.0' : address.host, port: address.port }
}
