import { type Comparison, compare, type Row } from '../../sidecar/simulate/compare.ts'
import { readContender } from '../../sidecar/simulate/contenders.ts'
import { scenarios } from '../../sidecar/simulate/scenarios.ts'
import { plain } from '../../sidecar/simulate/table.ts'
import { best, byDefault, methods, planFor, servers, Verdicts } from './simulate-targets.ts'

/*
 * Every method in every scenario at two loads: p99 as a ratio to the best possible, the median of five seeds, and whether
 * `least_time` is where it has to be. Some minutes; `npm run bench -- simulate 1` goes through one seed.
 */

const loads = [0.7, 0.9]

export function run([word = '5']: readonly string[]): void {
  const seeds = Number(word)
  if (!Number.isInteger(seeds) || seeds < 1) throw new Error(`bench: "${word}" is no number of seeds`)
  const began = performance.now()
  const verdicts = new Verdicts()
  for (const load of loads) {
    const columns: Comparison[] = []
    for (const scenario of scenarios) {
      const contenders = methods.map(readContender)
      const plan = planFor(scenario, load)
      columns.push(compare({ plan, wanted: servers, keep: 0.9, contenders, runs: seeds }))
      const seconds = ((performance.now() - began) / 1000).toFixed(0)
      process.stderr.write(`${seconds} s: ${scenario.name} at ${100 * load} %\n`)
    }
    print(load, seeds, columns)
    verdicts.judge(load, columns)
  }
  verdicts.print()
}

function print(load: number, seeds: number, columns: readonly Comparison[]): void {
  const width = Math.max(...methods.map((words) => words.length))
  const line = (head: string, cell: (column: Comparison) => string) =>
    console.log(`${head.padEnd(width)}${columns.map((column) => cell(column).padStart(14)).join('')}`)
  const block = (title: string, of: (row: Row) => string, rows = methods) => {
    console.log(`\n${title}, load ${100 * load} %, median of ${seeds}`)
    line('', ({ stage }) => stage.plan.scenario.name)
    for (const words of rows) line(words, ({ rows }) => of(rows.find((row) => row.words === words)!))
  }
  block('p99 by that of the best possible', ({ ratios }) => plain(ratios.p99))
  line('best possible, ms', ({ central }) => plain(central.p99))
  block('p99.9 by that of the best possible', ({ ratios }) => plain(ratios.p999))
  block('errors, %', ({ figures }) => (100 * figures.errors).toFixed(3))
  block(
    'half of its share again after, s',
    ({ figures: { recovery } }) =>
      recovery === undefined
        ? ''
        : recovery === Number.POSITIVE_INFINITY
          ? 'never'
          : (recovery / 1000).toFixed(1),
    [byDefault, best],
  )
}
