import type { Trace } from './machines.ts'
import type { Span, Stage } from './stage.ts'
import type { Workload } from './workload.ts'

/** What a simulation comes to, over the requests that came within its window. */
export interface Figures {
  /** How many there were. */
  readonly requests: number
  /** Times of the answers that were no errors, milliseconds: mean and percentiles. NaN when there was none. */
  readonly mean: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** Part of the requests that failed, 0 to 1. */
  readonly errors: number
  /** Part of them that waited for a worker, and the mean wait of all, milliseconds. */
  readonly waiting: number
  readonly wait: number
  /** How long after the fault the peer had half its fair share again, milliseconds; undefined where there is no fault. */
  readonly recovery: number | undefined
  /** Each peer's part of the requests, in their order. */
  readonly shares: readonly number[]
}

export function measure(stage: Stage, work: Workload, trace: Trace): Figures {
  const { from, to } = range(work, stage.window)
  const times = new Float64Array(to - from)
  const shares = stage.speeds.map(() => 0)
  let count = 0
  let sum = 0
  let waiting = 0
  let wait = 0
  for (let id = from; id < to; id++) {
    const peer = trace.peer[id]!
    if (peer >= 0) shares[peer]! += 1 / (to - from)
    if (trace.failed[id] === 1) continue
    times[count] = trace.took[id]!
    count += 1
    sum += trace.took[id]!
    const waited = trace.waited[id]!
    // Less than a nanosecond is what the arithmetic of moments leaves.
    if (waited > 1e-6) waiting += 1
    wait += waited
  }
  const sorted = times.subarray(0, count).sort()
  return {
    requests: to - from,
    mean: sum / count,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    errors: to > from ? (to - from - count) / (to - from) : 0,
    waiting: waiting / count,
    wait: wait / count,
    recovery: recovery(stage, work, trace),
    shares,
  }
}

/** The least value that so many are at or below (nearest rank). */
export function quantile(sorted: Float64Array, part: number): number {
  if (sorted.length === 0) return Number.NaN
  return sorted[Math.max(0, Math.ceil(part * sorted.length - 1e-9) - 1)]!
}

/** In how fine steps the share after a fault is looked at, milliseconds, and over how many requests of a fair share. */
const stepMs = 100
const enough = 50

/**
 * How long after its fault the peer has half of its fair share again: to the end of the first span that has it, a span of
 * half a second, or so long that chance does not decide.
 */
function recovery(stage: Stage, work: Workload, trace: Trace): number | undefined {
  if (stage.fault === undefined) return undefined
  const fair = stage.fairShare(stage.faulty)
  const span = Math.max(500, enough / (fair * stage.rate))
  for (let start = stage.fault.to; start + span <= stage.plan.duration; start += stepMs) {
    const { from, to } = range(work, { from: start, to: start + span })
    let own = 0
    for (let id = from; id < to; id++) if (trace.peer[id] === stage.faulty) own += 1
    if (own >= (fair * (to - from)) / 2) return start + span - stage.fault.to
  }
  return Number.POSITIVE_INFINITY
}

/** The numbers of the requests that come within a span. */
function range(work: Workload, span: Span): { from: number; to: number } {
  return { from: firstFrom(work.at, span.from), to: firstFrom(work.at, span.to) }
}

function firstFrom(sorted: Float64Array, moment: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! < moment) low = middle + 1
    else high = middle
  }
  return low
}
