import { noOrders, obey } from '../feedback/agent.ts'
import type { Board } from '../feedback/fleet/board.ts'
import type { Peer } from '../feedback/peer.ts'
import { dismiss, enrol } from '../feedback/probe-health.ts'
import type { Upstream } from '../feedback/upstream.ts'
import { DueQueue, type Timers } from './due-queue.ts'
import type { LiveProbe } from './live-probe.ts'
import {
  carryOn,
  type Entry,
  type Flight,
  inAir,
  keyOf,
  type Landing,
  leftOut,
  type Patient,
  type ProbeFacts,
  tell,
  voice,
} from './patient.ts'
import { type Probing, run } from './run.ts'
import { Shared, type SharedOptions } from './shared.ts'
import { Verdicts } from './verdicts.ts'

/** Time and dice, so that a schedule can be told in advance. */
export interface ProberEnv extends Timers {
  /** Wall clock milliseconds. */
  wall(): number
  /** Uniform in [0, 1). */
  random(): number
  /** Something that a person should read: a kind's caveat. */
  say(text: string): void
}

/** How long a kind may take to notice that its time is over, milliseconds. */
const graceMs = 500

/**
 * Asks every peer of every probe in time, from this process. Each peer has a rhythm of its own that begins at a
 * random moment of the first interval, so that many instances do not ask in step. A peer that is still being asked
 * when it is due again is left out: no two questions of one probe are ever under way to one peer, and none pile up.
 */
export class Prober {
  readonly #env: ProberEnv
  readonly #queue: DueQueue<Entry>
  readonly #verdicts: Verdicts
  readonly #said = new Set<string>()
  readonly #options: Partial<SharedOptions>
  #patients = new Map<string, Patient>()
  #board: Board | undefined
  /** Undefined: this instance asks alone. */
  #shared: Shared | undefined

  constructor(env: ProberEnv, options: Partial<SharedOptions> = {}) {
    this.#env = env
    this.#options = options
    this.#queue = new DueQueue(env, (entry) => this.#due(entry))
    this.#verdicts = new Verdicts(env, (key, text) => this.#sayOnce(key, text))
  }

