import { dice } from './dice.ts'
import { type Scenario, warmUp } from './scenarios.ts'
import { type Step, Timeline } from './timeline.ts'

export type Report = 'time' | 'count'

/** What is simulated but for the method: who there is, how fast, and how much is asked of them. Times in milliseconds. */
export interface Plan {
  readonly scenario: Scenario
  /** Speeds of the peers in their order, of any scale; 0 for one that is not to be counted on (a backup). */
  readonly speeds: readonly number[]
  /** How fast those work that are not counted on: a part of the mean of the others. */
  readonly spare: number
  /** Workers of each peer. */
  readonly workers: number
  /** Mean time that a request takes a worker of mean speed. */
  readonly service: number
  /** From a sidecar to a peer, and back. */
  readonly network: number
  /** Part of the workers' time that is asked for. */
  readonly load: number
  readonly instances: number
  /** How long requests come. */
  readonly duration: number
  /** What peers say of themselves with every answer, for a method that goes by that; see `Machines.report`. */
  readonly report: Report
  /** How many different keys the requests have. */
  readonly keys: number
  readonly seed: number
}

/** Between two moments, the first included. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** A plan with its moments worked out. */
export class Stage {
  readonly plan: Plan
  /** Speeds of the peers in their order, 1 in the mean over those that are counted on. */
  readonly speeds: readonly number[]
  /** Which peers the load is for. */
  readonly counted: readonly number[]
  /** Requests that come in it are measured. */
  readonly window: Span
  /** When the first peer is at fault; undefined in a scenario without that. */
  readonly fault: Span | undefined

  constructor(plan: Plan) {
    this.plan = plan
    const { scenario, duration } = plan
    const raw = scenario.spread ? spread(plan.speeds) : plan.speeds
    this.counted = raw.flatMap((speed, peer) => (speed > 0 ? [peer] : []))
    const mean = this.counted.reduce((sum, peer) => sum + raw[peer]!, 0) / this.counted.length
    this.speeds = raw.map((speed) => (speed > 0 ? speed / mean : plan.spare))
    // In a shorter or longer run everything comes as much earlier or later.
    const second = duration / scenario.seconds
    const { fault } = scenario
    this.fault = fault && { from: second * fault.from, to: second * fault.to }
    this.window = this.fault ?? { from: second * warmUp, to: duration }
  }

  /** All workers of the peers that are counted on. */
  get workers(): number {
    return this.plan.workers * this.counted.length
  }

  /** Requests that come each millisecond in the mean. */
  get rate(): number {
    return (this.plan.load * this.workers) / this.plan.service
  }

  /** Share of the requests that is fair to a peer: by its speed. */
  fairShare(peer: number): number {
    return this.counted.includes(peer) ? this.speeds[peer]! / this.counted.length : 0
  }

  /** The one that a fault befalls. */
  get faulty(): number {
    return this.counted[0]!
  }

  /** Whether a request that reaches the peer now is answered 503 at once. */
  fails(peer: number, now: number): boolean {
    if (this.plan.scenario.fault?.rate !== 'failing' || peer !== this.faulty) return false
    return now >= this.fault!.from && now < this.fault!.to
  }

  /** How fast each peer works when: new ones at each call, since they remember where they are. */
  timelines(): Timeline[] {
    return this.speeds.map((speed, peer) => new Timeline(this.#steps(speed, peer)))
  }

  #steps(speed: number, peer: number): Step[] {
    const { fault, pauses } = this.plan.scenario
    if (fault !== undefined && typeof fault.rate === 'number' && peer === this.faulty) {
      const { from, to } = this.fault!
      return [
        { from: 0, rate: speed },
        { from, rate: speed * fault.rate },
        { from: to, rate: speed },
      ]
    }
    const steps: Step[] = [{ from: 0, rate: speed }]
    if (pauses === undefined) return steps
    const phase = dice(this.plan.seed, 'pauses', peer)()
    for (let at = phase * pauses.every; 1000 * at < this.plan.duration; at += pauses.every) {
      steps.push({ from: 1000 * at, rate: 0 }, { from: 1000 * (at + pauses.for), rate: speed })
    }
    return steps
  }
}

/** Speeds from 1 to 5 in even steps, by the order of the peers that are counted on. */
function spread(speeds: readonly number[]): number[] {
  const last = speeds.filter((speed) => speed > 0).length - 1
  let place = 0
  return speeds.map((speed) => (speed > 0 ? 1 + (last > 0 ? (4 * place++) / last : 0) : 0))
}
