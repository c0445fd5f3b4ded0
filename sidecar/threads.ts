import { availableParallelism } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { clockOrigin } from '../feedback/clock.ts'
import { recall } from '../feedback/held.ts'
import type { Tally } from '../feedback/tally.ts'
import type { SharedZone, Zone } from '../feedback/zone.ts'
import type { Running } from './build/running.ts'
import type { Model } from './config/model.ts'
import type { Crew } from './crew.ts'
import { mistakeOf, stackOf } from './mistake.ts'
import { tryBind } from './proxy/bind.ts'
import type { ListenSpec } from './proxy/listener.ts'
import type { Order, Report, Setup, WorkerData } from './setup.ts'
import { reopenLogs } from './telemetry/access-log.ts'
import { errorLog } from './telemetry/error-log.ts'
import { logFiles } from './telemetry/log-files.ts'

/** Most threads; more would only stand in each other's way. */
export const mostThreads = 64
/** A thread that died sooner than this after it began is not replaced at once, milliseconds. */
const shortLife = 1000
/** Longest wait for that, milliseconds. */
const longestWait = 10_000
/** How long threads have to write their logs at the end, milliseconds. */
const farewell = 500

/** How many threads a configuration asks for. nginx's default is one. */
export function threadsWanted({ worker_processes: asked }: Model): number {
  return Math.min(mostThreads, asked === 'auto' ? availableParallelism() : (asked ?? 1))
}

interface Thread {
  readonly row: number
  readonly worker: Worker
  readonly moves: MessagePort
  readonly bornAt: number
  /** Takes the answer to the setup that was sent last. */
  answer: (report: Report) => void
  /** Told to end. */
  leaving: boolean
  /** Has begun to serve. */
  serving: boolean
}

/** Threads that serve clients, each on all addresses. One that dies is replaced, and what it held is taken back. */
export class Threads implements Crew {
  readonly #count: number
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
  #replaced = 0
  #over = false

  constructor(count: number, tally: Tally, startedAt: number) {
    this.#count = count
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

  async open(listens: readonly ListenSpec[]): Promise<void> {
    const ports = new Map<string, number>()
    for (const spec of listens) {
      const { key, address } = spec
      if (this.#open.has(key)) {
        const port = this.#ports.get(key)
        if (port !== undefined) ports.set(key, port)
        continue
      }
      // Listeners that share an address would not notice that another program shares it too.
      const taken = await tryBind(spec)
      if (address.kind === 'tcp' && address.port === 0 && taken.kind === 'tcp') ports.set(key, taken.port)
    }
    this.#ports = ports
    this.#open = new Set(listens.map(({ key }) => key))
  }

  async use(running: Running, setup: () => Setup): Promise<void> {
    for (const { balancing } of running.groups.values()) this.#know(balancing.upstream.zone)
    const next = setup()
    const first = this.#setup === undefined
    this.#setup = next
    this.#running = running
    const reports = this.#threads.map((thread, row) =>
      first ? this.#begin(row) : thread && this.#tell(thread, { kind: 'apply', setup: next }),
    )
    for (const report of await Promise.all(reports)) {
      if (report?.kind !== 'failed') continue
      if (first) throw new Error(report.error)
      errorLog.log('alert', `a thread does not serve by the new configuration: ${report.error}`)
    }
    this.#forget()
  }

  begin(): void {
    this.#order({ kind: 'begin' })
  }

