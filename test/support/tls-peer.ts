import { once } from 'node:events'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Issued } from './authority.ts'

/** A peer without back-pressure of its own: it says back what it is told, however much, and ends when its client does. */
export class StreamingPeer implements AsyncDisposable {
  readonly address: string
  readonly #server: Server
  readonly #open = new Set<Socket>()

  constructor(server: Server) {
    this.#server = server
    // A listening TCP server has an address.
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#open.delete(socket))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

async function listening(server: Server): Promise<StreamingPeer> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new StreamingPeer(server)
}

export function streamingPeer(): Promise<StreamingPeer> {
  return listening(
    createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => void socket.pipe(socket)),
  )
}

/** The same with TLS. @param told of each connection */
export function tlsPeer(
  { cert, key }: Issued,
  told: (secure: TLSSocket) => void = () => {},
  options: TlsOptions = {},
): Promise<StreamingPeer> {
  const server = createServer({ cert, key, allowHalfOpen: true, ...options })
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (secure) => {
    secure.on('error', () => {})
    told(secure)
    secure.pipe(secure)
  })
  return listening(server)
}
