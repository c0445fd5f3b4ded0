import { setTimeout as wait } from 'node:timers/promises'
import { monotonic } from '../feedback/clock.ts'
import type { FleetFacts } from '../feedback/fleet/facts.ts'
import { Tally } from '../feedback/tally.ts'
import { Admins } from './admins.ts'
import { retireLeaving } from './build/groups.ts'
import { followedNames } from './build/plans.ts'
import { rebuild, refreshment } from './build/refresh.ts'
import type { Running } from './build/running.ts'
import { shareMemory } from './build/shared-memory.ts'
import { Runtime } from './changes/runtime.ts'
import type { Loaded } from './config/load.ts'
import { timeMs } from './config/units.ts'
import { ConfigWatch } from './config-watch.ts'
import { type Crew, drainable, OneThread } from './crew.ts'
import { drain } from './drain.ts'
import { listensOf } from './listens.ts'
import type { Membership } from './membership.ts'
import { mistakeOf } from './mistake.ts'
import { canShare } from './net/bind.ts'
import { systemProber } from './probing.ts'
import { type ProgramView, programFacts } from './program-facts.ts'
import { type InForce, inForce, logPaths, makeReady, pathsRead, type Ready } from './ready.ts'
import { Refreshes } from './refreshes.ts'
import { type Reloaded, Reloads } from './reloads.ts'
import { RemovedGroups } from './removed.ts'
import type { ResolverFacts } from './resolve/followers.ts'
import { systemFollowers } from './resolving.ts'
import type { Setup } from './setup.ts'
import { Sharing } from './sharing.ts'
import type { Source } from './source.ts'
import { logAttempts } from './telemetry/attempt-lines.ts'
import { errorLog } from './telemetry/error-log.ts'
import { logFiles } from './telemetry/log-files.ts'
import { logProbes } from './telemetry/probe-lines.ts'
import { Threads, threadsWanted } from './threads.ts'
import { TlsStore } from './tls/store.ts'
import { inTurn } from './turns.ts'
import { Watchers } from './watchers.ts'

/** The program at work: one configuration in force, replaced as a whole by a reload. */
export class Program implements ProgramView {
  readonly reloads: Reloads
  /** Wall clock milliseconds. */
  readonly startedAt = Date.now()
  /** Asks the peers, from this thread alone. */
  readonly prober = systemProber()
  readonly watchers = new Watchers((hear) => this.#crew?.watch(hear))
  readonly #source: Source
  readonly #facts = programFacts(this)
  readonly #admins = new Admins(this.#facts, (text) => errorLog.log('alert', text))
  readonly #watch: ConfigWatch
  readonly #sharing = new Sharing()
  readonly #refreshes: Refreshes
  /** What is changed of groups while it runs. */
  readonly runtime = new Runtime({
    groups: () => this.#running?.groups ?? new Map(),
    refresh: () => this.refresh(),
    now: monotonic,
    wall: () => Date.now(),
    tell: (text) => errorLog.log('notice', text),
  })
  readonly #followers = systemFollowers(() => void this.refresh())
  readonly #membership: Membership = {
    expect: (names) => this.#followers.expect(names),
    resolved: (name) => this.#followers.resolved(name),
    changed: (plans) => this.runtime.changed(plans),
  }
  readonly #removed = new RemovedGroups()
  #tally = new Tally()
  #crew: Crew | undefined
  #inForce: InForce | undefined
  #running: Running | undefined
  #phase: 'starting' | 'ready' | 'draining' = 'starting'
  #generation = 0
  #loadedAt = 0
  /** How many threads serve beside this one; 0: none. */
  #threads = 0

  constructor(source: Source) {
    this.#source = source
    // Nothing else changes what is in force while one of them does.
    const alone = inTurn()
    this.reloads = new Reloads(() => alone(() => this.#reload()))
    this.#refreshes = new Refreshes(() => alone(() => this.#refresh()), {
      wait: (ms) => wait(ms, undefined, { ref: false }),
      say: (text) => errorLog.log('error', text),
    })
    this.#watch = new ConfigWatch(() => void this.reloads.ask())
  }

