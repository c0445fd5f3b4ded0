// Runs the tests, two files at a time: `npm test`, or `npm test -- test/feedback signals` for the files whose path
// contains one of the words. Says one line as each file ends, then what failed, then the closing counts.

import { globSync } from 'node:fs'
import { relative } from 'node:path'
import { run } from 'node:test'
import { inspect } from 'node:util'
import { ensure, neededBy } from './ensure.ts'

const root = new URL('..', import.meta.url).pathname
process.chdir(root)
// The program is started many times: what it compiles is kept, which halves the time of a start.
process.env['NODE_COMPILE_CACHE'] ??= `${root}node_modules/.cache/evenkeel`

const words = process.argv.slice(2)
const files = globSync('test/**/*.test.ts')
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${words.join(' ')}`)
  process.exit(1)
}

// Here rather than in a test, which would run into its time limit.
try {
  await ensure(neededBy(files), (text) => console.log(text))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}

/** What each file wrote: shown only when it fails, so that a good run is short. */
const written = new Map<string, string>()
const failures: string[] = []
const failed = new Set<string>()
let ended = 0
let good = true
/** The runner's closing counts, over all lanes. */
const counts = new Map<string, number>()

/** Tests of the fleet start many programs and look at times: they come last, by themselves, and the longest first. */
const waits = (file: string) => /\/fleet\/|bullmq/.test(file)
const long = (file: string) => /split|bullmq|fleet\/probes/.test(file)
const lanes = [
  { files: files.filter((file) => !waits(file)), concurrency: 2 },
  { files: files.filter(waits).sort((a, b) => Number(long(b)) - Number(long(a))), concurrency: 2 },
]

// A file may hang in a way that its time limit does not end: as when a program that it has started holds its output.
const patienceMs = 200_000
const watchdog = setTimeout(() => {
  tellFailures()
  console.error(`no test file has ended for ${patienceMs / 1000} s`)
  process.exit(1)
}, patienceMs)

for (const lane of lanes) if (lane.files.length > 0) await runLane(lane)
clearTimeout(watchdog)
// The closing counts come last: everything that failed is told before the first of them.
tellFailures()
for (const [name, count] of counts) console.log(`ℹ ${name} ${count}`)
process.exitCode = good ? 0 : 1

async function runLane({ files, concurrency }: { files: string[]; concurrency: number }): Promise<void> {
  const events = run({
    files: files.map((file) => root + file),
    concurrency,
    // A file that hangs is ended and counted as failed.
    timeout: 120_000,
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
    } else if (event.type === 'test:diagnostic' && event.data.nesting === 0) {
      const [name = '', count] = event.data.message.split(' ')
      counts.set(name, (counts.get(name) ?? 0) + Number(count))
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
