import { monotonic } from '../feedback/clock.ts'
import type { Facts } from './admin/facts.ts'
import { masked } from './admin/running.ts'
import { upstreamFacts } from './build/running.ts'
import type { Program } from './program.ts'
import { version } from './version.ts'

const startedAt = Date.now()

/** What the admin server may know of the program. Everything is read when it is asked for. */
export function programFacts(program: Program): Facts {
  return {
    version,
    clock: { now: () => monotonic(), wall: () => Date.now() },
    startedAt,
    generation: () => program.generation,
    loadedAt: () => program.loadedAt,
    model: () => masked(program.loaded?.model ?? {}),
    connections() {
      const counts = program.listeners?.counts
      if (counts === undefined) return { accepted: 0, dropped: 0, active: 0, idle: 0 }
      const { accepted, dropped, open, active } = counts
      return { accepted, dropped, active, idle: open - active }
    },
    upstreams: () => (program.running ? upstreamFacts(program.running, program.removed) : []),
    serverZones: () => program.running?.serverZones ?? new Map(),
    locationZones: () => program.running?.locationZones ?? new Map(),
    ready: () => program.phase === 'ready',
    draining: () => program.phase === 'draining',
    reload: () => program.reloads.ask(),
    lastReload: () => program.reloads.last,
    templates: () => program.running?.templates ?? new Map(),
    hosts: () => program.running?.model.admin_host ?? [],
    token: () => program.token,
  }
}
