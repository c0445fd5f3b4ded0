import type { Socket } from 'node:net'
import type { ProxiedAddresses } from '../../feedback/call.ts'
import { monotonic } from '../../feedback/clock.ts'
import { Prelude } from '../net/prelude.ts'

/** Told once what a connection began with, unless it has closed before. */
export interface Greeted {
  /** @param addresses undefined where the header says nothing of them; @param rest what came after it */
  greeted(addresses: ProxiedAddresses | undefined, rest: Buffer | undefined): void
  /** It is none, or has not come. @param why for the error log */
  ungreeted(why: string): void
  closed(): void
}

/** A connection whose PROXY header is waited for. */
export class Greeting {
  readonly socket: Socket
  readonly #since = monotonic()
  readonly #prelude = new Prelude()
  readonly #told: Greeted

  constructor(socket: Socket, told: Greeted) {
    this.socket = socket
    this.#told = told
    socket.on('data', this.#data)
    socket.on('end', this.#end)
    socket.on('close', this.#close)
    // Every error ends in `close`.
    socket.on('error', () => {})
  }

  /** Looks whether the client has taken too long. @param timeout milliseconds for the whole header */
  check(now: number, timeout: number): void {
    if (now - this.#since >= timeout) this.#refuse('PROXY header not complete in time')
  }

  readonly #data = (chunk: Buffer): void => {
    const header = this.#prelude.add(chunk)
    if (header === undefined) return
    if ('fault' in header) {
      this.#refuse(header.fault)
      return
    }
    this.#leave()
    this.#told.greeted(header.addresses, this.#prelude.rest(header))
  }

  readonly #end = (): void => this.#refuse('connection closed in the middle of a PROXY header')

  readonly #close = (): void => this.#told.closed()

  #leave(): void {
    const { socket } = this
    socket.off('data', this.#data)
    socket.off('end', this.#end)
    socket.off('close', this.#close)
  }

  #refuse(why: string): void {
    this.socket.off('data', this.#data)
    this.socket.off('end', this.#end)
    this.#told.ungreeted(why)
    this.socket.destroy()
  }
}
