import { availableParallelism } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { clockOrigin } from '../feedback/clock.ts'
import type { RecentBatch } from '../feedback/feed.ts'
import { isLetGo, recall } from '../feedback/held.ts'
import type { Tally } from '../feedback/tally.ts'
import type { SharedZone, Zone } from '../feedback/zone.ts'
import type { Running } from './build/running.ts'
import type { Model } from './config/model.ts'
import type { Crew } from './crew.ts'
import { type Listens, udpKey } from './listens.ts'
import { mistakeOf } from './mistake.ts'
import { type ListenAddress, tryBind } from './net/bind.ts'
import { tryBindUdp } from './net/bind-udp.ts'
import type { Order, Report, Setup } from './setup.ts'
import { reopenLogs } from './telemetry/access-log.ts'
import { errorLog } from './telemetry/error-log.ts'
import { lastLinesMs, logFiles } from './telemetry/log-files.ts'
import { endTurns, shareTurns } from './telemetry/pipe-turns.ts'
import { Thread } from './thread.ts'

/** Most threads; more would only stand in each other's way. */
const mostThreads = 64
/** A thread that died sooner than this after it began is not replaced at once, milliseconds. */
const shortLife = 1000
/** How long is waited then, and before what a thread could not do is tried again; twice as long each time. */
const shortestWait = 100
const longestWait = 10_000
/** How long threads have to write their logs at the end, milliseconds. */
const farewell = 1500

/** How many threads a configuration asks for. nginx's default is one. */
export function threadsWanted({ worker_processes: asked }: Model): number {
  return Math.min(mostThreads, asked === 'auto' ? availableParallelism() : (asked ?? 1))
}

/** Threads that serve clients, each on all addresses. One that dies is replaced, and what it held is taken back. */
export class Threads implements Crew {
  /** How many serve when all do. */
  readonly size: number
  readonly #tally: Tally
  readonly #startedAt: number
  /** By row; undefined while one is being replaced. */
  readonly #threads: (Thread | undefined)[]
  /** Zones that threads may hold something of. */
  readonly #zones = new Set<Zone>()
  /** Addresses that are listened on, with the port that was taken. */
  #ports = new Map<string, number>()
  #open = new Set<string>()
  #setup: Setup | undefined
  #running: Running | undefined
  #hear: ((batch: RecentBatch) => void) | undefined
  #replaced = 0
  /** How far a drain has got. */
  #drain: 'not' | 'begun' | 'closed' = 'not'
  #over = false

  constructor(count: number, tally: Tally, startedAt: number) {
    this.size = count
    this.#tally = tally
    this.#startedAt = startedAt
    this.#threads = Array.from({ length: count }, () => undefined)
  }

  get threads(): { readonly running: number; readonly replaced: number } {
    return {
      running: this.#threads.filter((thread) => thread?.serving).length,
      replaced: this.#replaced,
    }
  }

  /** Ports of addresses with port 0. */
  get ports(): ReadonlyMap<string, number> {
    return this.#ports
  }

  async open({ http, stream, udp }: Listens): Promise<void> {
    const ports = new Map<string, number>()
    const open = new Set<string>()
    const look = async (key: string, address: ListenAddress, take: () => Promise<ListenAddress>) => {
      open.add(key)
      const port = this.#ports.get(key)
      if (this.#open.has(key)) {
        if (port !== undefined) ports.set(key, port)
        return
      }
      const taken = await take()
      if (address.kind === 'tcp' && address.port === 0 && taken.kind === 'tcp') ports.set(key, taken.port)
    }
    // Listeners that share an address would not notice that another program shares it too.
    for (const spec of [...http, ...stream]) await look(spec.key, spec.address, () => tryBind(spec))
    for (const spec of udp) await look(udpKey(spec), spec.address, () => tryBindUdp(spec))
    this.#ports = ports
    this.#open = open
  }

  async use(running: Running, setup: () => Setup): Promise<void> {
    // Not at once: what the configuration before this one took away has begun its last calls by now.
    this.#forget()
    for (const zone of zonesOf(running)) this.#know(zone)
    const next = setup()
    const first = this.#setup === undefined
    this.#setup = next
    this.#running = running
    const reports = this.#threads.map(async (thread, row) => {
      const report = await (first ? this.#begin(row) : thread?.apply(next))
      if (report?.kind !== 'failed') return
      if (first) throw new Error(report.error)
      // Whoever takes the place of one that has died meanwhile begins with the new one.
      if (thread !== undefined && this.#threads[row] !== thread) return
      errorLog.log('alert', `a thread does not serve by the new configuration: ${report.error}`)
      if (thread) void this.#insist(thread, next)
    })
    await Promise.all(reports)
  }

  begin(): void {
    this.#drain = 'begun'
    this.#order({ kind: 'begin' })
  }

  close(): void {
    this.#drain = 'closed'
    this.#order({ kind: 'close' })
  }

  closeIdle(): void {
    this.#order({ kind: 'closeIdle' })
  }

  endTunnels(): void {
    this.#order({ kind: 'endTunnels' })
  }

