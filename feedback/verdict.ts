import { type Comparison, errorConfidence, latencyConfidence } from './compare.ts'
import type { Pooled } from './pooled.ts'

/** What a comparison of two tracks comes to. */
export const verdicts = ['pass', 'fail', 'inconclusive'] as const
export type Verdict = (typeof verdicts)[number]

/** What is asked of a canary. */
export interface Demands {
  /** Attempts that either side must have for its errors to be judged, and times for its latency. */
  readonly minSamples: number
  /** How much slower it may be, 0.1 is a tenth. */
  readonly maxSlowdown: number
  /** How much greater its part of errors may be, 0.01 is one point. */
  readonly maxErrors: number
}

/** What one kind of evidence says. */
export interface Ground {
  readonly about: 'errors' | 'latency'
  /** `unknown` where it could not be judged. */
  readonly finding: 'worse' | 'fine' | 'unknown'
  /** The same for people. */
  readonly text: string
}

export interface Judgement {
  readonly verdict: Verdict
  /** The ground that decided, for people. */
  readonly reason: string
  readonly grounds: readonly Ground[]
}

/** The names of the two sides, for people. */
export interface Names {
  readonly baseline: string
  readonly canary: string
}

interface Sides {
  readonly baseline: Pooled
  readonly canary: Pooled
}

/**
 * `fail` where either kind of evidence is bad, for which the interval must lie on the bad side of no difference and the
 * estimate beyond what is allowed; `pass` where both could be judged, and neither is; `inconclusive` otherwise. A canary
 * that fails everything has no times at all: its errors alone condemn it.
 */
export function judge(sides: Sides, comparison: Comparison, demands: Demands, names: Names): Judgement {
  const grounds = [
    judgeErrors(sides, comparison.errors, demands, names),
    judgeLatency(sides, comparison.latency, demands, names),
  ]
  const pick = (finding: Ground['finding']) => grounds.filter((ground) => ground.finding === finding)
  const [worse, unknown] = [pick('worse'), pick('unknown')]
  const verdict = worse.length > 0 ? 'fail' : unknown.length > 0 ? 'inconclusive' : 'pass'
  const decisive = worse.length > 0 ? worse : unknown.length > 0 ? unknown : grounds
  return { verdict, reason: decisive.map(({ text }) => text).join('; '), grounds }
}

function judgeErrors(
  sides: Sides,
  errors: Comparison['errors'],
  { minSamples, maxErrors }: Demands,
  names: Names,
): Ground {
  const about = 'errors'
  const lack = lacking(sides, 'attempts', (side) => side.attempts, minSamples, names)
  if (lack !== undefined || errors === undefined)
    return { about, finding: 'unknown', text: `errors: ${lack}` }
  const { estimate, low, high } = errors
  const worse = low > 0 && exceeds(estimate, maxErrors)
  const part = ({ errors, attempts }: Pooled) => `${percent(errors / attempts)} of ${attempts}`
  const compared = `${names.canary} ${part(sides.canary)} failed, ${names.baseline} ${part(sides.baseline)}`
  const interval = `${100 * errorConfidence} % interval ${points(low)} to ${points(high)}`
  return {
    about,
    finding: worse ? 'worse' : 'fine',
    text: `errors: ${compared}: ${points(estimate)} points, ${interval}, ${number(100 * maxErrors)} allowed`,
  }
}

function judgeLatency(
  sides: Sides,
  latency: Comparison['latency'],
  { minSamples, maxSlowdown }: Demands,
  names: Names,
): Ground {
  const about = 'latency'
  const unknown = (why: string): Ground => ({ about, finding: 'unknown', text: `latency: ${why}` })
  const lack = lacking(sides, 'times', (side) => side.times.length, minSamples, names)
  if (lack !== undefined || latency === undefined) return unknown(lack ?? 'no times')
  const { estimate, low, high } = latency.slowdown
  if (low === undefined) return unknown(`too few times for a ${100 * latencyConfidence} % interval`)
  const worse = low > 0 && exceeds(estimate, maxSlowdown)
  const interval = `${100 * latencyConfidence} % interval ${percent(low)} to ${percent(high)}`
  const how = `${percent(Math.abs(estimate))} ${estimate < 0 ? 'faster' : 'slower'} than ${names.baseline}`
  return {
    about,
    finding: worse ? 'worse' : 'fine',
    text: `latency: ${names.canary} is ${how}, ${interval} slower, ${percent(maxSlowdown)} allowed`,
  }
}

/** What keeps a kind of evidence from being judged; undefined: nothing. */
function lacking(
  { baseline, canary }: Sides,
  what: string,
  count: (side: Pooled) => number,
  wanted: number,
  names: Names,
): string | undefined {
  const counts = [
    [names.canary, count(canary)],
    [names.baseline, count(baseline)],
  ] as const
  const short = counts.filter(([, have]) => have < wanted)
  if (short.length === 0) return undefined
  return `${short.map(([name, have]) => `${name} has ${have} ${what}`).join(' and ')}, ${wanted} wanted`
}

/** Eleven errors less one in a thousand are one point, and no more, whatever is left of it as a binary fraction. */
function exceeds(estimate: number, allowed: number): boolean {
  return estimate > allowed + 1e-9
}

function percent(part: number): string {
  return `${number(100 * part)} %`
}

function points(part: number): string {
  return `${part > 0 ? '+' : ''}${number(100 * part)}`
}

/** Two digits behind the point at most, and fewer where they say nothing. */
function number(value: number): string {
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0
  // Never -0.
  return String(Number(value.toFixed(digits)) + 0)
}
