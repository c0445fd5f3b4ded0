import type { Board } from '../feedback/fleet/board.ts'
import { announce, keep } from './announce.ts'
import type { SharedEnv } from './hands.ts'
import { queueName, type Schedule } from './schedule.ts'

/** Times in milliseconds. */
export interface AnnouncerOptions {
  /** How often an instance looks for schedules that nobody has, and after which time of silence they are removed. */
  readonly sweepEvery: number
  readonly orphanAfter: number
}

/** What becomes of an announcement. */
export interface AnnouncerHands {
  /** Whether an answer is still of use. */
  current(): boolean
  /** The server's clock, milliseconds. */
  time(now: number): void
  /** Schedules of a queue that no instance says it has. */
  orphans(queue: string, ids: readonly string[]): void
}

/** Says which schedules this instance has, so that those that are nobody's are found, and what is used is kept. */
export class Announcer {
  readonly #board: Board
  readonly #env: SharedEnv
  readonly #prefix: string
  readonly #options: AnnouncerOptions
  #sweepAt: number

  /** @param prefix what the keys of all queues begin with */
  constructor(board: Board, env: SharedEnv, prefix: string, options: AnnouncerOptions) {
    this.#board = board
    this.#env = env
    this.#prefix = prefix
    this.#options = options
    this.#sweepAt = env.now() + options.sweepEvery * (0.5 + env.random())
  }

  /** Never rejects: where Redis does not answer the next one will do. */
  async announce(schedules: Iterable<Schedule>, hands: AnnouncerHands): Promise<void> {
    const { sweepEvery, orphanAfter } = this.#options
    const now = this.#env.now()
    const sweeps = now >= this.#sweepAt
    if (sweeps) this.#sweepAt = now + sweepEvery * (0.5 + this.#env.random())
    for (const [local, some] of Map.groupBy(schedules, (schedule) => schedule.local)) {
      const name = queueName(local)
      const ids = some.map(({ id }) => id)
      try {
        const heard = await announce(this.#board, `${this.#prefix}:${name}`, ids, sweeps ? orphanAfter : 0)
        if (!hands.current()) return
        hands.time(heard.now)
        hands.orphans(name, heard.orphans)
      } catch {
        // The next one will do.
      }
    }
  }

  /** BullMQ keeps what it writes forever. */
  async keepAll(schedules: Iterable<Schedule>): Promise<void> {
    const queues = Map.groupBy(schedules, ({ local }) => local)
    const kept = [...queues].map(([local, some]) => {
      const ids = some.map(({ id }) => id)
      return this.keep(queueName(local), ids, true)
    })
    await Promise.all(kept)
  }

  /**
   * Has what belongs to a queue expire once no instance is left.
   * @param ids schedules that were entered, or whose jobs have come up
   * @param all whether that goes for what stays between jobs, too
   */
  async keep(queue: string, ids: readonly string[], all: boolean): Promise<void> {
    // Where it does not come to that the next job will do, or the next announcement.
    await keep(this.#board, `${this.#prefix}:${queue}`, ids, all).catch(() => {})
  }
}
