import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A way to a TCP port that can be cut. */
export class Relay implements AsyncDisposable {
  port = 0
  /** Connections that came, ever. */
  connections = 0
  /** Whether a connection is closed as soon as it has sent something; by its number, from 1. */
  drops: (connection: number) => boolean = () => false
  readonly #to: number
  readonly #pairs = new Set<readonly [Socket, Socket]>()
  #server: Server
  #hole = false

  constructor(to: number) {
    this.#to = to
    this.#server = this.#make()
  }

  #make(): Server {
    return createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#accept(socket)).unref()
  }

  async listen(): Promise<this> {
    this.#server.listen({ host: '127.0.0.1', port: this.port })
    await once(this.#server, 'listening')
    const at = this.#server.address()
    if (typeof at === 'object' && at) this.port = at.port
    return this
  }

  #accept(near: Socket): void {
    const number = ++this.connections
    if (this.drops(number)) {
      near.on('error', () => {})
      near.once('data', () => near.resetAndDestroy())
      near.resume()
      return
    }
    const far = connect({ port: this.#to, host: '127.0.0.1', noDelay: true })
    const pair = [near, far] as const
    this.#pairs.add(pair)
    const end = () => {
      // What was swallowed stays so: neither side is told.
      if (this.#hole) return
      this.#pairs.delete(pair)
      for (const socket of pair) socket.destroy()
    }
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('error', () => {})
      from.on('data', (bytes) => to.write(bytes))
      from.on('close', end)
      if (this.#hole) from.pause()
      else from.resume()
    }
  }

  /** Connections are reset and refused from now on. */
  async refuse(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.cut()
    await closed
  }

  /** Nothing is passed any more, and nobody is told: connections stay open, and new ones are accepted. */
  swallow(): void {
    this.#hole = true
    for (const pair of this.#pairs) for (const socket of pair) socket.pause()
  }

  /**
   * The way is open again.
   * @param late whether what was swallowed arrives now, as it does where packets were lost and are sent again; else
   * those connections are reset
   */
  async heal({ late = false }: { late?: boolean } = {}): Promise<void> {
    if (this.#hole) {
      this.#hole = false
      if (late) for (const pair of this.#pairs) for (const socket of pair) socket.resume()
      else this.cut()
    }
    if (!this.#server.listening) {
      this.#server = this.#make()
      await this.listen()
    }
  }

  /** Resets all connections; new ones are accepted as before. */
  cut(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy()
    this.#pairs.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hole = false
    this.cut()
    if (this.#server.listening) this.#server.close()
  }
}

/** A way to a port of this host. */
export function relay(to: number): Promise<Relay> {
  return new Relay(to).listen()
}
