import { availableParallelism, loadavg } from 'node:os'
import { measure, warmMs } from './tail-batch.ts'
import { type Figures, figures, percentile, ratios } from './tail-figures.ts'
import { type Options, readOptions, usage } from './tail-options.ts'
import { type Result, type Summary, summary, table } from './tail-report.ts'
import type { Scenario } from './tail-scenarios.ts'
import type { Subject } from './tail-subjects.ts'

/*
 * The tail of response times by method, on real processes and sockets: the program, peers that work on timers, and
 * an open stream of requests. Ratios to the best possible count; the times are this machine's.
 */

/** Sent later than this at the 99th percentile, and the figures are the machine's more than the methods'. */
const lateLimitMs = 5
/** Starting, stopping and the last answers, beside the traffic itself. */
const aroundMs = 4000

interface Found {
  readonly figures: Figures
  readonly unanswered: number
  readonly late: Float64Array
}

export async function run(words: readonly string[]): Promise<void> {
  let options: Options
  try {
    options = readOptions(words)
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}\n${usage}`)
    process.exitCode = 1
    return
  }
  const { seconds, runs, together, json } = options
  // Progress is not part of the document.
  const say = json ? console.error : console.log
  const batches = Math.ceil(options.subjects.length / together)
  const steps = options.scenarios.length * runs * batches
  const minutes = (steps * (seconds * 1000 + warmMs + aroundMs)) / 60_000
  say(
    `Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}; ` +
      `${options.subjects.length} subjects, ${together} at a time, ${seconds} s each, ${runs} runs: ` +
      `about ${minutes.toFixed(minutes < 10 ? 1 : 0)} minutes`,
  )
  const summaries: Summary[] = []
  const late: Float64Array[] = []
  let step = 0
  for (const scenario of options.scenarios) {
    const found = new Map<Subject, Found[]>(options.subjects.map((subject) => [subject, []]))
    for (let seed = 1; seed <= runs; seed += 1) {
      for (let first = 0; first < options.subjects.length; first += together) {
        const batch = options.subjects.slice(first, first + together)
        step += 1
        for (const [subject, one] of await once(batch, scenario, seed, seconds * 1000)) {
          found.get(subject)!.push(one)
          late.push(one.late)
          say(`[${step}/${steps}] ${scenario.name}, run ${seed}: ${line(subject, one)}`)
        }
      }
    }
    const results = options.subjects.map((subject) => summary(result(scenario, subject, found)))
    summaries.push(...results)
    say(`\n${table(scenario.title, results)}\n`)
  }
  const lateness = latenessOf(late)
  say(latenessText(lateness))
  if (json)
    console.log(
      JSON.stringify({ node: process.version, seconds, runs, together, lateness, results: summaries }),
    )
  if (summaries.some(({ missed }) => missed !== undefined && missed.length > 0)) process.exitCode = 1
}

async function once(
  batch: readonly Subject[],
  scenario: Scenario,
  seed: number,
  ms: number,
): Promise<readonly (readonly [Subject, Found])[]> {
  const measured = await measure(batch, scenario.plan(ms), seed, ms)
  return measured.map(({ times, failed, unanswered, late }, i) => [
    batch[i]!,
    { figures: figures(times, failed), unanswered, late },
  ])
}

function result(scenario: Scenario, subject: Subject, found: ReadonlyMap<Subject, readonly Found[]>): Result {
  // The best possible is the first of all.
  const [best] = found.values()
  const own = found.get(subject)!
  return {
    scenario,
    subject,
    figures: own.map((one) => one.figures),
    ratios: own.map((one, i) => ratios(one.figures, best![i]!.figures)),
    unanswered: own.reduce((sum, one) => sum + one.unanswered, 0),
  }
}

function line({ name }: Subject, { figures: { p50, p99, p999, errors }, late }: Found): string {
  const times = [p50, p99, p999].map((time) => time.toFixed(1).padStart(7)).join(' ')
  const own = percentile(Float64Array.from(late).sort(), 0.99)
  return `${name.padEnd(18)} ${times} ms, ${(100 * errors).toFixed(2)} % errors, sent ${own.toFixed(1)} ms late at p99`
}

function latenessOf(all: readonly Float64Array[]): { p50: number; p99: number; max: number } {
  const sorted = Float64Array.from(all.flatMap((one) => [...one])).sort()
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1)! }
}

function latenessText({ p50, p99, max }: { p50: number; p99: number; max: number }): string {
  const noisy = p99 > lateLimitMs ? '; too busy a machine for these figures to be trusted' : ''
  return `requests were sent late by ${p50.toFixed(2)} ms at p50, ${p99.toFixed(2)} at p99, ${max.toFixed(1)} at most${noisy}`
}
