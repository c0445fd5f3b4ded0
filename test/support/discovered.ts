import { type Backend, backend, type Script } from './backend.ts'
import { ask } from './client.ts'
import type { DnsServer } from './dns-server.ts'
import type { PeerStatus } from './invariants.ts'
import type { Sidecar } from './sidecar.ts'
import { until } from './until.ts'

/** Peers on one port of several loopback addresses, as a name would have them. */
export class Neighbours implements AsyncDisposable {
  readonly port: number
  readonly #backends: readonly Backend[]

  constructor(backends: readonly Backend[]) {
    this.#backends = backends
    this.port = backends[0]!.port
  }

  /** The one on 127.0.0.N, N from 1. */
  at(number: number): Backend {
    return this.#backends[number - 1]!
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#backends.map((one) => one[Symbol.asyncDispose]()))
  }
}

/** @param scripts of the one on 127.0.0.1, on 127.0.0.2 and so on; by default each says its number */
export async function neighbours(count: number, scripts: readonly Script[] = []): Promise<Neighbours> {
  const first = await backend(scripts[0] ?? { body: '1' })
  const others: Promise<Backend>[] = []
  for (let n = 2; n <= count; n++) {
    others.push(backend(scripts[n - 1] ?? { body: `${n}` }, { host: `127.0.0.${n}`, port: first.port }))
  }
  return new Neighbours([first, ...(await Promise.all(others))])
}

/** The addresses that a group has now, without their ports. */
export async function members(sidecar: Sidecar, group = 'u', kind = 'http'): Promise<string> {
  const peers = await sidecar.json<Record<string, object>>(`/status/${kind}/upstreams/${group}/peers/`)
  return Object.keys(peers)
    .map((name) => name.replace(/:\d+$/, ''))
    .join(' ')
}

/** Waits until a group has these addresses. */
export async function hasMembers(
  sidecar: Sidecar,
  addresses: string,
  withinMs = 5000,
  group = 'u',
  kind = 'http',
): Promise<void> {
  await until(async () => (await members(sidecar, group, kind)) === addresses, withinMs)
}

/** What else stands in a configuration, as it is written. */
export interface More {
  readonly resolver?: string
  readonly group?: string
  readonly http?: string
  readonly main?: string
  readonly location?: string
}

/** A group `u` of a name that is followed. */
export function followed(
  dns: DnsServer,
  server: string,
  { resolver, group = '', http = '', main = '', location = '' }: More = {},
): string {
  return `
${main}
http {
  access_log off;
  ${resolver ?? `resolver ${dns.address} ipv6=off;`}
  ${http}
  upstream u { zone u 64k; ${group} server ${server}; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; ${location} } }
}`
}

export function peersOf(sidecar: Sidecar): Promise<Record<string, PeerStatus>> {
  return sidecar.json('/status/http/upstreams/u/peers/')
}

/** Waits until every attempt has ended: a thread counts an answer a moment after it has given it. */
export async function nothingInFlight(sidecar: Sidecar): Promise<void> {
  await until(async () =>
    Object.values(await peersOf(sidecar)).every(({ selected }) => selected.current === 0),
  )
}

/** What the group answers. */
export async function answer(sidecar: Sidecar): Promise<string> {
  return (await ask(sidecar.port)).body.toString()
}

/** A server that goes wherever the request says, in one thread unless it is told otherwise: each finds for itself. */
export function anywhere(
  dns: DnsServer,
  resolver = `resolver ${dns.address} ipv6=off;`,
  more = '',
  main = 'worker_processes 1;',
): string {
  return `
    ${main}
    http {
      ${resolver}
      upstream named { zone named 64k; server 127.0.0.1:1; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://$arg_to; ${more} } }
    }`
}
