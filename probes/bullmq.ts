import type { Queue, Worker } from 'bullmq'
import type { Cluster, Redis } from 'ioredis'
import type { Board } from '../feedback/fleet/board.ts'
import { Announcer, type AnnouncerOptions } from './announcer.ts'
import { bullClient } from './bull-client.ts'
import type { SharedEnv } from './hands.ts'
import { queueName, type Schedule } from './schedule.ts'
import { hash } from './slots.ts'
import { within } from './within.ts'

/** Who is told of what comes up. */
export interface SchedulesHands {
  /**
   * This instance is to do a job. Others may have been, too: a job is seen again where it stalled, or by mistake.
   * @param job names the occasion
   */
  take(schedule: string, job: string): Promise<void>
  /** The server's clock, milliseconds. */
  time(now: number): void
}

/** Times in milliseconds. */
export interface SchedulesOptions extends AnnouncerOptions {
  /** How often an instance says which schedules it has. */
  readonly announceEvery: number
  /** How long a job may go without a sign of life before another instance takes it. */
  readonly stalledAfter: number
  /** How long jobs under way may take to end when this instance does. */
  readonly stopWithin: number
}

const defaults: SchedulesOptions = {
  announceEvery: 10_000,
  sweepEvery: 30_000,
  orphanAfter: 60_000,
  stalledAfter: 30_000,
  stopWithin: 500,
}

/** Jobs that an instance does at once, each a chunk of peers. */
const concurrency = 20

/**
 * BullMQ asks again at once where it is refused something, be it for want of a right or of memory, and some of it without
 * ever letting anything else run. After so many errors within a second it is left alone for so long, milliseconds, and
 * instances ask as where a schedule is lost.
 */
const mostErrors = 10
const restFor = 10_000

/** A queue in use over one connection to Redis. */
interface Line {
  readonly name: string
  readonly local: boolean
  readonly queue: Queue
  readonly worker: Worker
}

/**
 * Job schedulers of BullMQ: one for each chunk of a probe, which every instance enters under the same id, so that
 * there is one however many instances there are. Whichever is free gets the job.
 *
 * BullMQ waits for Redis as long as it takes. Here that is never waited for: as soon as Redis is away all that belongs
 * to BullMQ is dropped, and made anew when Redis is back.
 */
export class Schedules {
  readonly #board: Board
  readonly #env: SharedEnv
  readonly #hands: SchedulesHands
  readonly #options: SchedulesOptions
  readonly #prefix: string
  readonly #announcer: Announcer
  readonly #stopListening: () => void
  #schedules = new Map<string, Schedule>()
  #lines: Line[] = []
  #clients: (Redis | Cluster)[] = []
  /** Jobs that are not over, and who is to be told when all are. */
  #jobs = 0
  #idle = () => {}
  /** Counts connections: what was begun over one does nothing over the next. */
  #life = 0
  /** Errors within a second, and when that began. */
  #errors = 0
  #errorsFrom = Number.NEGATIVE_INFINITY
  readonly #mended = new Map<string, number>()
  #cancel: (() => void) | undefined

  constructor(board: Board, env: SharedEnv, hands: SchedulesHands, options: Partial<SchedulesOptions> = {}) {
    this.#board = board
    this.#env = env
    this.#hands = hands
    this.#options = { ...defaults, ...options }
    // One hash tag keeps all keys in one slot of a cluster.
    this.#prefix = `${board.prefix}:{${encodeURIComponent(board.group)}/probes}`
    this.#announcer = new Announcer(board, env, this.#prefix, this.#options)
    this.#stopListening = board.onChange((up) => (up ? this.#begin() : this.#end()))
  }

