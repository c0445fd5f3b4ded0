import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { Client } from './client.ts'

/** A peer that does nothing of itself: each connection is handed to whoever asks for the next one. */
export class TcpPeer implements AsyncDisposable {
  readonly port: number
  /** Connections so far. */
  accepted = 0
  readonly #server: Server
  readonly #open = new Set<Client>()
  readonly #waiting: Client[] = []
  readonly #asked: ((client: Client) => void)[] = []

  constructor(server: Server, each: ((connection: Client) => void) | undefined) {
    this.#server = server
    // A listening TCP server has an address.
    this.port = (server.address() as { port: number }).port
    server.on('connection', (socket: Socket) => {
      const connection = new Client(socket)
      this.accepted += 1
      this.#open.add(connection)
      socket.on('close', () => this.#open.delete(connection))
      if (each) {
        each(connection)
        return
      }
      const asked = this.#asked.shift()
      if (asked) asked(connection)
      else this.#waiting.push(connection)
    })
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#open.size
  }

  /** The next connection that nobody has asked for yet, this side of it. */
  next(): Promise<Client> {
    const waiting = this.#waiting.shift()
    if (waiting) return Promise.resolve(waiting)
    return new Promise((resolve) => this.#asked.push(resolve))
  }

  /** Breaks every connection off. */
  resetAll(): void {
    for (const connection of this.#open) connection.reset()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#open) connection.close()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/**
 * @param each what is done with a connection; left out: it waits for `next`
 * @param port left out: a free one
 */
export async function tcpPeer(
  each?: (connection: Client) => void,
  port = 0,
  host = '127.0.0.1',
): Promise<TcpPeer> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }).listen(port, host)
  await once(server, 'listening')
  return new TcpPeer(server, each)
}

/** A peer that says back what it is told, and ends when its client does. */
export function echoPeer(port = 0): Promise<TcpPeer> {
  return tcpPeer(({ socket }) => void socket.pipe(socket), port)
}
