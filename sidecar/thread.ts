import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { SharedZone } from '../feedback/zone.ts'
import { mistakeOf, stackOf } from './mistake.ts'
import type { News, Order, Report, Setup, WorkerData } from './setup.ts'
import { errorLog } from './telemetry/error-log.ts'

/** A thread that serves clients, as the one sees it that has begun it. */
export class Thread {
  readonly row: number
  /** What became of its first setup. */
  readonly begun: Promise<Report>
  /** Settles when it is no more. */
  readonly gone: Promise<void>
  /** Monotonic milliseconds. */
  readonly bornAt = performance.now()
  #serving = false
  #leaving = false
  readonly #worker: Worker
  readonly #moves: MessagePort
  /** Who waits for what became of each setup, in the order in which they were sent. */
  readonly #waiting: ((report: Report) => void)[] = []

  /**
   * @param ended told when it is no more, before anybody hears that its setups came to nothing
   * @param heard told what it says of its own accord
   * @throws Error when the system has no room for another
   */
  constructor(data: Omit<WorkerData, 'moves'>, ended: (thread: Thread) => void, heard: (news: News) => void) {
    const { port1, port2 } = new MessageChannel()
    this.row = data.thread
    this.#moves = port1
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { ...data, moves: port2 } satisfies WorkerData,
      transferList: [port2],
      name: `worker ${this.row}`,
    })
    port1.unref()
    this.begun = this.#answer()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.gone = promise
    this.#worker.on('message', (message: Report | News) => {
      if (message.kind === 'attempts') return heard(message)
      if (message.kind === 'applied') this.#serving = true
      this.#waiting.shift()?.(message)
    })
    this.#worker.on('error', (error) => errorLog.log('alert', `thread ${this.row} died: ${stackOf(error)}`))
    this.#worker.on('exit', (code) => {
      port1.close()
      ended(this)
      const report: Report = { kind: 'failed', error: `thread ${this.row} ended with code ${code}` }
      for (const wake of this.#waiting.splice(0)) wake(report)
      resolve()
    })
  }

  /** Whether it has begun to serve. */
  get serving(): boolean {
    return this.#serving
  }

  /** Whether it was told to end. */
  get leaving(): boolean {
    return this.#leaving
  }

  #answer(): Promise<Report> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** Lets it serve by another configuration. @returns what became of that; it never rejects */
  apply(setup: Setup): Promise<Report> {
    this.order({ kind: 'apply', setup })
    return this.#answer()
  }

  order(order: Order): void {
    if (order.kind === 'leave') this.#leaving = true
    this.#worker.postMessage(order)
  }

  /** A zone lies elsewhere from now on. */
  moved(zone: SharedZone): void {
    this.#moves.postMessage(zone)
  }

  /** Ends it from outside, as if it died; settles when it is no more. */
  async kill(): Promise<void> {
    await this.#worker.terminate().catch((error: unknown) => errorLog.log('alert', mistakeOf(error)))
  }

  /** Ends it for good. */
  async dismiss(): Promise<void> {
    this.#leaving = true
    await this.kill()
  }
}
