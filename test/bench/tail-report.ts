import { type Figures, medians, misses, type Ratios } from './tail-figures.ts'
import type { Scenario } from './tail-scenarios.ts'
import type { Subject } from './tail-subjects.ts'

/** What all runs of a scenario showed of one method. */
export interface Result {
  readonly scenario: Scenario
  readonly subject: Subject
  /** One entry a run. */
  readonly figures: readonly Figures[]
  /** To the best possible of the same run. */
  readonly ratios: readonly Ratios[]
  /** Requests without an answer at the end, in all runs. */
  readonly unanswered: number
}

/** A result in short, as `--json` prints it. */
export interface Summary {
  readonly scenario: string
  readonly method: string
  /** Medians of the runs. */
  readonly figures: Figures
  readonly ratios: Ratios
  readonly target: { readonly p99: number; readonly errors: number } | undefined
  /** What of the target is missed; undefined where there is none. */
  readonly missed: readonly string[] | undefined
  readonly unanswered: number
  readonly runs: readonly { readonly figures: Figures; readonly ratios: Ratios }[]
}

export function summary({ scenario, subject, figures, ratios, unanswered }: Result): Summary {
  const target = subject.target && scenario.targets[subject.target]
  const middle = medians(figures)
  const ratio = medians(ratios)
  return {
    scenario: scenario.name,
    method: subject.name,
    figures: middle,
    ratios: ratio,
    target,
    missed: target && misses(target, ratio.p99, middle.errors),
    unanswered,
    runs: figures.map((one, i) => ({ figures: one, ratios: ratios[i]! })),
  }
}

/** A scenario's table: milliseconds, ratios to the best possible, errors, and the verdict where there is a target. */
export function table(title: string, found: readonly Summary[]): string {
  const lines = [
    `${title.padEnd(46)}  ${'ms: p50'.padStart(9)}${heads('p99', 'p99.9')}   ${'ratio: p50'.padStart(10)}${heads('p99', 'p99.9')}    errors`,
  ]
  for (const one of found) {
    const { p50, p99, p999, errors } = one.figures
    const ratio = one.ratios
    lines.push(
      `  ${one.method.padEnd(44)}  ${p50.toFixed(1).padStart(9)}${cells([p99, p999], 1)}   ` +
        `${ratio.p50.toFixed(2).padStart(10)}${cells([ratio.p99, ratio.p999], 2)}  ${percent(errors).padStart(8)}${verdict(one)}`,
    )
  }
  return lines.join('\n')
}

function verdict({ target, missed, unanswered }: Summary): string {
  const left = unanswered > 0 ? `  ${unanswered} unanswered` : ''
  if (target === undefined || missed === undefined) return left
  const aim = `p99 ≤ ${target.p99.toFixed(2)}, errors ≤ ${percent(target.errors)}`
  return `${left}  ${aim}: ${missed.length === 0 ? 'reached' : `MISSED (${missed.join(', ')})`}`
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`
}

function heads(...names: readonly string[]): string {
  return names.map((name) => name.padStart(9)).join('')
}

function cells(values: readonly number[], digits: number): string {
  return values.map((value) => value.toFixed(digits).padStart(9)).join('')
}
