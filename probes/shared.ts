import type { Board } from '../feedback/fleet/board.ts'
import type { Upstream } from '../feedback/upstream.ts'
import { Schedules, type SchedulesOptions } from './bullmq.ts'
import type { Hands, SharedEnv } from './hands.ts'
import type { LiveProbe } from './live-probe.ts'
import { afterOthers, afterResult, secondOpinion, whenAway, whenBack } from './net.ts'
import { Outbox } from './outbox.ts'
import { type Entry, inAir, type Landing, leftOut } from './patient.ts'
import { newsOf, type ProbeRecord, readRecord, trustedFor } from './record.ts'
import { type Slot, Slots } from './slots.ts'
import { type Turn, Turns, type When } from './turns.ts'
import { within } from './within.ts'

/** Times in milliseconds. */
export interface SharedOptions extends SchedulesOptions {
  /** How often records are looked for that nobody writes any more, and for how long they are kept. */
  readonly clearEvery: number
  readonly clearAfter: number
}

/**
 * Why this instance wants to ask: a job has come up; nobody else has asked; the same, while it leaves the peer to the
 * others; or another has failed.
 */
const occasions = { job: 'due', net: 'due', alone: 'alone', second: 'second' } as const satisfies Record<
  string,
  When
>
type Occasion = keyof typeof occasions

/**
 * Probes that all instances of a fleet ask together. Job schedulers say which instance is to ask and when; turns in the
 * shared state see to it that nothing is asked twice; and every instance judges by the record that comes of it.
 *
 * Each entry keeps a moment of its own at which this instance asks by itself. A result of whatever origin puts it off
 * by one and a half to two intervals, so that it comes up only where a schedule is lost, a job is stuck, nobody else
 * has the peer, or Redis is away.
 *
 * A peer that one instance's probe takes out is asked once more at once, by another. An instance that is contradicted so
 * leaves that peer to the others (see dissent.ts).
 */
export class Shared {
  readonly #board: Board
  readonly #env: SharedEnv
  readonly #hands: Hands
  readonly #options: Partial<SharedOptions>
  readonly #turns: Turns
  readonly #schedules: Schedules
  readonly #stops: (() => void)[]
  #slots = new Slots([], undefined)
  /** Those that came up by themselves in one moment. */
  #due: Slot[] = []
  readonly #outbox: Outbox
  /** What came up by itself and is not over. */
  readonly #nets = new Set<Promise<void>>()
  /** The server's clock minus the monotonic one; undefined until it has told the time since it was reached. */
  #clock: number | undefined
  /** Monotonic moment of the first connection, and of the last one after a loss. */
  #backAt: number | undefined
  #wasUp: boolean
  /** Records that came before the clock was known. */
  readonly #early = new Map<Slot, ProbeRecord>()
  #cancelClearing: (() => void) | undefined
  #stopped = false