  /**
   * Asks from now on together with the other instances of a fleet, where a probe is theirs together.
   * @param board undefined: alone
   */
  share(board: Board | undefined): void {
    if (board === this.#board) return
    void this.#shared?.stop()
    this.#board = board
    this.#shared =
      board &&
      new Shared(
        board,
        this.#env,
        {
          ask: (entry, landed) => this.#ask(entry, landed),
          judge: (entry, landing) => this.#verdicts.judge(entry, landing),
          hear: (entry, record, news, ago, own) => this.#verdicts.hear(entry, record, news, ago, own),
          put: (entry, dueAt) => this.#queue.put(entry, dueAt),
        },
        this.#options,
      )
    this.#shared?.use(this.#queue.items)
    const now = this.#env.now()
    // Moments that others' results have put off do not hold for one that is alone.
    for (const entry of [...this.#queue.items]) {
      if (board === undefined && entry.dueAt > now + entry.interval) {
        this.#queue.put(entry, now + this.#env.random() * entry.interval)
      }
    }
  }

  /**
   * Puts the probes of a configuration in the place of those before. Streaks begin anew; a probe that stays goes on in
   * its rhythm where that is the same; what is under way is dropped.
   * @param leaving peers that the configuration has no more, though requests may still find them: what was found of
   *   them stays in force
   * @param same whether it is the same configuration with other peers: those that stay notice nothing of it
   */
  use(probes: readonly LiveProbe[], leaving: ReadonlySet<Peer> = new Set(), same = false): void {
    const now = this.#env.now()
    const before = this.#patients
    const known = new Map(this.#queue.items.map((entry) => [entry.key, entry]))
    if (!same) this.#drop(before.values())
    this.#patients = new Map()
    for (const [upstream, own] of Map.groupBy(probes, (probe) => probe.upstream)) {
      for (const peer of [...upstream.peers, ...upstream.backups]) {
        // One that is down gets nothing, whatever its probes would find.
        if (peer.options.down) continue
        const patient = before.get(keyOf(peer))
        if (same && patient) {
          carryOn(patient, upstream, peer, own)
          this.#patients.set(keyOf(peer), patient)
        } else this.#admit(upstream, peer, own, patient, known, now)
      }
    }
    for (const [key, patient] of before) {
      if (this.#patients.has(key)) continue
      if (same) this.#drop([patient])
      if (leaving.has(patient.peer)) continue
      tell(patient, '', dismiss(patient.checkup, now), '')
    }
    this.#queue.use([...this.#patients.values()].flatMap(({ entries }) => entries))
    this.#shared?.use(this.#queue.items)
    for (const probe of probes) this.#caveat(probe)
  }

  /**
   * Asks nobody any more. What was found stays in force.
   * @returns settles once the fleet, if there is one, has been told; within about a second whatever Redis does
   */
  async stop(): Promise<void> {
    this.#drop(this.#patients.values())
    this.#patients = new Map()
    this.#queue.use([])
    const shared = this.#shared
    this.#board = undefined
    this.#shared = undefined
    await shared?.stop()
  }

  /** What is known of a peer's probes, in the order of the configuration; empty when it has none. */
  about(peer: Peer): readonly ProbeFacts[] {
    const now = this.#env.now()
    const { entries = [] } = this.#patients.get(keyOf(peer)) ?? {}
    return entries.map((entry) => ({
      probe: entry.probe,
      standing: entry.standing,
      last: entry.last,
      shared: this.#shared?.has(entry) ?? false,
      leavesMs: this.#shared?.leaves(entry) ?? 0,
      asking: inAir(entry),
      nextMs: Math.max(0, entry.dueAt - now),
    }))
  }

  /** What is still under way is of no interest any more. */
  #drop(patients: Iterable<Patient>): void {
    for (const patient of patients) {
      patient.current = false
      for (const entry of patient.entries) if (inAir(entry)) entry.flight?.control.abort()
    }
  }

  #admit(
    upstream: Upstream,
    peer: Peer,
    probes: readonly LiveProbe[],
    before: Patient | undefined,
    known: ReadonlyMap<string, Entry>,
    now: number,
  ): void {
    const { checkup, change } = enrol(peer, probes, before !== undefined, now)
    const patient: Patient = { upstream, peer, checkup, entries: [], orderedBy: new Set(), current: true }
    for (const [i, probe] of probes.entries()) {
      const { interval } = probe
      const key = `${keyOf(peer)}/${probe.name}`
      const same = known.get(key)
      patient.entries.push({
        key,
        probe,
        interval,
        patient,
        standing: checkup.standings[i]!,
        dueAt: same?.interval === interval ? same.dueAt : now + this.#env.random() * interval,
        flight: same?.flight,
        last: undefined,
      })
      if (before?.orderedBy.has(voice(probe))) patient.orderedBy.add(voice(probe))
    }
    this.#patients.set(keyOf(peer), patient)
    tell(patient, '', change, '')
    // Nobody hears its agent any more, who might take back what it has asked for.
    if (before && before.orderedBy.size > 0 && patient.orderedBy.size === 0) {
      tell(patient, '', obey(peer, noOrders), '')
    }
  }

  #due(entry: Entry): void {
    if (inAir(entry) || leftOut(entry, this.#env.now()) || this.#shared?.due(entry)) return
    this.#ask(entry, (landing) => this.#verdicts.judge(entry, landing))
  }

  #ask(entry: Entry, landed: (landing: Landing) => void): void {
    const { probe, patient, standing } = entry
    const { now, after } = this.#env
    const flight: Flight = { control: new AbortController(), landed: false }
    const { signal } = flight.control
    entry.flight = flight
    const startedAt = now()
    const land = (probing: Probing | undefined) => {
      if (flight.landed) return
      flight.landed = true
      cancel()
      const { passed, detail } = probing ?? { passed: false, detail: 'no answer in time' }
      landed({ passed, detail, tookMs: now() - startedAt, probing })
    }
    let cancel = after(probe.timeout, () => {
      // A kind that does not notice must not keep its peer from ever being asked again.
      cancel = after(graceMs, () => land(undefined))
      flight.control.abort()
    })
    void run(probe, patient.peer, { now, signal, failing: standing.fails > 0 }).then(land)
  }

  #caveat({ kind, args }: LiveProbe): void {
    const key = `${kind.name} ${JSON.stringify(args)}`
    if (kind.caveat === undefined || this.#said.has(key)) return
    this.#said.add(key)
    void kind.caveat(args).then((text) => {
      // Probes of one kind with other arguments have the same to say.
      if (text !== undefined) this.#sayOnce(text, text)
    })
  }

  #sayOnce(key: string, text: string): void {
    if (this.#said.has(key)) return
    this.#said.add(key)
    this.#env.say(text)
  }
}
