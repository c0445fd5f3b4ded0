import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensure } from '../../scripts/ensure.ts'
import { optionsOf } from './options.ts'
import { table as pickTable } from './pick.ts'
import { Driver } from './proxies-driver.ts'
import { type Figures, figures, yardstick } from './proxies-figures.ts'
import { machine } from './proxies-machine.ts'
import { type Options, readOptions, usage } from './proxies-options.ts'
import { readmeText, replaceBlock } from './proxies-readme.ts'
import { type Measured, scenarioText } from './proxies-report.ts'
import { Running } from './proxies-running.ts'
import type { Scenario } from './proxies-scenarios.ts'

/*
 * What a request costs, beside other proxies: all of them on one core, loaded in turn, with load and peer on another.
 * Only the ratios of one run mean anything.
 */

/** Cores of the proxies, and of everything else; undefined where there is only one for all. */
export interface Cores {
  readonly proxy: number | undefined
  readonly rest: number | undefined
}

/** How long those that need no warming up are kept busy before, milliseconds. */
const shortWarmMs = 500
const readme = new URL('../../README.md', import.meta.url)
/** A turn at the fixed rate as a part of one in the closed loop. */
const pacedPart = 0.6

export async function run(words: readonly string[]): Promise<void> {
  const options = optionsOf(readOptions, words, usage)
  if (!options) return
  const programs = options.subjects.flatMap(({ program }) => program ?? [])
  if (options.scenarios.some(({ front }) => front)) programs.push('h2load')
  await ensure([...new Set(programs)], console.log)
  const cores = availableParallelism() > 1 ? { proxy: 0, rest: 1 } : { proxy: undefined, rest: undefined }
  // What measures must not be where the proxies are.
  if (cores.rest !== undefined) {
    execFileSync('taskset', ['-acp', String(cores.rest), String(process.pid)], { stdio: 'ignore' })
  }
  const begun = performance.now()
  const measured: Measured[] = []
  for (const scenario of options.scenarios) {
    const one = { scenario, found: await measure(scenario, options, cores, console.log) }
    measured.push(one)
    console.log(`\n${scenarioText(one)}\n`)
  }
  const picks = options.picks ? pickTable() : undefined
  if (picks && measured.length > 0) {
    const text = readmeText({ machine: machine(), rounds: options.rounds, measured, picks })
    console.log(`\n${text}\n`)
    if (options.readme) writeFileSync(readme, replaceBlock(readFileSync(readme, 'utf8'), text))
  }
  console.log(`${Math.round((performance.now() - begun) / 1000)} s`)
}

/** One scenario with all subjects that are able to take part, each started once. */
export async function measure(
  scenario: Scenario,
  options: Pick<Options, 'subjects' | 'rounds' | 'turnMs' | 'warmMs'>,
  cores: Cores,
  say: (text: string) => void,
): Promise<Figures[]> {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-bench-'))
  await using driver = await Driver.start(cores.rest)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  // Making one needs openssl.
  const certificate = scenario.front?.tls
    ? (await import('../support/certificates.ts')).certificates(folder).server
    : undefined
  const running: Running[] = []
  for (const subject of options.subjects) {
    if ((subject.variant && !scenario.variants) || subject.able?.(scenario) === false) continue
    const one = stack.use(
      await Running.start({ subject, scenario, driver, certificate, folder, core: cores.proxy }),
    )
    running.push(one)
    const ms = subject.warms ? options.warmMs : Math.min(shortWarmMs, options.warmMs)
    const [first, after] = await one.warm(ms)
    say(`  ${subject.name}: ${first.toFixed(1)} µs a request at first, ${after.toFixed(1)} once warm`)
  }
  for (let round = 1; round <= options.rounds; round += 1) {
    const costs = new Map<string, number>()
    // The other way round each time: what went before leaves its marks in the caches.
    for (const one of round % 2 === 1 ? running : running.toReversed()) {
      costs.set(one.subject.name, await one.closedLoop(options.turnMs))
      if (scenario.rate !== undefined) await one.fixedRate(options.turnMs * pacedPart, scenario.rate)
    }
    say(`${scenario.name} ${round}/${options.rounds}: ${roundText(running, costs)}`)
  }
  return figures(running.map((one) => one.found()))
}

/** What a round found, in the order in which the subjects stand. */
function roundText(running: readonly Running[], costs: ReadonlyMap<string, number>): string {
  const unit = costs.get(yardstick)
  return running
    .map(({ subject: { name } }) => {
      const micros = costs.get(name) ?? 0
      return `${name} ${micros.toFixed(1)}${unit === undefined ? '' : ` (${(micros / unit).toFixed(2)})`}`
    })
    .join(', ')
}
