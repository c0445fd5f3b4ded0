import type { Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { udpSocket } from '../net/bind-udp.ts'

/** Whom a link tells of what happens. Nothing is told after `close`. */
export interface LinkOwner {
  /** Datagrams may be sent from now on. */
  connected(): void
  /** The peer has sent a datagram. */
  answered(datagram: Buffer): void
  /** The system has taken a datagram. */
  sent(): void
  /**
   * A datagram went nowhere, which says nothing of the peer.
   * @param why for people; undefined: too many wait to be sent
   */
  dropped(length: number, why: string | undefined): void
  /** The system says that the peer cannot be reached. */
  broken(error: NodeJS.ErrnoException): void
}

/** Bytes that the system has not taken yet, beyond which datagrams are dropped, as a router does. */
export const mostQueued = 1024 * 1024
/** Errors of sending one datagram that say nothing of whoever it was for. */
const ownErrors = new Set(['EMSGSIZE', 'ENOBUFS', 'ENOMEM', 'EAGAIN'])

/**
 * A socket for one session's datagrams to one peer and back. It is connected: so the system says if nobody is there, and
 * passes on what comes from that peer alone.
 */
export class UdpLink {
  readonly #socket: Socket
  readonly #host: string
  readonly #port: number
  readonly #owner: LinkOwner
  #open = true
  /** Whether anything may be sent. */
  connected = false
  /** Datagrams that the system has not taken yet. */
  unsent = 0

  /** @param host an IP address */
  constructor(host: string, port: number, owner: LinkOwner) {
    this.#host = host
    this.#port = port
    this.#owner = owner
    const socket = udpSocket(isIPv6(host) ? 6 : 4)
    this.#socket = socket
    // Kept for the socket's life: an error may come when nobody asks any more.
    socket.on('error', (error) => {
      if (this.#open) owner.broken(error)
    })
    socket.on('message', (datagram) => {
      if (this.#open) owner.answered(datagram)
    })
  }

  /** Begins. The owner may be told at once that it is broken. */
  open(): void {
    const socket = this.#socket
    // Before it connects, which Node would put off for ever where there is no descriptor, and the close with it.
    socket.bind(0, () => {
      socket.connect(this.#port, this.#host, (error?: Error) => {
        if (!this.#open) return
        this.connected = error === undefined
        if (error === undefined) this.#owner.connected()
        else this.#owner.broken(error)
      })
    })
  }

  send(datagram: Uint8Array): void {
    if (this.#socket.getSendQueueSize() > mostQueued) {
      this.#owner.dropped(datagram.length, undefined)
      return
    }
    this.unsent += 1
    this.#socket.send(datagram, (error: NodeJS.ErrnoException | null) => {
      if (!this.#open) return
      this.unsent -= 1
      if (error === null) this.#owner.sent()
      else if (ownErrors.has(error.code ?? '')) this.#owner.dropped(datagram.length, error.message)
      else this.#owner.broken(error)
    })
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#socket.close()
  }
}
