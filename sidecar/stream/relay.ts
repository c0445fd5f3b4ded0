import type { Socket } from 'node:net'
import { breakOff } from './sockets.ts'

/** The two sides of a session, and what passes between them: bytes as they come, each side waiting for the other. */
export class Relay {
  client: Socket
  /** Undefined while there is none. */
  peer: Socket | undefined = undefined
  /** The client, or the peer, has sent its FIN. */
  clientEnded = false
  peerEnded = false
  /** It is this side that ends it: both others have got a FIN. */
  dismissed = false
  /** Whether one direction goes on after the other has ended. */
  readonly #halfClose: boolean

  constructor(client: Socket, halfClose: boolean) {
    this.client = client
    this.#halfClose = halfClose
  }

  /** Whether the end has begun: what is held goes out, and after that it is over. */
  get ending(): boolean {
    return this.dismissed || (!this.#halfClose && (this.clientEnded || this.peerEnded))
  }

  /**
   * Passes on what has come from a side.
   * @returns whether anybody takes it; otherwise it is dropped, so that closing with bytes unread resets nothing
   */
  pass(chunk: Buffer, from: Socket): boolean {
    const to = this.#other(from)
    if (!to?.writable) return false
    if (!to.write(chunk)) from.pause()
    return true
  }

  /** A side takes more again. */
  drained(socket: Socket): void {
    this.#other(socket)?.resume()
  }

  /** A side has sent its FIN. The other one gets it as soon as it has the rest. */
  ended(socket: Socket): void {
    if (socket === this.client) this.clientEnded = true
    else this.peerEnded = true
    this.#other(socket)?.end()
  }

  /** Both sides get a FIN, after what is held for them. */
  dismiss(): void {
    this.dismissed = true
    this.client.end()
    this.peer?.end()
  }

  /**
   * Whether it is over. nginx's rule: when a side has ended and the other one has got the rest; where half-closed
   * connections are allowed, when both have.
   */
  get over(): boolean {
    const { client, peer } = this
    const toClient = client.writableFinished || client.destroyed
    if (peer === undefined) return toClient
    const toPeer = peer.writableFinished || peer.destroyed
    if (this.dismissed || (this.clientEnded && this.peerEnded)) return toClient && toPeer
    if (this.#halfClose) return false
    return (this.clientEnded && toPeer) || (this.peerEnded && toClient)
  }

  /** Has the sides close in order: each gets its FIN, and what they still send is read, and dropped. */
  letGo(): void {
    for (const socket of this.#sides()) {
      if (socket.destroyed) continue
      socket.end()
      socket.resume()
    }
  }

  /** Breaks those sides off for which something is held that they will not get: that must not look like an end. */
  breakOffHeld(): void {
    for (const socket of this.#sides()) if (socket.writableLength > 0) breakOff(socket, false)
  }

  breakOff(): void {
    for (const socket of this.#sides()) breakOff(socket, false)
  }

  /** Waits no longer for the sides to close. */
  leave(): void {
    this.breakOffHeld()
    for (const socket of this.#sides()) socket.destroy()
  }

  /** Whether both sides have closed. */
  get closed(): boolean {
    return this.client.closed && this.peer?.closed !== false
  }

  #sides(): Socket[] {
    return this.peer === undefined ? [this.client] : [this.client, this.peer]
  }

  #other(socket: Socket): Socket | undefined {
    return socket === this.client ? this.peer : this.client
  }
}