  destroy(): void {
    this.#order({ kind: 'destroy' })
  }

  watch(hear: ((batch: RecentBatch) => void) | undefined): void {
    this.#hear = hear
    this.#order({ kind: 'watch', on: hear !== undefined })
  }

  reopen(): void {
    reopenLogs()
    this.#order({ kind: 'reopen' })
  }

  async leave(): Promise<void> {
    this.#over = true
    const ends = this.#threads.flatMap((thread) => thread?.gone ?? [])
    this.#order({ kind: 'leave' })
    await Promise.race([Promise.all(ends), wait(farewell)])
    await logFiles.settle(lastLinesMs)
  }

  /**
   * Ends a thread, for tests of what the others do then.
   * @param how by an exception that nobody catches in it, or from outside
   */
  fault(row: number, how: 'throw' | 'terminate'): void {
    const thread = this.#threads[row]
    if (how === 'throw') thread?.order({ kind: 'fault' })
    else void thread?.kill()
  }

  #order(order: Order): void {
    for (const thread of this.#threads) thread?.order(order)
  }

  /** Begins a thread. @returns what became of its setup */
  async #begin(row: number): Promise<Report> {
    const setup = this.#setup
    if (setup === undefined) throw new Error('there is nothing to serve by yet')
    try {
      const thread = new Thread(
        {
          thread: row,
          threads: this.size,
          clock: clockOrigin(),
          startedAt: this.#startedAt,
          tally: this.#tally.share(),
          turns: shareTurns(),
          setup,
          faults: process.env['EVENKEEL_TEST_FAULTS'] === '1',
        },
        (ended) => this.#ended(ended),
        // What was under way when the last one stopped watching is nobody's.
        ({ batch }) => this.#hear?.(batch),
      )
      this.#threads[row] = thread
      if (this.#drain === 'begun') thread.order({ kind: 'begin' })
      if (this.#hear) thread.order({ kind: 'watch', on: true })
      return await thread.begun
    } catch (error) {
      return { kind: 'failed', error: mistakeOf(error) }
    }
  }

  /** A thread is no more: what it held is taken back, and another one takes its place. */
  #ended(thread: Thread): void {
    const { row, serving, leaving, bornAt } = thread
    if (this.#threads[row] === thread) this.#threads[row] = undefined
    this.#tally.clear(row)
    endTurns(row)
    for (const zone of this.#zones) {
      zone.enter()
      recall(zone, row)
      zone.leave()
      zone.wake()
    }
    const { serverZones, locationZones, streamZones } = this.#running ?? {}
    for (const zones of [serverZones, locationZones, streamZones])
      for (const zone of zones?.values() ?? []) zone.clear(row)
    // One that never served is the affair of whoever has begun it.
    if (serving && !leaving)
      void this.#replace(row, performance.now() - bornAt < shortLife ? shortestWait : 0)
  }

  /** Whether no thread is to serve from now on that does not yet. */
  get #late(): boolean {
    return this.#over || this.#drain === 'closed'
  }

  async #replace(row: number, firstWait: number): Promise<void> {
    this.#replaced += 1
    for (let pause = firstWait; ; pause = longer(pause)) {
      if (pause > 0) await wait(pause)
      if (this.#late) return
      const report = await this.#begin(row)
      if (report.kind === 'applied') return errorLog.log('notice', `thread ${row} was replaced`)
      if (this.#late) return
      errorLog.log('alert', `thread ${row} could not be replaced: ${report.error}`)
      await this.#threads[row]?.dismiss()
    }
  }

  /** Has a thread try again what it could not do; until then it serves by the configuration that it has. */
  async #insist(thread: Thread, setup: Setup): Promise<void> {
    for (let pause = shortestWait; ; pause = longer(pause)) {
      await wait(pause)
      if (this.#late || this.#setup !== setup || this.#threads[thread.row] !== thread) return
      const report = await thread.apply(setup)
      if (report.kind === 'applied') {
        return errorLog.log('notice', `thread ${thread.row} serves by the new configuration`)
      }
    }
  }

  /** From now on what threads hold of the zone is taken back when they die, and they hear of its moves. */
  #know(zone: Zone): void {
    if (this.#zones.has(zone)) return
    this.#zones.add(zone)
    zone.onMove = (shared: SharedZone) => {
      for (const thread of this.#threads) thread?.moved(shared)
    }
  }

  /** Lets zones go that the configuration has no more and of which nobody holds anything. */
  #forget(): void {
    const used = new Set(this.#running ? zonesOf(this.#running) : [])
    for (const zone of this.#zones) if (!used.has(zone) && isLetGo(zone)) this.#zones.delete(zone)
  }
}

/** The zones of all groups, and those of methods that are tried there. */
function* zonesOf({ groups }: Running): Generator<Zone> {
  for (const { balancing } of groups.values()) {
    const { zone, shadow } = balancing.upstream
    yield zone
    if (shadow !== undefined) yield shadow.upstream.zone
  }
}

function longer(pause: number): number {
  return Math.min(longestWait, Math.max(shortestWait, 2 * pause))
}
