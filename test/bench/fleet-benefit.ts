import { type Comparison, compare, type Row } from '../../sidecar/simulate/compare.ts'
import { readContender } from '../../sidecar/simulate/contenders.ts'
import { type Scenario, scenarios } from '../../sidecar/simulate/scenarios.ts'
import { plain } from '../../sidecar/simulate/table.ts'
import { best, byDefault, planFor, servers } from './simulate-targets.ts'

/*
 * What it is worth that many sidecars tell one another what they see: each scenario without and with it, on the same
 * requests. Two minutes or so; `npm run bench -- fleet-benefit 1` goes through one seed, `fleet-benefit 3 1000` shares
 * every second.
 */

const crowds = [20, 100]
const names = ['homogeneous', 'speeds', 'stall', 'failing-peer']
const load = 0.7

export function run([word = '3', interval = '200']: readonly string[]): void {
  const [seeds, fleet] = [Number(word), Number(interval)]
  if (!Number.isInteger(seeds) || seeds < 1) throw new Error(`bench: "${word}" is no number of seeds`)
  if (!(fleet >= 10)) throw new Error(`bench: "${interval}" is no interval of 10 ms or more`)
  const began = performance.now()
  const passed = () => ((performance.now() - began) / 1000).toFixed(0)
  const lines: string[][] = []
  for (const instances of crowds) {
    for (const name of names) {
      const comparison = benefit(scenarioOf(name), instances, seeds, fleet)
      process.stderr.write(`${passed()} s: ${name} with ${instances} sidecars\n`)
      for (const words of [byDefault, best]) lines.push(line(comparison, words))
    }
  }
  const heads = [
    'sidecars',
    'scenario',
    'method',
    'p99, ×',
    'p99.9, ×',
    'errors, %',
    'share of the faulty peer, ×',
  ]
  console.log(
    `Without → with a fleet that shares every ${fleet} ms. Load ${100 * load} %, median of ${seeds}.`,
  )
  console.log('p99 and p99.9 are by those of the best possible, the share is by a fair one.\n')
  for (const cells of [heads, heads.map(() => '---'), ...lines]) console.log(`| ${cells.join(' | ')} |`)
  console.log(`\n${passed()} s`)
}

function scenarioOf(name: string): Scenario {
  const scenario = scenarios.find((scenario) => scenario.name === name)
  if (scenario === undefined) throw new Error(`bench: no scenario "${name}"`)
  return scenario
}

/** Both methods without and with the fleet, on the same requests. */
function benefit(scenario: Scenario, instances: number, seeds: number, fleet: number): Comparison {
  const plan = { ...planFor(scenario, load), instances }
  const contenders = [byDefault, best].map(readContender)
  return compare({ plan, wanted: servers, keep: 0.9, contenders, runs: seeds, fleet })
}

function line({ stage, rows }: Comparison, words: string): string[] {
  const find = (fleet: boolean) => rows.find((row) => row.words === words && row.fleet === fleet)
  const [alone, shared] = [find(false), find(true)]
  if (alone === undefined || shared === undefined) throw new Error(`bench: no figures of ${words}`)
  const both = (of: (row: Row) => string) => `${of(alone)} → ${of(shared)}`
  const { instances, scenario } = stage.plan
  const fair = stage.fairShare(stage.faulty)
  const failing = scenario.fault?.rate === 'failing'
  return [
    String(instances),
    `\`${scenario.name}\``,
    `\`${words}\``,
    both(({ ratios }) => plain(ratios.p99)),
    both(({ ratios }) => plain(ratios.p999)),
    failing ? both(({ figures }) => (100 * figures.errors).toFixed(2)) : '',
    stage.fault ? both(({ figures }) => (figures.shares[stage.faulty]! / fair).toFixed(3)) : '',
  ]
}
