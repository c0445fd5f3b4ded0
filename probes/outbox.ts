import type { LiveProbe } from './live-probe.ts'
import type { Landing } from './patient.ts'
import type { Told, Turn, Turns } from './turns.ts'

/** What became of a result that was told. */
export interface Delivery {
  /** The server's clock, milliseconds. */
  readonly now: number
  /** The record as it is now; empty where the turn had gone to another, or was given back. */
  readonly record: string
}

interface Letter {
  readonly result: Told
  readonly done: (delivery: Delivery | undefined) => void
}

/** Tells results of one probe that come in one moment in one go. */
export class Outbox {
  readonly #turns: Turns
  readonly #letters = new Map<LiveProbe, Letter[]>()

  constructor(turns: Turns) {
    this.#turns = turns
  }

  /** Never rejects. @returns undefined where it could not be told */
  tell(probe: LiveProbe, turn: Turn, landing: Landing): Promise<Delivery | undefined> {
    const { passed, detail, tookMs, probing } = landing
    return new Promise((done) => {
      const letter = { result: { ...turn, passed, detail, tookMs, orders: probing?.orders }, done }
      const waiting = this.#letters.get(probe)
      if (waiting) {
        waiting.push(letter)
        return
      }
      this.#letters.set(probe, [letter])
      setImmediate(() => void this.#send(probe))
    })
  }

  async #send(probe: LiveProbe): Promise<void> {
    const letters = this.#letters.get(probe) ?? []
    this.#letters.delete(probe)
    const results = letters.map(({ result }) => result)
    const told = await this.#turns.tell(probe.upstream, probe.interval, results).catch(() => undefined)
    for (const [i, { done }] of letters.entries()) {
      done(told && { now: told.now, record: told.records[i] ?? '' })
    }
  }
}
