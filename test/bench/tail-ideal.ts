import type { Arrivals } from './tail-arrivals.ts'
import { doneAt, failsAt, type Plan, speedAt, workers } from './tail-plan.ts'

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

/**
 * What the best possible would be on a machine that costs no time: the measured one, by arithmetic. What the
 * measured one has more is what sockets, timers and other programs add here.
 * @param from where the measured part begins in the stream, milliseconds
 * @returns times of the requests of the measured part, milliseconds
 */
export function idealTimes(plan: Plan, { at, work }: Arrivals, from: number): Float64Array {
  const queue = new IdealQueue(plan)
  const busy: { readonly request: number; readonly peer: number; readonly end: number }[] = []
  const times = new Float64Array(at.length)
  let arrived = 0
  while (arrived < at.length || busy.length > 0) {
    let first = -1
    for (const [i, { end }] of busy.entries()) if (first < 0 || end < busy[first]!.end) first = i
    const coming = at[arrived] ?? Number.POSITIVE_INFINITY
    const now = Math.min(coming, busy[first]?.end ?? Number.POSITIVE_INFINITY)
    if (now === coming) {
      queue.arrive(arrived)
      arrived += 1
    } else {
      const { request, peer } = busy[first]!
      busy.splice(first, 1)
      times[request] = now - at[request]!
      queue.freed(peer)
    }
    for (let next = queue.next(now - from); next !== undefined; next = queue.next(now - from)) {
      const end = from + doneAt(plan, next.peer, now - from, work[next.request]!)
      busy.push({ ...next, end })
    }
  }
  return times.filter((_, i) => at[i]! >= from)
}
