/** Clients and datagrams that wait at most, and datagrams of each; more than these are lost. */
export const mostClients = 1000
export const mostDatagrams = 2000
export const mostOfOne = 64

/** Datagrams of clients that wait until it is known where they go, by client. */
export class HeldDatagrams {
  readonly #clients = new Map<string, Buffer[]>()
  #datagrams = 0

  /** How many clients wait. */
  get size(): number {
    return this.#clients.size
  }

  get full(): boolean {
    return this.#clients.size >= mostClients || this.#datagrams >= mostDatagrams
  }

  /** A client waits from now on. */
  begin(key: string, datagram: Buffer): void {
    this.#clients.set(key, [datagram])
    this.#datagrams += 1
  }

  /** @returns whether it is held, or lost; undefined where the client does not wait */
  hold(key: string, datagram: Buffer): 'held' | 'lost' | undefined {
    const own = this.#clients.get(key)
    if (own === undefined) return undefined
    if (own.length >= mostOfOne || this.#datagrams >= mostDatagrams) return 'lost'
    own.push(datagram)
    this.#datagrams += 1
    return 'held'
  }

  /** The client waits no more. @returns what was held, in order */
  end(key: string): readonly Buffer[] {
    const own = this.#clients.get(key) ?? []
    this.#clients.delete(key)
    this.#datagrams -= own.length
    return own
  }
}
