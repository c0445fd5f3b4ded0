import type { Turn } from './proxies-turn.ts'
import { median } from './tail-figures.ts'

/** What was found of one subject in one scenario. */
export interface Found {
  /** Its name and what the table calls it. */
  readonly name: string
  readonly title: string
  /** Whether it differs from another by a setting. */
  readonly variant: boolean
  /** Whether it had all the work that it was to have before; a busy machine lets it have less. */
  readonly warm: boolean
  /** The first second of its life under load, where that was measured. */
  readonly first: Turn | undefined
  /** Each connection sends as soon as it has its answer; one a round. */
  readonly closed: readonly Turn[]
  /** At a fixed rate; one a round, none where the scenario has no rate. */
  readonly paced: readonly Turn[]
}

export interface Figures {
  readonly name: string
  readonly title: string
  readonly variant: boolean
  readonly warm: boolean
  /** Of the proxy, microseconds a request, median of the rounds. */
  readonly cpu: number
  /** The least and the most of the rounds. */
  readonly cpuRange: readonly [number, number]
  /** To the yardstick in the same round, median of the rounds; undefined where it was not measured. */
  readonly ratio: number | undefined
  /** Microseconds a request at the fixed rate, where it wakes for each; undefined where there is no rate. */
  readonly pacedCpu: number | undefined
  /** Microseconds a request in the first second. */
  readonly firstCpu: number | undefined
  /** Milliseconds, medians of the rounds: at the fixed rate where there is one. */
  readonly p50: number
  readonly p99: number
  /** Requests a second in the closed loop. */
  readonly perSecond: number
  /** The most after any round, bytes. */
  readonly residentBytes: number
  /** Share of its core that the proxy used in the closed loop, and that load and peer used of theirs. */
  readonly busy: number
  readonly loadBusy: number
}

/** The subject that ratios are to. */
export const yardstick = 'nginx'

/** CPU time of a request, microseconds. */
export function cost({ cpuMicros, requests }: Turn): number {
  return cpuMicros / requests
}

export function figures(found: readonly Found[]): Figures[] {
  const measure = found.find(({ name }) => name === yardstick)
  return found.map((one) => {
    const costs = one.closed.map(cost)
    const timed = one.paced.length > 0 ? one.paced : one.closed
    return {
      name: one.name,
      title: one.title,
      variant: one.variant,
      warm: one.warm,
      cpu: median(costs),
      cpuRange: [Math.min(...costs), Math.max(...costs)],
      // What else runs on the machine slows neighbours in time alike.
      ratio: measure && median(costs.map((value, i) => value / cost(measure.closed[i]!))),
      pacedCpu: one.paced.length > 0 ? median(one.paced.map(cost)) : undefined,
      firstCpu: one.first && cost(one.first),
      p50: median(timed.map(({ p50 }) => p50)),
      p99: median(timed.map(({ p99 }) => p99)),
      perSecond: median(one.closed.map(({ requests, ms }) => (requests * 1000) / ms)),
      residentBytes: Math.max(...[...one.closed, ...one.paced].map((turn) => turn.residentBytes)),
      busy: median(one.closed.map((turn) => turn.cpuMicros / 1000 / turn.ms)),
      loadBusy: median(one.closed.map((turn) => turn.loadMicros / 1000 / turn.ms)),
    }
  })
}