  close(): void {
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

  reopen(): void {
    reopenLogs()
    this.#order({ kind: 'reopen' })
  }

  async leave(): Promise<void> {
    this.#over = true
    const ends = this.#threads.flatMap((thread) => {
      if (thread === undefined) return []
      thread.leaving = true
      return [new Promise((resolve) => thread.worker.once('exit', resolve))]
    })
    this.#order({ kind: 'leave' })
    await Promise.race([Promise.all(ends), wait(farewell)])
    logFiles.flushSync()
  }

  /**
   * Ends a thread, for tests of what the others do then.
   * @param how by an exception that nobody catches in it, or from outside
   */
  fault(row: number, how: 'throw' | 'terminate'): void {
    const thread = this.#threads[row]
    if (thread === undefined) return
    if (how === 'throw') post(thread, { kind: 'fault' })
    else void thread.worker.terminate()
  }

  #order(order: Order): void {
    for (const thread of this.#threads) if (thread) post(thread, order)
  }

  #tell(thread: Thread, order: Order): Promise<Report> {
    return new Promise((resolve) => {
      thread.answer = resolve
      post(thread, order)
    })
  }

  /** Begins a thread. @returns what became of its setup */
  #begin(row: number): Promise<Report> {
    const setup = this.#setup
    if (setup === undefined) throw new Error('there is nothing to serve by yet')
    const { port1: moves, port2 } = new MessageChannel()
    const data: WorkerData = {
      thread: row,
      threads: this.#count,
      clock: clockOrigin(),
      startedAt: this.#startedAt,
      tally: this.#tally.share(),
      moves: port2,
      setup,
      faults: process.env['EVENKEEL_TEST_FAULTS'] === '1',
    }
    return new Promise((resolve) => {
      const worker = new Worker(new URL('./worker.ts', import.meta.url), {
        workerData: data,
        transferList: [port2],
        name: `worker ${row}`,
      })
      const thread: Thread = {
        row,
        worker,
        moves,
        bornAt: performance.now(),
        answer: resolve,
        leaving: false,
        serving: false,
      }
      this.#threads[row] = thread
      moves.unref()
      worker.on('message', (report: Report) => {
        if (report.kind === 'applied') thread.serving = true
        thread.answer(report)
      })
      worker.on('error', (error) => errorLog.log('alert', `thread ${row} died: ${stackOf(error)}`))
      worker.on('exit', (code) => this.#ended(thread, code))
    })
  }

  /** A thread is no more: what it held is taken back, and another one takes its place. */
  #ended(thread: Thread, code: number): void {
    const { row, moves, bornAt } = thread
    moves.close()
    if (this.#threads[row] === thread) this.#threads[row] = undefined
    this.#tally.clear(row)
    for (const zone of this.#zones) {
      zone.enter()
      recall(zone, row)
      zone.leave()
    }
    const { serverZones, locationZones } = this.#running ?? {}
    for (const zones of [serverZones, locationZones])
      for (const zone of zones?.values() ?? []) zone.clear(row)
    thread.answer({ kind: 'failed', error: `thread ${row} ended with code ${code}` })
    if (this.#over || thread.leaving) return
    void this.#replace(row, performance.now() - bornAt)
  }

  async #replace(row: number, life: number): Promise<void> {
    this.#replaced += 1
    for (let pause = life < shortLife ? 100 : 0; ; pause = Math.min(longestWait, Math.max(100, 2 * pause))) {
      if (pause > 0) await wait(pause, undefined, { ref: false })
      if (this.#over) return
      const setup = this.#setup
      const report = await this.#begin(row)
      if (report.kind === 'applied') {
        errorLog.log('notice', `thread ${row} was replaced`)
        const now = this.#threads[row]
        // A reload may have passed by while it began.
        if (now && this.#setup !== undefined && this.#setup !== setup) {
          await this.#tell(now, { kind: 'apply', setup: this.#setup })
        }
        return
      }
      errorLog.log('alert', `thread ${row} could not be replaced: ${report.error}`)
      // One that has ended by itself sees to its own replacement.
      const left = this.#threads[row]
      if (left === undefined) return
      left.leaving = true
      await left.worker.terminate().catch((error: unknown) => mistakeOf(error))
    }
  }

  /** From now on what threads hold of the zone is taken back when they die, and they hear of its moves. */
  #know(zone: Zone): void {
    if (this.#zones.has(zone)) return
    this.#zones.add(zone)
    zone.onMove = (shared: SharedZone) => {
      for (const thread of this.#threads) thread?.moves.postMessage(shared)
    }
  }

  /** Lets zones go that the configuration no longer has and that carry no call. */
  #forget(): void {
    const used = new Set<Zone>()
    for (const { balancing } of this.#running?.groups.values() ?? []) used.add(balancing.upstream.zone)
    for (const zone of this.#zones) {
      if (!used.has(zone) && zone.retired.length === 0 && zone.get('keepalive') === 0)
        this.#zones.delete(zone)
    }
  }
}

function post({ worker }: Thread, order: Order): void {
  worker.postMessage(order)
}
