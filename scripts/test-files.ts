// Which test files a run has.

import { globSync } from 'node:fs'
import { neededBy, type Program } from './ensure.ts'

/** What takes minutes to install, or some seconds to start each time. */
const servers: ReadonlySet<Program> = new Set(['redis-server', 'chromium', 'prometheus', 'promtool'])

/** Whether a file tries the program beside servers of others, or in a browser. */
export function isIntegration(file: string): boolean {
  return neededBy([file]).some((program) => servers.has(program))
}

/**
 * @param args of the command line: `--integration` for the files that need servers of others or a browser, `--all` for
 *   these and all others, or words, of which one is to be in the path; nothing: all that need no such servers
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
