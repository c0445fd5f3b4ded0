import type { Call } from '../../feedback/call.ts'
import { Tally } from '../../feedback/tally.ts'
import { Group } from '../../sidecar/balance/group.ts'
import { RoundRobin } from '../../sidecar/balance/round-robin.ts'
import { type SessionSettings, type StreamServer, sessionDefaults } from '../../sidecar/stream/settings.ts'
import { UdpListeners } from '../../sidecar/stream/udp.ts'
import { group, type PeerSketch } from './peers.ts'
import type { UdpPeer } from './udp-peer.ts'

/** A group of peers that are there, or were; asked in turn. */
export function udpGroup(peers: readonly (UdpPeer | (PeerSketch & object))[]): Group {
  const upstream = group(
    peers.map((peer) => ('target' in peer ? { address: peer.target.address } : peer)),
    { kind: 'stream', name: 'stream/backend' },
  )
  return new Group(upstream, new RoundRobin(upstream.peers), undefined)
}

/** The UDP side of one thread on a free port, with the sessions that have ended. */
export class UdpSideUnderTest implements AsyncDisposable {
  readonly ended: Call[] = []
  readonly tally = new Tally()
  readonly notes: string[] = []
  dropped = 0
  readonly listeners: UdpListeners
  port = 0
  readonly #key: string

  constructor(limit: number, host: string) {
    this.#key = host.includes(':') ? `[${host}]:0` : `${host}:0`
    this.listeners = new UdpListeners({ threads: 1, thread: 0, tally: this.tally }, limit, {
      complain: (_call, text) => this.notes.push(text),
      note: (_call, text) => this.notes.push(text),
      dropped: () => {
        this.dropped += 1
      },
    })
  }

  async listen(host: string): Promise<this> {
    await this.listeners.apply([{ key: this.#key, address: { kind: 'tcp', host, port: 0 } }])
    this.port = Number(/\d+$/.exec(this.listeners.addresses()[0]!)![0])
    return this
  }

  /** Serves by these settings from now on. */
  use(content: Group | StreamServer['content'], settings: Partial<SessionSettings> = {}): this {
    const server: StreamServer = {
      address: this.#key,
      proxied: false,
      door: undefined,
      settings: { ...sessionDefaults, ...settings },
      content:
        content instanceof Group
          ? { kind: 'proxy', group: content.upstream.name, target: () => ({ group: content, host: '' }) }
          : content,
      accessLogs: [(call) => this.ended.push(call)],
      zone: undefined,
    }
    this.listeners.use(new Map([[this.#key, server]]))
    return this
  }

  /** Datagrams that were not passed on. */
  get lost(): number {
    return this.tally.own.lost
  }

  /** How each session ended: its status, and ending and reason of its attempts. */
  get story(): string[] {
    return this.ended.map(({ status, attempts }) =>
      [status, ...attempts.map(({ ending, reason }) => [ending, reason].filter(Boolean).join(' '))].join(
        ', ',
      ),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.listeners.destroy()
  }
}

export function udpSide(
  content?: Group | StreamServer['content'],
  settings: Partial<SessionSettings> = {},
  { limit = 1000, host = '127.0.0.1' }: { readonly limit?: number; readonly host?: string } = {},
): Promise<UdpSideUnderTest> {
  const side = new UdpSideUnderTest(limit, host)
  return side.listen(host).then(() => (content === undefined ? side : side.use(content, settings)))
}
