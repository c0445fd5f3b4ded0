import { dice, exponential } from './dice.ts'
import type { Stage } from './stage.ts'

/** All requests of a simulation by their number, in the order of their coming; the same for every method. */
export interface Workload {
  readonly count: number
  /** When each reaches its sidecar, milliseconds. */
  readonly at: Float64Array
  /** To which sidecar it comes. */
  readonly instance: Int32Array
  /** How long it takes a worker of speed 1, milliseconds. */
  readonly demand: Float64Array
  /** 1 where the peer is to answer 503 at once, whichever it is. */
  readonly doomed: Uint8Array
  /** Whose request it is, for methods that go by a key. */
  readonly key: Int32Array
}

/** Draws the requests: Poisson arrivals, exponential demands, each to a sidecar at random. */
export function workload(stage: Stage): Workload {
  const { seed, duration, service, instances, keys, scenario } = stage.plan
  const gaps = dice(seed, 'arrivals')
  const moments: number[] = []
  for (
    let now = exponential(gaps, 1 / stage.rate);
    now < duration;
    now += exponential(gaps, 1 / stage.rate)
  ) {
    moments.push(now)
  }
  const count = moments.length
  const demands = dice(seed, 'demands')
  const places = dice(seed, 'instances')
  const names = dice(seed, 'keys')
  const errors = dice(seed, 'errors')
  const part = scenario.errors ?? 0
  return {
    count,
    at: Float64Array.from(moments),
    demand: Float64Array.from({ length: count }, () => exponential(demands, service)),
    instance: Int32Array.from({ length: count }, () => Math.floor(places() * instances)),
    key: Int32Array.from({ length: count }, () => Math.floor(names() * keys)),
    doomed: Uint8Array.from({ length: count }, () => (part > 0 && errors() < part ? 1 : 0)),
  }
}
