import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'

/** A client that sends datagrams to one address and keeps what comes back. */
export class UdpClient implements AsyncDisposable {
  /** What came and was not asked for yet. */
  readonly came: Buffer[] = []
  readonly socket: Socket
  readonly #waiting: ((datagram: Buffer) => void)[] = []

  constructor(host: string) {
    this.socket = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4', recvBufferSize: 4 * 1024 * 1024 })
    this.socket.on('error', () => {})
    this.socket.on('message', (datagram) => {
      const wake = this.#waiting.shift()
      if (wake) wake(datagram)
      else this.came.push(datagram)
    })
  }

  /**
   * @param from the source port; 0: any
   * @param local the source address, where the port is given
   */
  async connect(port: number, host: string, from: number, local: string): Promise<this> {
    if (from > 0) {
      this.socket.bind(from, local)
      await once(this.socket, 'listening')
    }
    this.socket.connect(port, host)
    await once(this.socket, 'connect')
    return this
  }

  get port(): number {
    return this.socket.address().port
  }

  send(datagram: string | Uint8Array): void {
    this.socket.send(datagram)
  }

  /** The next datagram that comes, or came. */
  next(withinMs = 5000): Promise<Buffer> {
    const first = this.came.shift()
    if (first !== undefined) return Promise.resolve(first)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no datagram within ${withinMs} ms`)), withinMs)
      this.#waiting.push((datagram) => {
        clearTimeout(timer)
        resolve(datagram)
      })
    })
  }

  /** Sends, and says what comes back. */
  async ask(datagram: string | Uint8Array, withinMs?: number): Promise<string> {
    this.send(datagram)
    return (await this.next(withinMs)).toString('latin1')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.socket, 'close')
    this.socket.close()
    await closed
  }
}

export function udpClient(
  port: number,
  {
    host = '127.0.0.1',
    from = 0,
    local = host,
  }: { readonly host?: string; readonly from?: number; readonly local?: string } = {},
): Promise<UdpClient> {
  return new UdpClient(host).connect(port, host, from, local)
}

/** One question from a port of its own. */
export async function askOnce(
  port: number,
  datagram: string | Uint8Array,
  withinMs?: number,
): Promise<string> {
  await using client = await udpClient(port)
  return await client.ask(datagram, withinMs)
}