  get phase(): 'starting' | 'ready' | 'draining' {
    return this.#phase
  }
  get generation(): number {
    return this.#generation
  }
  /** Wall clock milliseconds. */
  get loadedAt(): number {
    return this.#loadedAt
  }
  get loaded(): Loaded | undefined {
    return this.#inForce?.loaded
  }
  get token(): string | undefined {
    return this.#inForce?.token
  }
  get running(): Running | undefined {
    return this.#running
  }
  get tally(): Tally {
    return this.#tally
  }
  get crew(): Crew | undefined {
    return this.#crew
  }
  get threads(): Crew['threads'] {
    return this.#crew?.threads ?? { running: 0, replaced: 0 }
  }
  get resolvers(): readonly ResolverFacts[] {
    return this.#followers.facts()
  }
  get fleet(): FleetFacts | undefined {
    return this.#sharing.fleet
  }
  /** Groups that the configuration no longer has and that still carry calls. */
  get removed(): ProgramView['removed'] {
    return this.#removed.all
  }

  /**
   * Brings the groups in line with who belongs to them now, without reading the file and without a new generation.
   * @returns resolves once every thread goes by it; what changes after this call may be in or not
   * @throws Error why that is not so; it is tried again all the same
   */
  refresh(): Promise<void> {
    return this.#refreshes.ask()
  }

  /**
   * Reads the configuration, opens everything, and serves.
   * @param read told of the configuration as soon as it is known to be good
   * @throws Error with nginx's words
   */
  async start(read: (loaded: Loaded) => void): Promise<void> {
    const muster = async (loaded: Loaded) => {
      await this.#muster(loaded)
      return this.#threads
    }
    const ready = await makeReady(this.#source, undefined, muster, this.#membership)
    read(ready.loaded)
    errorLog.configure(ready.errorLogs)
    logAttempts()
    logProbes()
    const crew = this.#crew!
    await crew.open(listensOf(ready.prepared))
    const admin = await this.#admins.prepare(ready.loaded.model, this.#source.prefix)
    admin.commit()
    await this.#putInForce(crew, ready)
    this.#phase = 'ready'
    // What has changed since it was built.
    void this.refresh()
  }

  /** Decides who serves. */
  async #muster({ model }: Loaded): Promise<void> {
    const wanted = threadsWanted(model)
    if (wanted > 1 && (await canShare())) {
      this.#threads = wanted
      this.#tally = new Tally(wanted)
      this.#crew = new Threads(wanted, this.#tally, this.startedAt)
      return
    }
    if (wanted > 1) errorLog.log('warn', 'threads cannot share an address on this system: one thread serves')
    this.#crew = new OneThread(this.#facts, this.#tally)
  }

