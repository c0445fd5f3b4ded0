import { type Figures, medians, misses, type Ratios } from './tail-figures.ts'
import type { Scenario, Target } from './tail-scenarios.ts'
import type { Subject } from './tail-subjects.ts'

/** What one run showed of one method. */
export interface Run {
  readonly figures: Figures
  /** To the best possible that ran at the same time. */
  readonly ratios: Ratios
  /** Requests without an answer at the end. */
  readonly unanswered: number
  /** Whether other programs spoilt it, again and again. */
  readonly disturbed: boolean
}

/** What the undisturbed runs of a scenario showed of one method, as `--json` prints it; all where none was quiet. */
export interface Summary {
  readonly scenario: string
  readonly method: string
  /** Median of the runs, each figure by itself. */
  readonly figures: Figures
  /** Median of the runs' ratios. */
  readonly ratios: Ratios
  readonly unanswered: number
  readonly target: Target | undefined
  /** Undecided when more than half of the runs were disturbed; undefined where there is no target. */
  readonly verdict: 'reached' | 'missed' | 'undecided' | undefined
  /** What of the target is missed. */
  readonly missed: readonly string[]
  readonly runs: readonly Run[]
}

export function summary({
  scenario,
  subject,
  runs,
}: {
  readonly scenario: Scenario
  readonly subject: Subject
  readonly runs: readonly Run[]
}): Summary {
  const target = subject.target && scenario.targets[subject.target]
  const quiet = runs.filter(({ disturbed }) => !disturbed)
  const counted = quiet.length > 0 ? quiet : runs
  const figures = medians(counted.map((run) => run.figures))
  const ratios = medians(counted.map((run) => run.ratios))
  const missed = target ? misses(target, ratios.p99, figures.errors) : []
  let verdict: Summary['verdict']
  if (target) {
    if (2 * quiet.length < runs.length) verdict = 'undecided'
    else verdict = missed.length > 0 ? 'missed' : 'reached'
  }
  return {
    scenario: scenario.name,
    method: subject.name,
    figures,
    ratios,
    unanswered: runs.reduce((sum, run) => sum + run.unanswered, 0),
    target,
    verdict,
    missed,
    runs,
  }
}

const nameWidth = 44

/**
 * A scenario's table: milliseconds, ratios to the best possible, errors, and the verdict where there is a target.
 * @param arithmetic the best possible on a machine that costs no time; what the measured one has more is the machine's
 */
export function table(title: string, rows: readonly Summary[], arithmetic: Figures): string {
  const heads = ['p50 ms', 'p99 ms', 'p99.9 ms', 'p50 ×', 'p99 ×', 'p99.9 ×', 'errors']
  return [
    `${title.padEnd(nameWidth)}${heads.map((head) => head.padStart(10)).join('')}`,
    `${'  (by arithmetic)'.padEnd(nameWidth)}${cells(arithmetic, 1)}`,
    ...rows.map((row) => {
      const name = `  ${row.method}`.padEnd(nameWidth)
      const errors = percent(row.figures.errors).padStart(10)
      return `${name}${cells(row.figures, 1)}${cells(row.ratios, 2)}${errors}${ending(row)}`
    }),
  ].join('\n')
}

function ending({ target, verdict, missed, unanswered }: Summary): string {
  const left = unanswered > 0 ? `  ${unanswered} without an answer` : ''
  if (target === undefined) return left
  const words = {
    reached: 'reached',
    missed: `MISSED (${missed.join(', ')})`,
    undecided: 'UNDECIDED, the machine was too busy',
  }
  const aim = `p99 ≤ ${target.p99.toFixed(2)} ×, errors ≤ ${percent(target.errors)}`
  return `${left}   ${aim}: ${verdict && words[verdict]}`
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`
}

function cells({ p50, p99, p999 }: Ratios, digits: number): string {
  return [p50, p99, p999].map((value) => value.toFixed(digits).padStart(10)).join('')
}
