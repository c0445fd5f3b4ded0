import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { Target } from '../../probes/probe.ts'

/** Sends a datagram back to whoever sent the one that is being answered. */
export type Reply = (datagram: string | Uint8Array) => void

/** A UDP server that does with each datagram what its script says. */
export class UdpPeer implements AsyncDisposable {
  /** Datagrams received, ever, as latin1. */
  readonly came: string[] = []
  /** Addresses and ports that they came from, in turn. */
  readonly from: string[] = []
  readonly socket: Socket
  port = 0
  readonly #host: string
  #open = true

  constructor(script: (reply: Reply, datagram: Buffer, from: RemoteInfo) => void, host: string) {
    this.#host = host
    this.socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    this.socket.on('error', () => {})
    this.socket.on('message', (datagram, from) => {
      this.came.push(datagram.toString('latin1'))
      this.from.push(`${from.address}:${from.port}`)
      script((answer) => this.socket.send(answer, from.port, from.address), datagram, from)
    })
  }

  async listen(port = 0): Promise<this> {
    this.socket.bind(port, this.#host)
    await once(this.socket, 'listening')
    this.port = this.socket.address().port
    return this
  }

  get address(): string {
    return this.#host.includes(':') ? `[${this.#host}]:${this.port}` : `${this.#host}:${this.port}`
  }

  get target(): Target {
    return { name: this.address, address: { kind: 'tcp', host: this.#host, port: this.port } }
  }

  /** From now on the system says that nobody is there. */
  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    const closed = once(this.socket, 'close')
    this.socket.close()
    await closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Starts a server, on a free port unless told otherwise. */
export function udpPeer(
  script: (reply: Reply, datagram: Buffer, from: RemoteInfo) => void = () => {},
  { host = '127.0.0.1', port = 0 }: { readonly host?: string; readonly port?: number } = {},
): Promise<UdpPeer> {
  return new UdpPeer(script, host).listen(port)
}
