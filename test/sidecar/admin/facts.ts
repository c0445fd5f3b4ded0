import type { FleetFacts, FleetPeerFacts } from '../../../feedback/fleet/facts.ts'
import { exclusion } from '../../../feedback/health.ts'
import { Peer, type ServerOptions } from '../../../feedback/peer.ts'
import { noCounts } from '../../../feedback/resolver-counts.ts'
import { type Learning, Upstream } from '../../../feedback/upstream.ts'
import { Zone } from '../../../feedback/zone.ts'
import type {
  Facts,
  Reloaded,
  ShadowFacts,
  StickyFacts,
  UpstreamFacts,
} from '../../../sidecar/admin/facts.ts'
import type { ResolverFacts } from '../../../sidecar/admin/resolver-facts.ts'
import type { RuntimeFacts } from '../../../sidecar/admin/runtime-facts.ts'
import { serverDefaults } from '../../support/peers.ts'

/** 2026-11-30T01:54:49.728Z */
export const wall = 1_796_003_689_728
/** The clock of all facts stands here. */
export const now = 1_000_000

const defaults: ServerOptions = { ...serverDefaults, sid: '00c23eedc13f75dbfcb6587bda3741b8' }

/** A peer in a zone, named like its address. */
export function peer(zone: Zone, name: string, options: Partial<ServerOptions> = {}): Peer {
  const address = { kind: 'tcp', host: '127.0.0.1', port: 8001 } as const
  return new Peer(zone, zone.allocate()!, name, name, address, { ...defaults, ...options })
}

/** What of a group differs. */
interface GroupSketch {
  learning?: Learning
  expected?: number
  budgets?: UpstreamFacts['budgets']
  probes?: UpstreamFacts['probes']
  split?: UpstreamFacts['split']
  shadow?: UpstreamFacts['shadow']
  kind?: 'http' | 'stream'
  service?: UpstreamFacts['service']
  followed?: UpstreamFacts['followed']
  sticky?: UpstreamFacts['sticky']
  queue?: UpstreamFacts['queue']
  backupSwitch?: UpstreamFacts['backupSwitch']
  sessions?: Upstream['sessions']
}

/** A group of peers by name, with shares equal among those that are ready. */
export function group(
  name: string,
  peers: Readonly<Record<string, Partial<ServerOptions>>>,
  more: GroupSketch & { room?: number } = {},
): UpstreamFacts {
  const zone = new Zone(name, Object.keys(peers).length + (more.room ?? 2))
  const all = Object.entries(peers).map(([name, options]) => peer(zone, name, options))
  return groupOf(zone, all, more)
}

/** A group of peers that are made already. */
export function groupOf(zone: Zone, all: readonly Peer[], more: GroupSketch = {}): UpstreamFacts {
  const upstream = new Upstream({
    name: zone.name,
    kind: more.kind ?? 'http',
    zone,
    peers: all.filter((peer) => !peer.options.backup),
    backups: all.filter((peer) => peer.options.backup),
    method: more.learning ? 'least_time' : 'round_robin',
    learning: more.learning,
    responseTimeFactor: 0.9,
    sessions: more.sessions,
  })
  const why = (peer: Peer, now: number) => exclusion(peer, upstream.single, now)
  const even = (peers: readonly Peer[], now: number) => {
    const ready = peers.filter((peer) => why(peer, now) === undefined).length
    return peers.map((peer) => (why(peer, now) === undefined ? 1 / ready : 0))
  }
  return {
    upstream,
    shares: (now) => ({ primary: even(upstream.peers, now), backup: even(upstream.backups, now) }),
    exclusion: why,
    expected: () => more.expected,
    heedsStuck: more.learning !== undefined,
    split: more.split,
    shadow: more.shadow,
    budgets: more.budgets ?? (() => []),
    probed: more.probes !== undefined,
    probes: more.probes ?? (() => []),
    service: more.service ?? (() => undefined),
    followed: more.followed ?? [],
    sticky: more.sticky,
    queue: more.queue,
    backupSwitch: more.backupSwitch,
  }
}

