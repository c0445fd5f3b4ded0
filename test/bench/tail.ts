import { availableParallelism, loadavg } from 'node:os'
import { optionsOf } from './options.ts'
import { measure, warmMs } from './tail-batch.ts'
import { type Figures, figures, medians, ratios } from './tail-figures.ts'
import { computed, type Machine, machine, machineText } from './tail-machine.ts'
import { type Options, readOptions, usage } from './tail-options.ts'
import type { Plan } from './tail-plan.ts'
import { type Run, type Summary, summary, table } from './tail-report.ts'
import { ideal, type Subject } from './tail-subjects.ts'

/*
 * The tail of response times by method, on real processes and sockets: the program, peers that work on timers, and
 * an open stream of requests. Ratios to the best possible count, which runs at the same time as what it is compared
 * to, so that a busy moment of the machine meets both; the times are this machine's.
 */

/** Starting, stopping and the last answers, beside the traffic itself. */
const aroundMs = 2500
/** How often a measurement is made that other programs disturb, before it is left at that. */
const maxAttempts = 3

export async function run(words: readonly string[]): Promise<void> {
  const options = optionsOf(readOptions, words, usage)
  if (!options) return
  const { scenarios, methods, seconds, runs, together, json } = options
  const ms = seconds * 1000
  // Progress is no part of the document.
  const say = json ? console.error : console.log
  const batches = Array.from({ length: Math.ceil(methods.length / together) }, (_, i) => [
    ideal,
    ...methods.slice(i * together, (i + 1) * together),
  ])
  const steps = scenarios.length * runs * batches.length
  say(header(options, steps))
  const results: Summary[] = []
  const arithmetic: Record<string, Figures> = {}
  const machines: Machine[] = []
  for (const scenario of scenarios) {
    const plan = scenario.plan(ms)
    const found = new Map<Subject, Run[]>([ideal, ...methods].map((subject) => [subject, []]))
    const own: Figures[] = []
    for (let seed = 1; seed <= runs; seed += 1) {
      const best = computed(plan, seed, ms)
      own.push(best)
      for (const batch of batches) {
        say(`[${machines.length + 1}/${steps}] ${scenario.name}, run ${seed}`)
        const one = await measureQuietly(batch, { plan, seed, ms, best, say })
        machines.push(one.machine)
        for (const [i, subject] of batch.entries()) found.get(subject)!.push(one.runs[i]!)
      }
    }
    const rows = [...found].map(([subject, each]) => summary({ scenario, subject, runs: each }))
    results.push(...rows)
    arithmetic[scenario.name] = medians(own)
    say(`\n${table(scenario.title, rows, medians(own))}\n`)
  }
  const disturbed = machines.filter((one) => one.disturbed).length
  if (disturbed > 0) say(`Other programs disturbed ${disturbed} of ${steps} measurements beyond use.`)
  if (json) {
    const about = { node: process.version, seconds, runs, together }
    console.log(JSON.stringify({ ...about, machines, arithmetic, results }))
  }
  if (results.some(({ verdict }) => verdict === 'missed' || verdict === 'undecided')) process.exitCode = 1
}

function header({ scenarios, methods, seconds, runs, together }: Options, steps: number): string {
  const minutes = (steps * (seconds * 1000 + warmMs + aroundMs)) / 60_000
  return (
    `Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}. ` +
    `${scenarios.length} scenarios, ${methods.length} methods, ${Math.min(together, methods.length)} at a time, ` +
    `${runs} runs of ${seconds} s: about ${minutes.toFixed(minutes < 10 ? 1 : 0)} minutes on a quiet machine`
  )
}

interface Terms {
  readonly plan: Plan
  readonly seed: number
  readonly ms: number
  /** The best possible by arithmetic. */
  readonly best: Figures
  say(text: string): void
}

/** Measures, and anew where other programs disturbed it. What the methods did has no say in whether. */
async function measureQuietly(
  batch: readonly Subject[],
  { plan, seed, ms, best, say }: Terms,
): Promise<{ readonly runs: readonly Run[]; readonly machine: Machine }> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await measure(batch, plan, seed, ms)
    const each = found.measured.map(({ times, failed }) => figures(times, failed))
    const about = machine(found, { measured: each[0]!.p99, computed: best.p99 })
    const runs = each.map((one, i) => ({
      figures: one,
      ratios: ratios(one, each[0]!),
      unanswered: found.measured[i]!.unanswered,
      disturbed: about.disturbed,
    }))
    for (const [i, one] of runs.entries()) say(`  ${line(batch[i]!, one)}`)
    const again = about.disturbed && attempt < maxAttempts
    say(`  ${machineText(about)}${again ? '; once more' : ''}`)
    if (!again) return { runs, machine: about }
  }
}

function line({ name }: Subject, { figures: { p50, p99, p999, errors }, ratios: ratio }: Run): string {
  const times = [p50, p99, p999].map((time) => time.toFixed(1).padStart(8)).join('')
  return `${name.padEnd(20)}${times} ms   ${ratio.p99.toFixed(2)} × at p99   ${(100 * errors).toFixed(2)} % errors`
}
