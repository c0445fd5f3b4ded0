import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, dial } from './client.ts'
import { Watcher } from './undisturbed.ts'

interface Answer {
  /** When it was asked for, monotonic milliseconds. */
  readonly at: number
  /** How long it took. */
  readonly ms: number
}

export interface LoadOptions {
  readonly clients?: number
  /** Each client asks once in so many milliseconds, or as soon as it has its answer where that takes longer. */
  readonly every?: number
  readonly target?: string
  /** Whether the times are kept; a long load as fast as possible would fill the memory of the test. */
  readonly timed?: boolean
}

/** Clients that keep their connections and ask all the time until they are told to stop. */
export class SteadyLoad implements AsyncDisposable {
  /** What clients had other than 200 with a whole body. */
  readonly failures: string[] = []
  answered = 0
  readonly #answers: Answer[] = []
  readonly #timed: boolean
  readonly #done: Promise<unknown>
  readonly #watcher = new Watcher()
  #over = false

  constructor(port: number, { clients = 3, every = 20, target = '/', timed = true }: LoadOptions = {}) {
    this.#timed = timed
    this.#done = Promise.all(
      Array.from({ length: clients }, (_, i) => this.#run(port, target, every, (i * every) / clients)),
    )
  }

  async #run(port: number, target: string, every: number, offset: number): Promise<void> {
    if (offset > 0) await sleep(offset)
    let client: Client | undefined
    while (!this.#over) {
      const at = performance.now()
      try {
        client ??= await dial(port)
        const reply = await client.ask(target)
        // After a thousand requests, as a rule.
        if (reply.header('connection') === 'close') {
          client.close()
          client = undefined
        }
        if (reply.status !== 200 || !reply.complete) {
          this.failures.push(`${reply.status} ${reply.complete ? '' : 'not '}complete`)
        }
      } catch (error) {
        this.failures.push(String(error))
        break
      }
      const ms = performance.now() - at
      this.answered += 1
      if (this.#timed) this.#answers.push({ at, ms })
      if (ms < every) await sleep(every - ms)
    }
    client?.close()
  }

  /** What was asked for between two moments, and answered while the machine kept nobody waiting for a processor. */
  calm(from: number, to: number): readonly Answer[] {
    const all = this.#answers.filter(({ at }) => at >= from && at < to)
    return all.filter(({ at, ms }) => !this.#watcher.overlaps(at, at + ms))
  }

  /**
   * The time that 99 of 100 answers took at most, of those that were asked for between two moments. Answers that were
   * under way while the machine kept somebody waiting for a processor say nothing, as long as enough others are left.
   */
  p99(from: number, to: number): number {
    const all = this.#answers.filter(({ at }) => at >= from && at < to)
    if (all.length < 50) throw new Error(`only ${all.length} answers between ${from} and ${to}`)
    const calm = this.calm(from, to)
    const times = (calm.length < 50 ? all : calm).map(({ ms }) => ms)
    return times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!
  }

  async stop(): Promise<void> {
    this.#over = true
    await this.#done
    this.#watcher.stop()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}
