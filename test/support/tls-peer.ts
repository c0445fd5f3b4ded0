import { once } from 'node:events'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Issued } from './authority.ts'
import { Client } from './client.ts'
import { TcpPeer } from './tcp-peer.ts'

/**
 * A peer that speaks TLS and says back what it is told, and ends when its client does; or what else is to be done with
 * a connection.
 */
export async function tlsPeer(
  { cert, key }: Issued,
  each: (connection: Client, secure: TLSSocket) => void = ({ socket }) => void socket.pipe(socket),
  options: TlsOptions = {},
): Promise<TcpPeer> {
  const server = createServer({ cert, key, allowHalfOpen: true, ...options })
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (secure) => {
    secure.on('error', () => {})
    each(new Client(secure), secure)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new TcpPeer(server, undefined)
}
