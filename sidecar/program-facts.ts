import { monotonic } from '../feedback/clock.ts'
import type { RecentBatch } from '../feedback/feed.ts'
import type { FleetFacts } from '../feedback/fleet/facts.ts'
import type { Peer } from '../feedback/peer.ts'
import type { Tally } from '../feedback/tally.ts'
import type { Facts, ProbeFacts } from './admin/facts.ts'
import { masked } from './admin/running.ts'
import type { RuntimeFacts } from './admin/runtime-facts.ts'
import type { LiveGroup } from './build/groups.ts'
import type { Running } from './build/running.ts'
import { upstreamFacts } from './build/upstream-facts.ts'
import type { Model } from './config/model.ts'
import type { Reloaded } from './reloads.ts'
import type { ResolverFacts } from './resolve/followers.ts'
import { version } from './version.ts'

/** What of the program is shown. */
export interface ProgramView {
  /** Wall clock milliseconds. */
  readonly startedAt: number
  readonly phase: 'starting' | 'ready' | 'draining'
  readonly generation: number
  /** Wall clock milliseconds. */
  readonly loadedAt: number
  readonly loaded: { readonly model: Model } | undefined
  readonly token: string | undefined
  readonly running: Running | undefined
  readonly tally: Tally
  /** Groups that the configuration no longer has and that still carry calls. */
  readonly removed: Iterable<LiveGroup>
  readonly reloads: {
    readonly last: (Reloaded & { readonly at: number }) | undefined
    ask(): Promise<Reloaded>
  }
  readonly threads: { readonly running: number; readonly replaced: number }
  /** Undefined where no fleet is configured, and in threads that leave that to the main one. */
  readonly fleet: FleetFacts | undefined
  /** Undefined in threads that leave changes to the main one. */
  readonly runtime?: RuntimeFacts
  /** Undefined in threads that leave names to the main one. */
  readonly resolvers?: readonly ResolverFacts[]
  /** Undefined in threads that ask no peers. */
  readonly prober?: { about(peer: Peer): readonly ProbeFacts[] }
  /** Undefined in threads that tell nobody but the main one. */
  readonly watchers?: { add(hear: (batch: RecentBatch) => void): () => void }
}

/** What the admin server may know of the program. Everything is read when it is asked for. */
export function programFacts(program: ProgramView): Facts {
  return {
    version,
    clock: { now: () => monotonic(), wall: () => Date.now() },
    startedAt: program.startedAt,
    generation: () => program.generation,
    loadedAt: () => program.loadedAt,
    model: () => masked(program.loaded?.model ?? {}),
    connections() {
      const { accepted, dropped, lost, open, active } = program.tally.all()
      return { accepted, dropped, lost, active, idle: open - active }
    },
    threads: () => program.threads,
    upstreams: () => (program.running ? upstreamFacts(program.running, program.removed, program.prober) : []),
    serverZones: () => program.running?.serverZones ?? new Map(),
    locationZones: () => program.running?.locationZones ?? new Map(),
    streamZones: () => program.running?.streamZones ?? new Map(),
    resolvers: () => program.resolvers ?? [],
    fleet: () => program.fleet,
    runtime: () => program.runtime,
    ready: () => program.phase === 'ready',
    draining: () => program.phase === 'draining',
    reload: () => program.reloads.ask(),
    lastReload: () => program.reloads.last,
    templates: () => program.running?.templates ?? new Map(),
    hosts: () => program.running?.model.admin_host ?? [],
    token: () => program.token,
    watch: (hear) => program.watchers?.add(hear) ?? (() => {}),
  }
}