/** A shadow that has made ten picks, of which both methods are known to have made eight, with whatever differs. */
export function shadow(over: Partial<ShadowFacts> = {}): ShadowFacts {
  return {
    method: 'least_time',
    words: 'least_time header best',
    picks: 8,
    same: 6,
    pickedMs: 160,
    shadowMs: 120,
    picksOf: () => 5,
    shares: () => [0.9, 0.1],
    expected: () => 12.5,
    ...over,
  }
}

/** A fleet of three instances that has heard something of every peer, with whatever differs. */
export function fleet(over: Partial<FleetFacts> = {}, heard: Partial<FleetPeerFacts> = {}): FleetFacts {
  return {
    group: 'shop',
    name: 'pod-1',
    id: 'pod-1.x7',
    servers: ['10.0.0.1:6379', '10.0.0.2:6379'],
    up: true,
    since: wall - 5000,
    error: undefined,
    refused: false,
    silence: 120,
    required: false,
    interval: 200,
    ttl: 5000,
    exchanges: 25,
    failures: 2,
    losses: 1,
    roundTripMs: 1.25,
    upstream: () => ({ members: 3, age: 120, resets: 1, sessions: { told: 5, heard: 9 } }),
    roster: () => ['pod-1.x7', 'pod-2.k3', 'pod-3.a0'],
    peer: () => ({
      members: 2,
      answers: 40,
      good: 38,
      average: 12.5,
      conns: 6,
      stuck: 2,
      stuckAge: 1500,
      lease: 3,
      ejections: 1,
      ...heard,
    }),
    samples: async () => ({ parts: new Map(), instances: 0, lack: undefined }),
    ...over,
  }
}

/** Changes of a program: nothing is changed, and every wish is granted, with whatever differs. */
export function runtime(over: Partial<RuntimeFacts> = {}): RuntimeFacts {
  const granted = async () => ({ ok: true, peers: [], changed: true }) as const
  return {
    list: () => [],
    of: () => [],
    line: () => undefined,
    zone: () => 'zone',
    counts: () => [],
    change: granted,
    add: granted,
    remove: granted,
    reset: granted,
    ...over,
  }
}

/** Sessions that are learnt and bound to nobody, with whatever differs. */
export function sticky(over: Partial<StickyFacts> = {}): StickyFacts {
  return { mode: 'learn', strict: false, bound: () => [], ...over }
}

/** A resolver that has looked up some names, with whatever differs. */
export function resolver(over: Partial<ResolverFacts> = {}): ResolverFacts {
  return {
    zone: undefined,
    servers: ['10.0.0.53:53'],
    counts: {
      queries: { name: 7, srv: 2, addr: 0 },
      sent: { a: 7, aaaa: 6, srv: 2, ptr: 0 },
      responses: { ...noCounts().responses, success: 9, timedout: 1, server_failure: 3, not_found: 2 },
    },
    names: [],
    ...over,
  }
}

/** Facts of a program that runs, with whatever differs. */
export function facts(over: Partial<Facts> & { groups?: readonly UpstreamFacts[] } = {}): Facts {
  const { groups = [], ...rest } = over
  return {
    version: '0.1.0',
    clock: { now: () => now, wall: () => wall },
    startedAt: wall - 60_000,
    generation: () => 1,
    loadedAt: () => wall,
    model: () => ({ http: {} }),
    threads: () => ({ running: 1, replaced: 0 }),
    connections: () => ({ accepted: 7, dropped: 1, lost: 4, active: 2, idle: 3 }),
    upstreams: () => groups,
    serverZones: () => new Map(),
    locationZones: () => new Map(),
    streamZones: () => new Map(),
    resolvers: () => [],
    fleet: () => undefined,
    runtime: () => undefined,
    ready: () => true,
    draining: () => false,
    reload: async (): Promise<Reloaded> => ({ ok: true }),
    lastReload: () => undefined,
    templates: () => new Map(),
    hosts: () => [],
    token: () => undefined,
    watch: () => () => {},
    ...rest,
  }
}