  #setupOf({ loaded, plans, errorLogs, basis }: InForce, running: Running, loadedAt: number): Setup {
    return {
      model: loaded.model,
      prefix: this.#source.prefix,
      plans,
      memory: shareMemory(plans, running),
      errorLogs,
      ports: this.#crew instanceof Threads ? this.#crew.ports : new Map(),
      tls: (basis.options.tls ?? new TlsStore()).share(),
      nameServers: basis.options.nameServers ?? new Map(),
      generation: this.#generation + (running.refreshed ? 0 : 1),
      loadedAt,
    }
  }

  /**
   * Ends in order; see drain.ts.
   * @returns whether everything has ended by itself
   */
  async drain(): Promise<boolean> {
    const crew = this.#crew
    const { drain_delay = '0s', drain_timeout = '30s' } = this.#running?.model ?? {}
    this.#phase = 'draining'
    this.#watch.watch([])
    this.#refreshes.stop()
    this.#followers.stop()
    if (crew === undefined) return true
    return drain(
      drainable(crew, this.#tally),
      { delay: timeMs(drain_delay) ?? 0, timeout: timeMs(drain_timeout) ?? 30_000 },
      (ms) => wait(ms),
      monotonic,
    ).finally(() => this.prober.stop())
  }

  /** The end: takes leave of the fleet, and writes what logs hold. Never rejects, and takes two seconds or so. */
  async leave(): Promise<void> {
    const asked = this.prober.stop()
    await Promise.all([asked.then(() => this.#sharing.stop()), this.#crew?.leave()])
  }

  async #reload(): Promise<Reloaded> {
    const crew = this.#crew
    if (this.#phase !== 'ready' || crew === undefined) {
      return { ok: false, error: 'not now: the program starts or ends' }
    }
    this.#watch.noted()
    let ready: Ready
    try {
      ready = await makeReady(this.#source, this.#running, async () => this.#threads, this.#membership)
      const admin = await this.#admins.prepare(ready.loaded.model, this.#source.prefix)
      try {
        await crew.open(listensOf(ready.prepared))
      } catch (error) {
        admin.rollback()
        throw error
      }
      admin.commit()
    } catch (error) {
      this.#followers.keep(followedNames(this.#inForce?.basis.drafts ?? []))
      const text = mistakeOf(error)
      errorLog.log('emerg', text)
      errorLog.log('error', `the configuration was not reloaded; generation ${this.#generation} goes on`)
      return { ok: false, error: text }
    }
    const before = this.#running?.groups
    this.#removed.letGo()
    errorLog.configure(ready.errorLogs)
    const running = await this.#putInForce(crew, ready)
    this.runtime.settle()
    this.#removed.add(before, running.groups)
    retireLeaving(running)
    logFiles.keepOnly(['stdout', 'stderr', ...logPaths(ready, this.#source)])
    for (const text of ready.loaded.warnings) errorLog.log('warn', text)
    if (threadsWanted(running.model) !== Math.max(1, this.#threads)) {
      errorLog.log('warn', 'the number of worker threads changes at the next start')
    }
    errorLog.log('notice', `configuration reloaded, generation ${this.#generation}`)
    return { ok: true }
  }

  async #refresh(): Promise<void> {
    const [crew, now, old] = [this.#crew, this.#inForce, this.#running]
    if (this.#phase !== 'ready' || !crew || !now || !old) return
    const { plans, lines, failures } = refreshment(now.basis, this.#membership, old)
    if (lines.length > 0) {
      this.#removed.letGo()
      const running = rebuild(now.basis, plans, old)
      await this.#serveBy(crew, { ...now, plans }, running, this.#loadedAt)
      retireLeaving(running)
      for (const line of lines) errorLog.log('notice', line)
    }
    if (failures.length > 0) throw new Error(failures.map(mistakeOf).join('; '))
  }

  /** Makes a configuration the one that is served by. It counts as loaded once every thread serves by it. */
  async #putInForce(crew: Crew, ready: Ready): Promise<Running> {
    await this.#sharing.prepare(ready.fleet)
    const running = ready.prepared.commit()
    const loadedAt = Date.now()
    await this.#serveBy(crew, inForce(ready), running, loadedAt)
    this.#followers.keep(followedNames(ready.prepared.basis.drafts))
    this.#generation += 1
    this.#loadedAt = loadedAt
    this.#watch.watch(ready.loaded.model.config_watch ? pathsRead(ready, this.#source) : [])
    return running
  }

  async #serveBy(crew: Crew, next: InForce, running: Running, loadedAt: number): Promise<void> {
    const upstreams = Array.from(running.groups.values(), ({ balancing }) => balancing.upstream)
    this.#sharing.use(next.fleet, upstreams)
    this.prober.share(this.#sharing.fleet)
    // Before anybody picks from the new groups: a peer that has to pass first gets nothing until then.
    const leaving = new Set(running.leaving.flatMap(({ peers }) => peers))
    this.prober.use(running.probes, leaving, running.refreshed)
    await this.#sharing.settle(upstreams)
    await crew.use(running, () => this.#setupOf(next, running, loadedAt))
    this.#inForce = next
    this.#running = running
  }
}
