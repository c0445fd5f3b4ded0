import type { Socket } from 'node:net'
import type { ListenAddress } from './bind.ts'

/** Addresses of a client's connection, as a call has them. */
export interface ClientAddress {
  readonly remoteAddr: string
  /** Empty for a Unix socket, the server's as well. */
  readonly remotePort: string
  readonly serverAddr: string
  readonly serverPort: string
}

/** Reads the addresses of a client's socket. @param address that is listened on */
export function readAddress(socket: Socket, address: ListenAddress): ClientAddress {
  return {
    remoteAddr: clientAddress(socket),
    remotePort: socket.remotePort === undefined ? '' : String(socket.remotePort),
    serverAddr: address.kind === 'unix' ? `unix:${address.path}` : plainAddress(socket.localAddress ?? ''),
    serverPort: socket.localPort === undefined ? '' : String(socket.localPort),
  }
}

/** Address of a client's socket: `unix:` for one without an IP address. */
function clientAddress(socket: Socket): string {
  return socket.remoteAddress === undefined ? 'unix:' : plainAddress(socket.remoteAddress)
}

/** An IPv4 client of an IPv6 socket has its IPv4 address. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
