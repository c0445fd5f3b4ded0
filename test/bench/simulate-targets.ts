import type { Comparison, Row } from '../../sidecar/simulate/compare.ts'
import { wantedOf } from '../../sidecar/simulate/peers.ts'
import type { Scenario } from '../../sidecar/simulate/scenarios.ts'
import type { Plan } from '../../sidecar/simulate/stage.ts'

/** What is compared, and what `least_time` has to reach there. */

export const byDefault = 'least_time last_byte'
export const best = 'least_time last_byte best'
export const methods = [
  'round_robin',
  'least_conn',
  'random two',
  'least_time last_byte plain',
  byDefault,
  best,
  'feedback $upstream_http_x_drain_time inverse',
]

/** Twenty equal servers. */
export const servers = wantedOf({
  servers: Array.from({ length: 20 }, (_, i) => ({ address: `127.0.0.1:${8001 + i}` })),
})

export function planFor(scenario: Scenario, load: number, seconds = scenario.seconds, seed = 1): Plan {
  return {
    scenario,
    speeds: servers.map(() => 1),
    spare: 1,
    workers: 2,
    service: 10,
    network: 0.25,
    load,
    instances: scenario.instances,
    duration: 1000 * seconds,
    report: 'time',
    keys: 1000,
    seed,
  }
}

/** What the reference has: p99 by that of the best possible, by scenario and load, of the default and of `best`. */
const reference: Readonly<Record<string, Readonly<Record<number, readonly [number, number]>>>> = {
  homogeneous: { 0.7: [1.09, 1.06], 0.9: [1.17, 1.16] },
  speeds: { 0.7: [1.67, 1.12], 0.9: [1.37, 1.06] },
  'slow-peer': { 0.7: [1.2, 1.07], 0.9: [1.3, 1.22] },
  stall: { 0.7: [1.09, 1.06], 0.9: [1.22, 1.23] },
  'failing-peer': { 0.7: [1.1, 1.07], 0.9: [1.2, 1.23] },
  pauses: { 0.7: [1.14, 1.17], 0.9: [1.26, 1.28] },
  'speeds-many': { 0.7: [2.25, 1.26], 0.9: [2.28, 1.22] },
  'stall-many': { 0.7: [1.44, 1.18], 0.9: [1.84, 1.45] },
}

/** How far from the reference p99 may be. */
const margin = 1.1
/** By how much `best` may be worse than `least_conn`. */
const behind = 1.05
/** Part of the requests that a failing peer may cost, at 70 % load; of the default and of `best`. */
const errorLimits = [0.002, 0.0007] as const
/** How soon a peer must have half its fair share again, milliseconds, with four sidecars: of twenty each learns less. */
const recoveryLimits = [5000, 20_000] as const
/** How far errors that all peers have may move p99, either way. */
const indifference = 0.05

/** Whether each target is met. */
export class Verdicts {
  /** `met` is undefined where the comparison says nothing. */
  readonly lines: { readonly met: boolean | undefined; readonly text: string }[] = []

  judge(load: number, columns: readonly Comparison[]): void {
    const quiet = columns.find(({ stage }) => stage.plan.scenario.name === 'homogeneous')
    for (const column of columns) {
      const { scenario } = column.stage.plan
      for (const [i, words] of [byDefault, best].entries()) {
        const row = rowOf(column, words)
        const where = `${words}, ${scenario.name} at ${Math.round(100 * load)} %`
        const goal = reference[scenario.name]?.[load]?.[i]
        if (goal !== undefined) this.#least(`${where}: p99`, row.ratios.p99, margin * goal)
        if (scenario.name === 'failing-peer' && load === 0.7) {
          this.#least(`${where}: errors, %`, 100 * row.figures.errors, 100 * errorLimits[i]!)
        }
        const { recovery } = row.figures
        if (recovery !== undefined && scenario.instances === 4) {
          this.#least(`${where}: half its share again, s`, recovery / 1000, recoveryLimits[i]! / 1000)
        }
        if (scenario.name === 'errors' && quiet !== undefined) {
          const change = Math.abs(row.ratios.p99 / rowOf(quiet, words).ratios.p99 - 1)
          this.#least(`${where}: p99 moved by, %`, 100 * change, 100 * indifference)
        }
      }
      this.#compare(column, `${best}, ${scenario.name} at ${Math.round(100 * load)} %`)
    }
  }

  #compare(column: Comparison, where: string): void {
    const row = rowOf(column, best)
    const other = rowOf(column, 'least_conn')
    this.#least(`${where}: p99 by that of least_conn`, row.ratios.p99 / other.ratios.p99, behind)
    const lost = other.figures.errors - row.figures.errors
    const last = this.lines.at(-1)!
    if (last.met || lost < 0.005) return
    // Whoever fails requests has fewer to answer: its times are no measure then.
    const text = `${last.text}; but least_conn fails ${(100 * lost).toFixed(1)} % more of the requests`
    this.lines.splice(-1, 1, { met: undefined, text })
  }

  #least(text: string, value: number, limit: number): void {
    this.lines.push({
      met: value <= limit,
      text: `${text}: ${value.toFixed(3)}, at most ${limit.toFixed(3)}`,
    })
  }

  print(): void {
    console.log('\nTargets')
    for (const { met, text } of this.lines) {
      console.log(`${met === undefined ? 'moot  ' : met ? 'met   ' : 'MISSED'}  ${text}`)
    }
    const missed = this.lines.filter(({ met }) => met === false).length
    console.log(
      missed === 0
        ? `none of ${this.lines.length} is missed`
        : `${missed} of ${this.lines.length} are missed`,
    )
    if (missed > 0) process.exitCode = 1
  }
}

function rowOf({ rows }: Comparison, words: string): Row {
  const row = rows.find((row) => row.words === words)
  if (row === undefined) throw new Error(`bench: no figures of ${words}`)
  return row
}
