// Runs the tests, a few files at a time: `npm test`, `npm run test:integration` for those beside programs of others, or
// `npm test -- test/feedback signals` for all files whose path contains one of the words. Says one line as each file ends,
// then what failed, then the closing counts.
// A few files that failed beside others are run once more, alone: what fails then has failed.

import { relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import { ensure, neededBy } from './ensure.ts'
import { chosenFiles } from './test-files.ts'
import { TestOrder } from './test-order.ts'

const root = new URL('..', import.meta.url).pathname
process.chdir(root)
// The program is started many times: what it compiles is kept, which halves the time of a start.
process.env['NODE_COMPILE_CACHE'] ??= `${root}node_modules/.cache/evenkeel`

const args = process.argv.slice(2)
/** Files that were asked for by name are looked at, whatever else there is. */
const named = args.some((arg) => !arg.startsWith('-'))
let files: string[]

try {
  files = chosenFiles(args)
  if (files.length === 0) throw new Error(`no test file matches ${args.join(' ')}`)
  // Here rather than in a test, which would run into its time limit.
  await ensure(neededBy(files), (text) => console.log(text))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

/** More files than this that fail are no chance any more. */
const mostAgain = 8

/** What each file wrote: shown only when it fails, so that a good run is short. */
const written = new Map<string, string>()
const failures: string[] = []
const failed = new Set<string>()
let ended = 0
let good = true
/** The closing counts, over all files. */
const counts = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }
/** Those that the runner calls by the same names. */
const sameNames = ['tests', 'suites', 'cancelled', 'skipped', 'todo'] as const
const began = performance.now()

// A file may hang in a way that its time limit does not end: as when a program that it has started holds its output.
const patienceMs = 240_000
const watchdog = setTimeout(() => {
  tellFailures()
  console.error(`no test file has ended for ${patienceMs / 1000} s`)
  process.exit(1)
}, patienceMs)

await runAll()
const shaky = await runAgain()
clearTimeout(watchdog)
// The closing counts come last: everything that failed is told before the first of them.
tellFailures()
for (const file of shaky) console.log(`! ${file} failed beside others, and passed alone: see above`)
for (const [name, count] of Object.entries(counts)) console.log(`ℹ ${name} ${count}`)
console.log(`ℹ duration_ms ${performance.now() - began}`)
process.exitCode = good ? 0 : 1

/** Begins a file as soon as there is one that can run beside the others. */
async function runAll(): Promise<void> {
  const order = new TestOrder(files)
  const running = new Set<Promise<void>>()
  for (;;) {
    for (let file = order.take(); file !== undefined; file = order.take()) {
      const own = file
      const ends = runFile(own).finally(() => {
        order.ended(own)
        running.delete(ends)
      })
      running.add(ends)
    }
    if (running.size === 0) return
    await Promise.race(running)
  }
}

/**
 * Programs and sockets on a machine that is busy with others miss times that they keep alone. What only decides fails
 * again, since its clock and its dice are the test's.
 * @returns files that passed then
 */
async function runAgain(): Promise<string[]> {
  const again = [...failed].map((file) => relative(root, file))
  if (named || again.length === 0 || again.length > mostAgain) return []
  tellFailures()
  const first = { ...counts }
  good = true
  failures.length = 0
  failed.clear()
  const mended: string[] = []
  for (const file of again) {
    console.log(`once more, alone: ${file}`)
    written.delete(root + file)
    await runFile(file)
    if (!failed.has(root + file)) mended.push(file)
  }
  // These were counted before.
  const { fail } = counts
  Object.assign(counts, first, {
    fail: fail - first.fail,
    pass: first.pass + first.fail - (fail - first.fail),
  })
  return mended
}

async function runFile(path: string): Promise<void> {
  const events = run({
    files: [root + path],
    // A file that hangs is ended and counted as failed.
    timeout: 180_000,
  })
  for await (const event of events) {
    if (event.type === 'test:stdout' || event.type === 'test:stderr') {
      const { file = '', message } = event.data
      written.set(file, (written.get(file) ?? '') + message)
    } else if (event.type === 'test:complete' && event.data.name === event.data.file) {
      tellFile(event.data)
    } else if (event.type === 'test:fail') {
      failed.add(event.data.file ?? '')
      const error: Error & { failureType?: string } = event.data.details.error
      // A suite fails because something in it did, and that has been said.
      if (error.failureType === 'subtestsFailed') continue
      const where = `${relative(root, event.data.file ?? '')}:${event.data.line ?? 1}`
      failures.push(`✖ ${event.data.name} (${where})\n${inspect(error.cause ?? error)}`)
    } else if (event.type === 'test:summary' && event.data.file === undefined) {
      good &&= event.data.success
      const { passed, failed } = event.data.counts
      counts.pass += passed
      counts.fail += failed
      for (const name of sameNames) counts[name] += event.data.counts[name]
    }
  }
}

function tellFile({
  details,
  file = '',
}: {
  details: { duration_ms?: number; passed: boolean }
  file?: string
}) {
  watchdog.refresh()
  ended += 1
  const took = `${((details.duration_ms ?? 0) / 1000).toFixed(1)} s`
  const verdict = details.passed ? '' : '  FAILED'
  console.log(`[${String(ended).padStart(3)}/${files.length}] ${relative(root, file)}  ${took}${verdict}`)
}

function tellFailures(): void {
  for (const file of failed) {
    const text = written.get(file)?.trimEnd()
    if (text) console.log(`\nwritten by ${relative(root, file)}:\n${text}`)
  }
  for (const failure of failures) console.log(`\n${failure}`)
  if (failures.length > 0) console.log()
}