  /** Puts schedules in the place of those before. One that is nobody's now is removed after a while. */
  use(schedules: readonly Schedule[]): void {
    const before = this.#schedules
    this.#schedules = new Map(schedules.map((schedule) => [schedule.key, schedule]))
    for (const key of this.#mended.keys()) if (!this.#schedules.has(key)) this.#mended.delete(key)
    if (schedules.length === 0) {
      this.#end()
      return
    }
    const names = new Set(schedules.map(({ local }) => local))
    if (this.#life === 0 || [...names].some((local) => !this.#lines.some((line) => line.local === local))) {
      if (this.#board.up) this.#begin()
      return
    }
    const changed = schedules.filter(({ key, every }) => before.get(key)?.every !== every)
    if (changed.length === 0) return
    this.#cancel?.()
    void this.#announce(this.#life)
    void this.#enter(changed, this.#life)
  }

  /** Enters a schedule again that seems to be lost. @param atMost once in so many milliseconds */
  mend(key: string, atMost: number): void {
    const schedule = this.#schedules.get(key)
    const now = this.#env.now()
    if (schedule === undefined || now - (this.#mended.get(key) ?? Number.NEGATIVE_INFINITY) < atMost) return
    this.#mended.set(key, now)
    void this.#enter([schedule], this.#life)
  }

  /** Takes no job any more. Settles soon, whatever Redis does. */
  async stop(): Promise<void> {
    this.#stopListening()
    this.#cancel?.()
    const schedules = [...this.#schedules.values()]
    this.#schedules = new Map()
    // BullMQ's own way to end in good order may wait for Redis forever, and its timers then run on.
    for (const { worker } of this.#lines) worker.pause(true).catch(() => {})
    if (this.#board.up && this.#lines.length > 0) {
      // A job that is given back does not have to be found stalled.
      const over = new Promise<void>((resolve) => {
        this.#idle = resolve
        if (this.#jobs === 0) resolve()
      })
      const last = Promise.all([over, this.#announcer.keepAll(schedules)])
      await within(this.#options.stopWithin, this.#env.after, last)
    }
    this.#end()
  }

  #begin(): void {
    this.#end()
    if (this.#schedules.size === 0) return
    const life = ++this.#life
    // The clock is asked for first: it does not take BullMQ.
    void this.#announce(life)
    void this.#open(life).catch(() => {
      // Redis is gone again, which is told otherwise.
      if (life === this.#life) this.#end()
    })
  }

  async #open(life: number): Promise<void> {
    // Nobody else is to pay for it in memory.
    const { Queue, Worker } = await import('bullmq')
    if (life !== this.#life) return
    const connection = bullClient(this.#board, () => life === this.#life, this.#clients)
    const common = { connection, prefix: this.#prefix }
    for (const local of new Set([...this.#schedules.values()].map((schedule) => schedule.local))) {
      const name = queueName(local)
      const queue = new Queue(name, { ...common, streams: { events: { maxLen: 10 } } })
      const { stalledAfter } = this.#options
      const worker = new Worker(
        name,
        (job) => {
          this.#jobs += 1
          // The next job is there already.
          void this.#announcer.keep(name, [job.name], false)
          return this.#hands.take(local ? `local ${job.name}` : job.name, job.id ?? '')
        },
        {
          ...common,
          concurrency,
          lockDuration: stalledAfter,
          stalledInterval: stalledAfter,
          runRetryDelay: 1000,
          removeOnComplete: { count: 0 },
          removeOnFail: { count: 0 },
        },
      )
      // Whether Redis is there is the fleet's to tell.
      queue.on('error', () => this.#failed(life))
      worker.on('error', () => this.#failed(life))
      worker.on('completed', () => this.#over(life))
      worker.on('failed', () => this.#over(life))
      this.#lines.push({ name, local, queue, worker })
    }
    await this.#enter([...this.#schedules.values()], life)
  }

  #failed(life: number): void {
    if (life !== this.#life) return
    const now = this.#env.now()
    if (now - this.#errorsFrom > 1000) {
      this.#errorsFrom = now
      this.#errors = 0
    }
    this.#errors += 1
    if (this.#errors < mostErrors) return
    this.#errors = 0
    this.#end()
    this.#cancel = this.#env.after(restFor * (0.5 + this.#env.random()), () => {
      if (this.#board.up) this.#begin()
    })
  }

  #over(life: number): void {
    if (life !== this.#life) return
    this.#jobs -= 1
    if (this.#jobs <= 0) this.#idle()
  }

  async #enter(schedules: readonly Schedule[], life: number): Promise<void> {
    if (life !== this.#life) return
    const upserts = schedules.map(async ({ id, every, local }) => {
      const line = this.#lines.find((one) => one.local === local)
      // Each has its own place in the interval, so that they do not all come up at once.
      const repeat = { every, offset: hash(id) % every }
      const opts = { removeOnComplete: true, removeOnFail: true, attempts: 1 }
      await line?.queue.upsertJobScheduler(id, repeat, { name: id, opts })
    })
    await Promise.allSettled(upserts)
    if (life === this.#life) await this.#announcer.keepAll(schedules)
  }

  /** Drops all that belongs to BullMQ, without a word to Redis. */
  #end(): void {
    this.#life += 1
    this.#cancel?.()
    this.#cancel = undefined
    for (const { queue, worker } of this.#lines) {
      worker.close(true).catch(() => {})
      queue.close().catch(() => {})
    }
    for (const client of this.#clients) client.disconnect()
    this.#lines = []
    this.#clients = []
    this.#jobs = 0
  }

  async #announce(life: number): Promise<void> {
    const current = () => life === this.#life
    await this.#announcer.announce(this.#schedules.values(), {
      current,
      time: (now) => this.#hands.time(now),
      orphans: (name, ids) => {
        const queue = this.#lines.find((line) => line.name === name)?.queue
        const removed = ids.map((id) => queue?.removeJobScheduler(id))
        void Promise.allSettled(removed)
      },
    })
    if (current())
      this.#cancel = this.#env.after(this.#options.announceEvery, () => void this.#announce(life))
  }
}
