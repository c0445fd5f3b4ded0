import { Call } from '../../feedback/call.ts'
import { type Address, Peer, type ServerOptions } from '../../feedback/peer.ts'
import type { Shadow } from '../../feedback/shadow.ts'
import { type Learning, Upstream } from '../../feedback/upstream.ts'
import { Zone } from '../../feedback/zone.ts'
import type { Ask, Env } from '../../sidecar/balance/method.ts'
import { Clock } from './clock.ts'
import { seeded } from './dice.ts'

/** A peer to make: its weight alone, or what differs from nginx's defaults, and `server` as written. */
export type PeerSketch =
  | number
  | (Partial<ServerOptions> & { readonly server?: string; readonly address?: Address })

/** What a `server` says that has no parameters. */
export const serverDefaults: ServerOptions = {
  weight: 1,
  max_conns: 0,
  max_conns_scope: 'instance',
  max_fails: 1,
  fail_timeout: 10_000,
  slow_start: 0,
  backup: false,
  down: false,
  drain: false,
  track: 'stable',
  sid: '',
}

/** The nth peer's name: a, b, … z, then p26, p27, … */
function nameOf(index: number): string {
  return index < 26 ? String.fromCharCode(97 + index) : `p${index}`
}

/**
 * A group whose peers are named a, b, c, … in order; backups go on where the primaries end.
 * @param sketches weights, or options, of the primaries
 */
export function group(
  sketches: readonly PeerSketch[],
  more: {
    backups?: readonly PeerSketch[]
    method?: string
    learning?: Learning | undefined
    name?: string
    kind?: 'http' | 'stream'
    split?: boolean
    /** Made of the primaries. */
    shadow?: ((peers: readonly Peer[]) => Shadow) | undefined
  } = {},
): Upstream {
  const backups = more.backups ?? []
  const zone = new Zone(more.name ?? 'backend', Math.max(1, sketches.length + backups.length))
  const make = (sketch: PeerSketch, position: number, backup: boolean): Peer => {
    const index = zone.allocate()!
    const { server, address, ...options } =
      typeof sketch === 'number' ? { weight: sketch, server: undefined, address: undefined } : sketch
    const port = 8001 + position
    return new Peer(
      zone,
      index,
      server ?? `127.0.0.1:${port}`,
      nameOf(position),
      address ?? { kind: 'tcp', host: '127.0.0.1', port },
      { ...serverDefaults, backup, ...options },
    )
  }
  const peers = sketches.map((sketch, i) => make(sketch, i, false))
  return new Upstream({
    name: zone.name,
    ...(more.kind && { kind: more.kind }),
    zone,
    peers,
    backups: backups.map((sketch, i) => make(sketch, sketches.length + i, true)),
    method: more.method ?? 'round_robin',
    learning: more.learning,
    responseTimeFactor: 0.9,
    split: more.split ?? false,
    shadow: more.shadow?.(peers),
  })
}

/** Peers a, b, c, … of a group of their own. */
export function peers(sketches: readonly PeerSketch[]): readonly Peer[] {
  return group(sketches).peers
}

/** A clock that stands and seeded dice. */
export function env(seed = 1): Env & { readonly clock: Clock } {
  const clock = new Clock()
  return { clock, now: clock.now, random: seeded(seed) }
}

/**
 * A request's first question to a balancer.
 * @param ready by default everybody is
 */
export function ask(ready: (peer: Peer) => boolean = () => true, now = 1_000_000, call = new Call()): Ask {
  return { call, now, ready, memo: undefined, draws: 0, pick: '', drifted: 0 }
}

/** Picks n times and says who was picked how often, by name: `a: 5, b: 1, c: 1`. */
export function spread(n: number, pick: () => Peer | undefined): string {
  return [...counts(n, pick)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ')
}

/** Picks n times and says who was picked, in order: `a a b a c a a`; `-` is nobody. */
export function turns(n: number, pick: () => Peer | undefined): string {
  return Array.from({ length: n }, () => pick()?.name ?? '-').join(' ')
}

/** Picks n times and counts by name; `-` is nobody. */
export function counts(n: number, pick: () => Peer | undefined): Map<string, number> {
  const found = new Map<string, number>()
  for (let i = 0; i < n; i++) {
    const name = pick()?.name ?? '-'
    found.set(name, (found.get(name) ?? 0) + 1)
  }
  return found
}
