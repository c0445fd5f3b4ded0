import type { Sidecar } from './sidecar.ts'
import type { Reply } from './udp-peer.ts'

/** A script for a peer: answers each datagram with its letter and what was asked. */
export const named =
  (letter: string) =>
  (reply: Reply, datagram: Buffer): void =>
    reply(Buffer.concat([Buffer.from(letter), datagram]))

/** What tests read of a peer of `stream` in the status tree. */
export interface StreamPeer {
  readonly state: string
  readonly selected: { readonly current: number; readonly total: number }
  readonly data: { readonly sent: number; readonly received: number }
  readonly health: {
    readonly fails: number
    readonly first_byte_time: number
    readonly probes?: { readonly count: number; readonly fails: number }
  }
}

/** The peers of a group, in order. */
export async function streamPeers(sidecar: Sidecar, group = 'u'): Promise<StreamPeer[]> {
  return Object.values(
    await sidecar.json<Record<string, StreamPeer>>(`/status/stream/upstreams/${group}/peers/`),
  )
}

/** The states of the peers of a group, in order. */
export async function streamStates(sidecar: Sidecar, group = 'u'): Promise<string> {
  return (await streamPeers(sidecar, group)).map(({ state }) => state).join(' ')
}

/** Two threads with one group, `u`, behind one address of UDP. */
export function udpConfig(peers: readonly { readonly address: string }[], server: string, more = ''): string {
  const lines = peers.map(({ address }) => `server ${address};`).join(' ')
  return `worker_processes 2;
    stream {
      upstream u { zone u 64k; ${more} ${lines} }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; ${server} }
    }`
}

/** Sessions that nothing else ends are over soon after the test. */
export const quick = 'proxy_timeout 700ms;'
