import type { Running } from './build/running.ts'
import type { Bind } from './net/bind.ts'
import type { UdpBind } from './net/bind-udp.ts'
import type { ListenSpec } from './proxy/listen-spec.ts'

/** Every address that a configuration listens on. */
export interface Listens {
  readonly http: readonly ListenSpec[]
  readonly stream: readonly Bind[]
  readonly udp: readonly UdpBind[]
}

export function listensOf({ listens, streams }: Pick<Running, 'listens' | 'streams'>): Listens {
  return { http: listens, stream: streams.binds, udp: streams.udpBinds }
}

/** What a port is noted by that was taken for an address with port 0: TCP and UDP have ports of their own. */
export function udpKey({ key }: UdpBind): string {
  return `udp ${key}`
}

/** The same addresses with the ports that were taken. */
export function withPorts({ http, stream, udp }: Listens, ports: ReadonlyMap<string, number>): Listens {
  const taken = <T extends Pick<Bind, 'address'>>(spec: T, key: string): T => {
    const port = ports.get(key)
    if (port === undefined || spec.address.kind === 'unix') return spec
    return { ...spec, address: { ...spec.address, port } }
  }
  return {
    http: http.map((spec) => taken(spec, spec.key)),
    stream: stream.map((spec) => taken(spec, spec.key)),
    udp: udp.map((spec) => taken(spec, udpKey(spec))),
  }
}

/**
 * All addresses of two configurations; what the first one says of its own. One that is of `http` in one of them and of
 * `stream` in the other is what it is in the first.
 */
export function both(one: Listens, other: Listens): Listens {
  const union = <T extends { readonly key: string }>(mine: readonly T[], more: readonly T[]): T[] => {
    const known = new Set(mine.map(({ key }) => key))
    return [...mine, ...more.filter(({ key }) => !known.has(key))]
  }
  const others = <T extends Bind>(more: readonly T[], taken: readonly Bind[]): T[] =>
    more.filter(({ key }) => !taken.some((bind) => bind.key === key))
  return {
    http: union(one.http, others(other.http, one.stream)),
    stream: union(one.stream, others(other.stream, one.http)),
    udp: union(one.udp, other.udp),
  }
}
