import { type Client, dial } from '../support/client.ts'
import { type TcpPeer, tcpPeer } from '../support/tcp-peer.ts'
import { type UdpPeer, udpPeer } from '../support/udp-peer.ts'
import { PatternCheck, pieces } from './pattern.ts'

/** What a session's first line asks its peer for: `NAME TASK COUNT`, where COUNT is in bytes. */
export const tasks = [
  /** Sends back what comes, and ends when the client has. */
  'echo',
  /** Breaks off once so much has come. */
  'reset',
  /** Sends so much at once, and ends. */
  'tell',
  /** Sends so much once the client has ended its side, and ends. */
  'answer',
] as const
export type Task = (typeof tasks)[number]

/** What is known of so many sessions is kept. */
const mostKept = 10_000

/** What a peer has got of one session, its first line left out. */
export interface Got {
  readonly bytes: number
  readonly fault: string | undefined
}

/** Peers of `stream`: each speaks TCP and UDP, on one port. */
export class BytePeers implements AsyncDisposable {
  /** By the name of the session; taken out by whoever judges it. */
  readonly got = new Map<string, Got>()
  readonly addresses: string[] = []
  readonly #tcp: TcpPeer[] = []
  readonly #udp: UdpPeer[] = []

  async launch(count: number): Promise<this> {
    while (this.addresses.length < count) {
      const tcp = await tcpPeer((connection) => void this.#serve(connection))
      this.#tcp.push(tcp)
      this.addresses.push(tcp.address)
      const udp = await udpPeer((reply, datagram) => reply(datagram), { port: tcp.port })
      // It keeps what came for tests that ask for it.
      udp.socket.on('message', () => {
        udp.came.length = udp.from.length = 0
      })
      this.#udp.push(udp)
    }
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of [...this.#tcp, ...this.#udp]) await peer[Symbol.asyncDispose]()
  }

  async #serve(connection: Client): Promise<void> {
    const { inbox } = connection
    const line = await inbox.until('\n')
    if (line === undefined) return connection.close()
    const [name = '', task, count] = line.toString('latin1').trim().split(' ')
    const check = new PatternCheck(name)
    const note = () => {
      this.got.set(name, { bytes: check.bytes, fault: check.fault })
      // Of a client that has left nobody asks any more.
      if (this.got.size > mostKept) this.got.delete(this.got.keys().next().value!)
    }
    if (task === 'tell') await tell(connection, name, Number(count))
    for (;;) {
      const some = await inbox.some()
      if (some === undefined) break
      check.take(some)
      note()
      if (task === 'echo') await connection.write(some)
      if (task === 'reset' && check.bytes >= Number(count)) return connection.reset()
    }
    note()
    if (task === 'answer' && inbox.ended === 'fin') await tell(connection, name, Number(count))
    if (task !== 'tell') connection.end()
  }
}

async function tell(connection: Client, name: string, count: number): Promise<void> {
  for (const piece of pieces(name, count)) await connection.write(piece)
  connection.end()
}

/** A port that refuses every connection as long as nobody takes it. */
export async function refusingPort(): Promise<number> {
  const peer = await tcpPeer()
  await dial(peer.port).then((client) => client.close())
  await peer[Symbol.asyncDispose]()
  return peer.port
}
