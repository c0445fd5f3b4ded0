import { obey } from '../feedback/agent.ts'
import { learnProbe } from '../feedback/learn.ts'
import { hearProbe, judgeProbe } from '../feedback/probe-health.ts'
import { type Entry, type Landing, tell, voice } from './patient.ts'
import type { Orders } from './probe.ts'
import type { News, ProbeRecord } from './record.ts'

/** Has results change what peers may get, and tells of it. */
export class Verdicts {
  readonly #env: { now(): number; wall(): number }
  readonly #sayOnce: (key: string, text: string) => void

  constructor(env: { now(): number; wall(): number }, sayOnce: (key: string, text: string) => void) {
    this.#env = env
    this.#sayOnce = sayOnce
  }

  /** Judges by what this instance has seen. */
  judge(entry: Entry, landing: Landing): void {
    const { probe, patient, standing } = entry
    if (!patient.current) return
    const { passed, detail, tookMs, probing } = landing
    const now = this.#env.now()
    entry.last = { passed, detail, at: this.#env.wall(), endedAt: now, tookMs, by: undefined }
    this.#obey(entry, probing?.orders, detail, undefined)
    if (passed !== undefined)
      tell(patient, probe.name, judgeProbe(patient.checkup, standing, passed, now, tookMs), detail)
    this.#learn(entry, landing, now)
  }

  /**
   * Judges by what all instances of the fleet have seen.
   * @param ago how long ago the result came, milliseconds
   * @param own the landing, where this instance has asked
   */
  hear(entry: Entry, record: ProbeRecord, news: News, ago: number, own: Landing | undefined): void {
    const { probe, patient, standing } = entry
    const { streak, detail, tookMs, orders } = record
    const now = this.#env.now()
    const by = own ? undefined : record.by
    entry.last = { passed: streak > 0, detail, at: this.#env.wall() - ago, endedAt: now - ago, tookMs, by }
    this.#obey(entry, orders, detail, by)
    const { streaks, results, failures } = news
    const change = hearProbe(patient.checkup, standing, streaks, results, failures, now)
    tell(patient, probe.name, change, detail, by)
    if (own) this.#learn(entry, own, now)
  }

  #obey({ probe, patient }: Entry, orders: Orders | undefined, detail: string, by: string | undefined): void {
    if (orders === undefined) return
    patient.orderedBy.add(voice(probe))
    tell(patient, probe.name, obey(patient.peer, orders), detail, by)
  }

  #learn({ probe }: Entry, { passed, probing }: Landing, now: number): void {
    if (probing?.fault !== undefined)
      this.#sayOnce(voice(probe), `probe "${probe.name}" broke: ${probing.fault}`)
    if (probing && passed !== undefined) learnProbe(probing.attempt, probing.call, now)
  }
}