  constructor(board: Board, env: SharedEnv, hands: Hands, options: Partial<SharedOptions> = {}) {
    this.#board = board
    this.#env = env
    this.#hands = hands
    this.#options = options
    this.#turns = new Turns(board, env.random)
    this.#outbox = new Outbox(this.#turns)
    this.#wasUp = board.up
    this.#schedules = new Schedules(
      board,
      env,
      { take: (schedule, job) => this.#take(schedule, job), time: (now) => this.#setClock(now) },
      options,
    )
    this.#stops = [
      board.onChange((up) => this.#changed(up)),
      board.onRecords((upstream, records) => this.#records(upstream, records)),
    ]
    this.#clearLater()
  }

  /** Puts the entries of a configuration in the place of those before. */
  use(entries: readonly Entry[]): void {
    const ours = entries.filter(
      ({ probe, patient }) => probe.scope === 'fleet' && this.#board.keys(patient.upstream) !== undefined,
    )
    this.#slots = new Slots(ours, this.#slots)
    this.#early.clear()
    this.#schedules.use(this.#slots.schedules)
  }

  /** Whether the entry is asked for all, as far as Redis answers. */
  has(entry: Entry): boolean {
    return this.#slots.of(entry) !== undefined
  }

  /** For how long this instance leaves the entry to the others, milliseconds. */
  leaves(entry: Entry): number {
    return this.#slots.of(entry)?.dissent.pauseLeft(this.#env.now()) ?? 0
  }

  /** An entry has come up by itself. @returns false where this instance is to ask without asking anybody */
  due(entry: Entry): boolean {
    const slot = this.#slots.of(entry)
    if (slot === undefined || !this.#board.up) return false
    if (slot.claiming) return true
    slot.claiming = true
    this.#due.push(slot)
    // Those of one moment are claimed in one go.
    if (this.#due.length === 1) queueMicrotask(() => this.#claimDue())
    return true
  }

  /** Asks nobody any more. Settles within about a second, whatever Redis does. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const stop of this.#stops) stop()
    this.#cancelClearing?.()
    // A turn that was not given back would keep the others waiting.
    const nets = this.#board.up ? Promise.all(this.#nets) : Promise.resolve()
    await Promise.all([
      within(this.#options.stopWithin ?? 500, this.#env.after, nets),
      this.#schedules.stop(),
    ])
  }

  #claimDue(): void {
    const due = this.#due
    this.#due = []
    for (const [probe, all] of Map.groupBy(due, ({ entries }) => entries[0]!.probe)) {
      for (const [occasion, slots] of Map.groupBy(all, occasionOf)) {
        const net = this.#claim(probe, slots, this.#turns.job(), occasion)
        this.#nets.add(net)
        void net.then(() => this.#nets.delete(net))
      }
    }
  }

  /** A job has come up, and this instance got it. What it does not know, others do, or nobody any more. */
  async #take(schedule: string, job: string): Promise<void> {
    const chunk = this.#slots.chunk(schedule)
    if (chunk === undefined) return
    const now = this.#env.now()
    const slots = chunk.slots.filter(({ claiming, dissent, entries: [entry] }) => {
      return !claiming && !inAir(entry!) && !leftOut(entry!, now) && dissent.pauseLeft(now) === 0
    })
    for (const slot of slots) slot.claiming = true
    await this.#claim(chunk.probe, slots, job, 'job')
  }

  /**
   * Asks those whose turn it gets. Settles once all that came of it has been told.
   */
  async #claim(probe: LiveProbe, slots: readonly Slot[], job: string, occasion: Occasion): Promise<void> {
    if (slots.length === 0 || this.#stopped) return
    const wanted = slots.map(({ field }) => this.#turns.want(field))
    const when = occasions[occasion]
    const net = occasion === 'net' || occasion === 'alone'
    const claimed = await this.#turns.claim(probe.upstream, wanted, job, probe, when).catch(() => undefined)
    if (claimed) this.#setClock(claimed.now)
    const asked: Promise<void>[] = []
    for (const [i, slot] of slots.entries()) {
      slot.claiming = slot.second = false
      const [entry] = slot.entries
      const free = !this.#stopped && entry!.patient.current && !inAir(entry!)
      const turn = wanted[i]!
      if (claimed === undefined) {
        // Redis is away, or is about to be found so; the turn may be this instance's all the same.
        if (net && free) asked.push(this.#ask(slot, turn, job, false, occasion))
      } else if (claimed.given.has(turn)) {
        const ask = () => this.#ask(slot, turn, job, true, occasion)
        asked.push(free ? ask() : this.#tell(slot, turn, job, nothing, true))
        // Nobody else has asked in time: the schedule may be lost. Where peers are left out, that means less.
        if (net) this.#schedules.mend(slot.schedule, probe.interval * (probe.mode === 'always' ? 1 : 10))
      }
    }
    await Promise.all(asked)
  }

  #ask(slot: Slot, turn: Turn, job: string, given: boolean, occasion: Occasion): Promise<void> {
    const [entry] = slot.entries
    const { dissent } = slot
    return new Promise((done) => {
      this.#hands.ask(entry!, (landing) => {
        const { patient, probe } = entry!
        // Where nobody else has asked, its word counts for what it is.
        const kept = landing.passed === false && occasion === 'job' && dissent.doubted
        if (kept) dissent.pause(probe.interval, this.#env.now())
        // What nobody here wants to know any more, or is believed to know, another may ask.
        const told = patient.current && !kept ? landing : nothing
        void this.#tell(slot, turn, job, told, given).then(done)
      })
    })
  }

  /**
   * Tells a result. Settles once it is told, or cannot be.
   * @param given whether it is known that the turn was
   */
  async #tell(slot: Slot, turn: Turn, job: string, landing: Landing, given: boolean): Promise<void> {
    const told = await this.#outbox.tell(slot.entries[0]!.probe, turn, landing)
    if (told) this.#setClock(told.now)
    if (told && told.record !== '') return this.#hear(slot, readRecord(told.record), landing)
    // It may have arrived, and is then not to count once more.
    if (told === undefined) slot.judged = job
    if (told === undefined || !given) this.#judge(slot, landing)
  }

  /** What could not be told is judged as if there were no others. */
  #judge(slot: Slot, landing: Landing): void {
    if (landing === nothing) return
    for (const entry of slot.entries) if (entry.patient.current) this.#hands.judge(entry, landing)
  }

  #records(upstream: Upstream, records: ReadonlyMap<string, Buffer>): void {
    for (const [field, value] of records) {
      const slot = this.#slots.at(upstream, field)
      if (slot) this.#hear(slot, readRecord(value.toString()), undefined)
    }
  }

