import { Agenda } from './agenda.ts'
import type { Stage } from './stage.ts'
import type { Timeline } from './timeline.ts'
import type { Workload } from './workload.ts'

/** How long a peer takes to answer 503, milliseconds. */
const refusalMs = 0.1

/** What became of every request, by its number. */
export interface Trace {
  /** From its coming to a sidecar to its answer there, milliseconds. */
  readonly took: Float64Array
  /** From its coming to a peer to its being worked on, milliseconds. */
  readonly waited: Float64Array
  /** Who answered; −1 where nobody was asked. */
  readonly peer: Int32Array
  /** 1 where the answer was an error. */
  readonly failed: Uint8Array
}

export function emptyTrace(count: number): Trace {
  return {
    took: new Float64Array(count),
    waited: new Float64Array(count),
    peer: new Int32Array(count).fill(-1),
    failed: new Uint8Array(count),
  }
}

/** The workers of all peers, and what they are at. Who waits for them is somebody else's matter. */
export class Machines {
  /** Workers that have nothing to do, by peer. */
  readonly free: Int32Array
  readonly timelines: readonly Timeline[]
  readonly #stage: Stage
  readonly #work: Workload
  readonly #trace: Trace
  readonly #agenda = new Agenda()
  /** 1 where no worker has the request: it was refused at once. */
  readonly #refused: Uint8Array

  constructor(stage: Stage, work: Workload, trace: Trace) {
    this.#stage = stage
    this.#work = work
    this.#trace = trace
    this.free = new Int32Array(stage.speeds.length).fill(stage.plan.workers)
    this.timelines = stage.timelines()
    this.#refused = new Uint8Array(work.count)
  }

  /** When the next request is done with; Infinity when there is none. */
  get next(): number {
    return this.#agenda.next
  }

  /** Whether a request that reaches the peer now is answered 503 at once. */
  refuses(id: number, peer: number, now: number): boolean {
    return this.#work.doomed[id] === 1 || this.#stage.fails(peer, now)
  }

  refuse(id: number, peer: number, now: number): void {
    this.#trace.peer[id] = peer
    this.#trace.failed[id] = 1
    this.#refused[id] = 1
    this.#agenda.add(now + refusalMs, id)
  }

  /** A free worker of the peer sets about a request. */
  start(id: number, peer: number, now: number): void {
    this.free[peer]! -= 1
    this.#trace.peer[id] = peer
    this.#agenda.add(this.timelines[peer]!.finish(now, this.#work.demand[id]!), id)
  }

  /**
   * What a peer can tell of itself: how long it would take for what it has and one request more, milliseconds, or
   * how many requests it has.
   * @param queued how many wait there
   */
  report(peer: number, queued: number, now: number): number {
    const { workers, service, report } = this.#stage.plan
    const has = workers - this.free[peer]! + queued
    if (report === 'count') return has
    const speed = this.timelines[peer]!.rate(now) || this.#stage.speeds[peer]!
    return ((has + 1) * service) / (workers * speed)
  }

  /** The next request is done with. @returns its number */
  take(): number {
    const id = this.#agenda.take()
    if (this.#refused[id] === 0) this.free[this.#trace.peer[id]!]! += 1
    return id
  }
}
