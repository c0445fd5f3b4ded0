import type { LatencyComparison } from '../../feedback/compare.ts'
import { errorConfidence, latencyConfidence } from '../../feedback/compare.ts'
import type { Pooled } from '../../feedback/pooled.ts'
import type { Estimate } from '../../feedback/proportion.ts'
import type { Ground, Judgement, Verdict } from '../../feedback/verdict.ts'
import type { CanaryQuery } from './canary-query.ts'
import { rounded } from './tree.ts'

/** What `/canary/UPSTREAM` says. Parts are in percent, differences of parts in points, as the parameters are. */
export interface CanaryAnswer {
  readonly verdict: Verdict
  /** What decided, for people. */
  readonly reason: string
  readonly upstream: string
  readonly baseline: string
  readonly canary: string
  /** Whose samples were compared. */
  readonly scope: 'fleet' | 'instance'
  /** Instances that samples came from, this one among them. */
  readonly instances: number
  readonly window: Window
  readonly wanted: {
    readonly min_samples: number
    readonly max_slowdown: number
    readonly max_errors: number
  }
  readonly samples: { readonly baseline: Side; readonly canary: Side }
  /** Undefined where either side has no attempt. */
  readonly errors: Interval | undefined
  /** Undefined where either side has no time. */
  readonly latency: Latency | undefined
  readonly grounds: readonly (Ground | Note)[]
  /** The whole for people, a line each. */
  readonly text: string
}

/** What is to be known of the samples, and has decided nothing. */
export interface Note {
  readonly about: 'samples' | 'tracks'
  readonly finding: 'note'
  readonly text: string
}

export interface Window {
  /** Seconds that were asked for, and seconds since the begin of the first minute in which there is anything. */
  readonly asked: number
  readonly covered: number
  /** Begin of the first whole minute that is looked at, and now. */
  readonly from: string
  readonly to: string
}

export interface Side {
  readonly attempts: number
  readonly errors: number
  /** Answers whose time is known, how many of these times were compared, and their median, milliseconds. */
  readonly timed: number
  readonly times: number
  readonly median: number | undefined
}

/** `low` and `high` are undefined where there are too few times for an interval. */
export interface Interval {
  readonly difference: number
  readonly low: number | undefined
  readonly high: number | undefined
  /** Percent. */
  readonly confidence: number
}

export interface Latency extends Interval {
  /** Mann and Whitney's: pairs of times in which the canary's is the longer one, and the chance of a `u` as far off. */
  readonly u: number
  readonly p: number
}

/** What was compared, and what came of it. */
export interface Finding {
  readonly upstream: string
  readonly query: CanaryQuery
  readonly scope: CanaryAnswer['scope']
  readonly instances: number
  readonly window: Window
  readonly sides: { readonly baseline: Pooled; readonly canary: Pooled }
  readonly errors: Estimate | undefined
  readonly latency: LatencyComparison | undefined
  readonly judgement: Judgement
  readonly notes: readonly Note[]
}

export function canaryAnswer(finding: Finding): CanaryAnswer {
  const { upstream, query, scope, instances, window, sides, errors, latency, judgement, notes } = finding
  const { verdict } = judgement
  const absent = notes.filter(({ about }) => about === 'tracks' && verdict === 'inconclusive')
  const reason = [judgement.reason, ...absent.map(({ text }) => text)].join('; ')
  const samples = {
    baseline: sideOf(sides.baseline, latency?.baselineMs),
    canary: sideOf(sides.canary, latency?.canaryMs),
  }
  const grounds = [...judgement.grounds, ...notes]
  const { baseline, canary } = query
  const side = (name: string, { attempts, errors, timed, times, median }: Side) => {
    const used = times === timed ? `${times} times` : `${times} of ${timed} times`
    const middle = median === undefined ? '' : `, median ${median} ms`
    return `${name}: ${attempts} attempts, ${errors} failed, ${used}${middle}`
  }
  const lines = [
    `${verdict}: track ${canary} against ${baseline} in upstream ${upstream}`,
    ...grounds.map(({ text }) => `  ${text}`),
    `  ${side(canary, samples.canary)}`,
    `  ${side(baseline, samples.baseline)}`,
    `  window: ${window.asked} s asked for, ${window.covered} s covered, from ${window.from} to ${window.to}`,
  ]
  return {
    verdict,
    reason,
    upstream,
    baseline,
    canary,
    scope,
    instances,
    window,
    wanted: {
      min_samples: query.minSamples,
      max_slowdown: hundred(query.maxSlowdown),
      max_errors: hundred(query.maxErrors),
    },
    samples,
    errors: errors && interval(errors, errorConfidence),
    latency: latency && {
      ...interval(latency.slowdown, latencyConfidence),
      u: latency.u,
      p: Number(latency.p.toPrecision(4)),
    },
    grounds,
    text: `${lines.join('\n')}\n`,
  }
}

function sideOf({ attempts, errors, timed, times }: Pooled, medianMs: number | undefined): Side {
  const median = medianMs === undefined ? undefined : rounded(medianMs)
  return { attempts, errors, timed, times: times.length, median }
}

function interval(
  { estimate, low, high }: { estimate: number; low: number | undefined; high: number | undefined },
  confidence: number,
): Interval {
  return {
    difference: hundred(estimate),
    low: low === undefined ? undefined : hundred(low),
    high: high === undefined ? undefined : hundred(high),
    confidence: hundred(confidence),
  }
}

function hundred(part: number): number {
  return rounded(100 * part)
}