  #hear(slot: Slot, record: ProbeRecord | undefined, own: Landing | undefined): void {
    if (record === undefined || this.#stopped) return
    if (this.#clock === undefined) {
      this.#early.set(slot, record)
      return
    }
    const { known, dissent } = slot
    const news = newsOf(record, known, slot.heardOn)
    slot.known = record
    slot.heardOn = true
    const { now, random } = this.#env
    const [entry] = slot.entries
    const { interval, fails } = entry!.probe
    const ago = Math.max(0, this.#clock + now() - record.at)
    // What others found while Redis was out of reach, or too long ago, is not known to hold still.
    const old =
      ago > trustedFor(interval) || record.at < this.#clock + (this.#backAt ?? Number.NEGATIVE_INFINITY)
    if (news === undefined || old) return
    const mine = record.by === this.#turns.by
    if (dissent.hear(record, mine, interval, now())) this.#dissents(entry!)
    if (record.job === slot.judged) return
    const next = dissent.doubted ? afterOthers : afterResult
    for (const one of slot.entries) {
      if (!one.patient.current) continue
      this.#hands.hear(one, record, news, ago, own)
      this.#hands.put(one, next(now(), ago, interval, random()))
    }
    const out = record.streak <= -fails && (known === undefined || known.streak > -fails)
    slot.second = out && !mine && !dissent.doubted && entry!.patient.current
    if (slot.second) this.#hands.put(entry!, secondOpinion(now(), interval, random()))
  }

  #dissents({ probe, patient: { peer, upstream } }: Entry): void {
    this.#env.say(
      `probe "${probe.name}" of peer ${peer.name} of upstream "${upstream.name}" fails from here and passes at other instances; leaving it to them`,
    )
  }

  #setClock(serverNow: number): void {
    this.#clock = serverNow - this.#env.now()
    for (const [slot, record] of [...this.#early]) this.#hear(slot, record, undefined)
    this.#early.clear()
  }

  #changed(up: boolean): void {
    const { now, random } = this.#env
    this.#clock = undefined
    this.#early.clear()
    if (up && this.#wasUp) this.#backAt = now()
    for (const slot of this.#slots.all()) {
      slot.heardOn = slot.second = false
      for (const entry of slot.entries) {
        const lastAt = entry.last?.endedAt ?? Number.NEGATIVE_INFINITY
        const dueAt = (up ? whenBack : whenAway)(entry, lastAt, now(), random())
        this.#hands.put(entry, dueAt)
      }
    }
    this.#wasUp ||= up
  }

  #clearLater(): void {
    const { clearEvery = 300_000, clearAfter = 600_000 } = this.#options
    this.#cancelClearing = this.#env.after(clearEvery * (0.5 + this.#env.random()), () => {
      for (const upstream of this.#slots.upstreams()) {
        if (this.#board.up) void this.#turns.clear(upstream, clearAfter).catch(() => {})
      }
      this.#clearLater()
    })
  }
}

/** Of one that has come up by itself. */
function occasionOf({ second, dissent }: Slot): Occasion {
  if (second) return 'second'
  return dissent.doubted ? 'alone' : 'net'
}

/** Comes of a turn that is given back. */
const nothing: Landing = { passed: undefined, detail: '', tookMs: 0, probing: undefined }
