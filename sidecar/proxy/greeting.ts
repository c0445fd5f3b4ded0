import type { Socket } from 'node:net'
import type { ProxiedAddresses } from '../../feedback/call.ts'
import { FirstBytes } from '../net/first-bytes.ts'
import { readProxyHeader } from '../net/proxy-protocol.ts'

/** Told once what a connection began with, unless it has closed before. */
export interface Greeted {
  /** @param addresses undefined where the header says nothing of them; @param rest what came after it */
  greeted(addresses: ProxiedAddresses | undefined, rest: Buffer | undefined): void
  /**
   * It is none, or has not come.
   * @param why for the error log
   * @param broken whether something else came in its place: then whoever is in front may be set up wrongly
   */
  ungreeted(why: string, broken: boolean): void
  closed(): void
}

/** A connection whose PROXY header is waited for. */
export class Greeting extends FirstBytes {
  readonly #told: Greeted

  constructor(socket: Socket, told: Greeted) {
    super(socket, () => told.closed())
    this.#told = told
  }

  protected read(first: Buffer): void {
    const header = readProxyHeader(first)
    if (header === undefined) return
    if ('fault' in header) {
      this.#refuse(`${header.fault} while reading PROXY protocol`, true)
      return
    }
    const { addresses, length } = header
    this.leave()
    this.#told.greeted(addresses, first.length > length ? first.subarray(length) : undefined)
  }

  protected late(): void {
    this.#refuse('PROXY header not complete in time')
  }

  protected ended(): void {
    this.#refuse('connection closed in the middle of a PROXY header')
  }

  #refuse(why: string, broken = false): void {
    this.#told.ungreeted(why, broken)
    this.refuse()
  }
}
