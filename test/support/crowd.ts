import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A TCP peer that sends back what it gets, and ends when its client ends. */
export class EchoPeer implements AsyncDisposable {
  readonly sockets = new Set<Socket>()
  /** Connections ever accepted. */
  accepted = 0
  readonly #server: Server
  #address = ''

  constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.accepted += 1
      this.sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.sockets.delete(socket))
      socket.pipe(socket)
    })
  }

  get address(): string {
    return this.#address
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1', 4096)
    await once(this.#server, 'listening')
    // A TCP server has a port.
    this.#address = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** A client of an echo: it says something, and knows what has to come back. */
export class Talker {
  readonly socket: Socket
  readonly #seed: number
  #sent = 0
  #got = 0
  #wanted = 0
  #settle: (() => void) | undefined = undefined
  /** What went wrong; undefined while all is well. */
  fault: string | undefined = undefined
  readonly #closed: Promise<void>

  constructor(port: number, seed: number) {
    this.#seed = seed
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    this.socket.on('error', (error) => this.#fail(error.message))
    this.#closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        if (this.#got < this.#wanted) this.#fail(`closed after ${this.#got} of ${this.#wanted} bytes`)
        resolve()
      })
    })
  }

  /** Says so many bytes; resolves when they have come back, or something is wrong. */
  say(length: number): Promise<void> {
    const bytes = Buffer.allocUnsafe(length)
    for (let i = 0; i < length; i++) bytes[i] = this.#byte(this.#sent + i)
    this.#sent += length
    this.#wanted = this.#sent
    return new Promise((resolve) => {
      this.#settle = resolve
      if (this.fault === undefined) this.socket.write(bytes)
      else resolve()
    })
  }

  /** Says that it has no more to say; resolves when the other side has ended too. */
  async end(): Promise<void> {
    this.socket.end()
    await this.#closed
  }

  #byte(at: number): number {
    return (this.#seed * 31 + at * 7 + (at >> 8)) & 255
  }

  #receive(chunk: Buffer): void {
    for (let i = 0; i < chunk.length; i++) {
      if (chunk[i] === this.#byte(this.#got + i)) continue
      this.#fail(`another byte at ${this.#got + i}`)
      return
    }
    this.#got += chunk.length
    if (this.#got >= this.#wanted) this.#done()
  }

  #fail(text: string): void {
    this.fault ??= text
    this.#done()
  }

  #done(): void {
    const settle = this.#settle
    this.#settle = undefined
    settle?.()
  }
}

/** Many of them, made a few at a time so that no connection has to be tried again. */
export async function crowd(port: number, count: number, seed = 0): Promise<Talker[]> {
  const talkers: Talker[] = []
  for (let i = 0; i < count; i += 50) {
    const some = Array.from({ length: Math.min(50, count - i) }, (_, k) => new Talker(port, seed + i + k))
    talkers.push(...some)
    await Promise.all(some.map((talker) => talker.say(16)))
  }
  return talkers
}

/** What went wrong with them, each fault once with its number. */
export function faultsOf(talkers: readonly Talker[]): string[] {
  const counts = new Map<string, number>()
  for (const { fault } of talkers) {
    if (fault !== undefined) counts.set(fault, (counts.get(fault) ?? 0) + 1)
  }
  return Array.from(counts, ([fault, count]) => `${count} × ${fault}`)
}
