// Which test files a run has.

import { globSync } from 'node:fs'
import { neededBy } from './ensure.ts'
import { judgesTimes } from './test-order.ts'

/** The long runs that have scripts of their own, in small. */
const longRuns = /^test\/(?:bench|fuzz|soak)\//

/** Tests that have the program under load for as long as they last. */
const loads = /^test\/system\/(?:churn|discovery-load|mixture|cases\/(?:queue-herd|shadow))\./

/**
 * Whether a file needs more than Node, as programs of others or a browser or a machine at rest, is a long run in small, or
 * puts the program under load.
 */
export function isIntegration(file: string): boolean {
  return longRuns.test(file) || loads.test(file) || judgesTimes(file) || neededBy([file]).length > 0
}

/**
 * @param args of the command line: `--integration` for the files that need more than Node, `--all` for these and all others, or
 *   words, of which one is to be in the path; nothing: all that need only Node
 * @returns sorted paths; none where nothing fits
 * @throws where an option is unknown
 */
export function chosenFiles(args: readonly string[]): string[] {
  const options = args.filter((arg) => arg.startsWith('-'))
  const words = args.filter((arg) => !arg.startsWith('-'))
  const unknown = options.find((option) => option !== '--integration' && option !== '--all')
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}: there are --integration and --all`)
  const files = globSync('test/**/*.test.ts')
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort()
  if (options.includes('--integration')) return files.filter(isIntegration)
  if (options.includes('--all') || words.length > 0) return files
  return files.filter((file) => !isIntegration(file))
}
