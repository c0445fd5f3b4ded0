import { failsAt, type Plan, speedAt, workers } from './tail-plan.ts'

/**
 * The best possible: one line for all peers, which sends to a peer only when a worker there is free, the fastest
 * first, and never to one that stands still or fails. It knows what no balancer can know.
 */
export class IdealQueue {
  readonly #plan: Plan
  readonly #free: number[]
  readonly #line: number[] = []
  #first = 0

  constructor(plan: Plan) {
    this.#plan = plan
    this.#free = plan.speeds.map(() => workers)
  }

  arrive(request: number): void {
    this.#line.push(request)
  }

  /** A peer's worker has nothing to do any more. */
  freed(peer: number): void {
    this.#free[peer]! += 1
  }

  /**
   * Takes the first of the line to the fastest free worker.
   * @param at milliseconds from the start of the measured part
   * @returns undefined when nobody waits or no worker may have them
   */
  next(at: number): { readonly request: number; readonly peer: number } | undefined {
    if (this.#first === this.#line.length) return undefined
    let peer = -1
    let fastest = 0
    for (let i = 0; i < this.#free.length; i++) {
      if (this.#free[i] === 0 || failsAt(this.#plan, i, at)) continue
      const speed = speedAt(this.#plan, i, at)
      if (speed <= fastest) continue
      fastest = speed
      peer = i
    }
    if (peer < 0) return undefined
    this.#free[peer]! -= 1
    const request = this.#line[this.#first]!
    this.#first += 1
    return { request, peer }
  }
}
