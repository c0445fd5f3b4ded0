import { createServer, type Server, type Socket } from 'node:net'
import type { ClientCounts } from '../../feedback/tally.ts'
import { type Bind, bind } from './bind.ts'
import { openNow, type Sharing } from './sharing.ts'

/** An address as those see it who came there. */
export interface Place<Spec extends Bind = Bind> {
  /** What is said of it now: a reload may say something else. */
  readonly spec: Spec
  /** Whether it is listened on no more, at least not for those who come as these did. */
  readonly removed: boolean
}

/** Who has the connections that come. */
export interface Reception<Spec extends Bind> {
  /** A connection has come, and has been counted as accepted. */
  came(socket: Socket, place: Place<Spec>): void
  /** One was closed as it came, or could not be accepted. */
  dropped(): void
  /** Nothing comes to this place any more. What has come goes on. */
  left(place: Place<Spec>): void
}

interface Open<Spec extends Bind> extends Place<Spec> {
  spec: Spec
  removed: boolean
  readonly server: Server
}

/** The addresses of TCP and Unix sockets that one side of the program listens on in this thread. */
export class Addresses<Spec extends Bind> {
  readonly #sharing: Sharing
  readonly #counts: ClientCounts
  readonly #limit: number
  readonly #reception: Reception<Spec>
  readonly #open = new Map<string, Open<Spec>>()
  #stopped = false

  /**
   * @param limit most connections of clients at once, those of all threads and sides together; one more is closed as it
   *   comes, before the system runs out of descriptors
   */
  constructor(sharing: Sharing, limit: number, reception: Reception<Spec>) {
    this.#sharing = sharing
    this.#counts = sharing.tally.own
    this.#limit = limit
    this.#reception = reception
  }

  /** What is listened on, with the port that was taken where port 0 was asked for. */
  texts(): string[] {
    return Array.from(this.#open.values(), ({ spec, server }) => {
      const address = server.address()
      if (address === null || typeof address === 'string') return spec.key
      return spec.key.replace(/:\d+$/, `:${address.port}`)
    })
  }

  has(key: string): boolean {
    return this.#open.has(key)
  }

  /**
   * Listens on what is wanted: new addresses are opened first, those that stay are left alone, and those that are gone
   * are closed last. When one cannot be opened, everything stays as it was.
   * @throws ListenError
   */
  async apply(specs: readonly Spec[]): Promise<void> {
    const opened: Open<Spec>[] = []
    try {
      for (const spec of specs) {
        // A Unix socket has no way to spread its connections: one thread has them all.
        if (spec.address.kind === 'unix' && this.#sharing.thread > 0) continue
        if (!this.#open.has(spec.key)) opened.push(await this.#listen(spec))
      }
    } catch (error) {
      for (const open of opened) this.#remove(open)
      throw error
    }
    const wanted = new Map(specs.map((spec) => [spec.key, spec]))
    for (const [key, open] of this.#open) {
      const spec = wanted.get(key)
      if (spec === undefined) this.#remove(open)
      else open.spec = spec
    }
    for (const open of opened) this.#open.set(open.spec.key, open)
    // The end may have come while it was opened.
    if (this.#stopped) this.stop()
  }

  /**
   * Gives a listening socket away.
   * @returns undefined: there is none
   */
  release(key: string): Server | undefined {
    const open = this.#open.get(key)
    if (open === undefined) return undefined
    open.server.removeAllListeners()
    this.#leave(open)
    return open.server
  }

  /** Takes the connections that come to a socket which listens already. */
  adopt(spec: Spec, server: Server): void {
    this.#open.set(spec.key, this.#taken(this.#accepting(spec, server)))
  }

  /** Accepts no more, for good. */
  stop(): void {
    this.#stopped = true
    for (const open of this.#open.values()) {
      close(open)
      this.#reception.left(open)
    }
  }

  async #listen(spec: Spec): Promise<Open<Spec>> {
    const open = this.#accepting(spec, createServer({ allowHalfOpen: true, noDelay: true }))
    await bind(open.server, spec, this.#sharing.threads > 1)
    return this.#taken(open)
  }

  #accepting(spec: Spec, server: Server): Open<Spec> {
    const open = { spec, server, removed: false }
    server.on('connection', (socket) => this.#came(open, socket))
    return open
  }

  /** @param open it listens */
  #taken(open: Open<Spec>): Open<Spec> {
    // A failure to accept one connection; the listener itself goes on.
    open.server.on('error', () => this.#drop())
    return open
  }

  #remove(open: Open<Spec>): void {
    close(open)
    this.#leave(open)
  }

  #leave(open: Open<Spec>): void {
    open.removed = true
    this.#open.delete(open.spec.key)
    this.#reception.left(open)
  }

  #drop(): void {
    this.#counts.dropped += 1
    this.#reception.dropped()
  }

  #came(open: Open<Spec>, socket: Socket): void {
    if (openNow(this.#sharing) >= this.#limit) {
      this.#drop()
      socket.destroy()
      return
    }
    this.#counts.accepted += 1
    if (socket.remoteAddress === undefined && open.spec.address.kind === 'tcp') {
      // Gone before it was accepted. Nobody waits for answers, and what it sent would look like a Unix socket's.
      socket.destroy()
      return
    }
    this.#reception.came(socket, open)
  }
}

/** Closes the listening socket only: the connections it has accepted go on, idle ones too. */
function close({ server }: { readonly server: Server }): void {
  if (server.listening) server.close()
}
