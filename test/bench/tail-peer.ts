import { doneAt, failsAt, meanMs, type Plan, workers } from './tail-plan.ts'

/** How much of the old mean of its own times a peer keeps with each request. */
const keep = 0.95

/** One peer's workers and the line before them. It is told the time. */
export class Workshop {
  readonly #plan: Plan
  readonly #peer: number
  /** When each worker is done with all that it has. */
  readonly #doneAt = new Float64Array(workers).fill(Number.NEGATIVE_INFINITY)
  #inFlight = 0
  #mean: number

  constructor(plan: Plan, peer: number) {
    this.#plan = plan
    this.#peer = peer
    this.#mean = meanMs / plan.speeds[peer]!
  }

  /**
   * Takes a request in. The worker that is free first has it, and goes by when it should have been done with the
   * one before, not by when a timer said so: lateness does not add up in the line.
   * @param work milliseconds at speed 1
   * @returns when it is to be answered; undefined for 503 at once
   */
  take(at: number, work: number): number | undefined {
    if (failsAt(this.#plan, this.#peer, at)) return undefined
    let first = 0
    for (let i = 1; i < workers; i++) if (this.#doneAt[i]! < this.#doneAt[first]!) first = i
    const begin = Math.max(at, this.#doneAt[first]!)
    const end = doneAt(this.#plan, this.#peer, begin, work)
    this.#doneAt[first] = end
    this.#inFlight += 1
    this.#mean = this.#mean * keep + (end - begin) * (1 - keep)
    return end
  }

  /** A request that was taken in has been answered. */
  answered(): void {
    this.#inFlight -= 1
  }

  /** How long one more request would take by what the peer knows of itself, milliseconds. */
  get drainMs(): number {
    return ((this.#inFlight + 1) * this.#mean) / workers
  }
}
