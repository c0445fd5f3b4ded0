import { threadId } from 'node:worker_threads'
import { bytes } from '../../feedback/bytes.ts'
import { logTime } from '../../feedback/variables/clock.ts'
import type { LogFile } from './log-file.ts'
import { type LogFiles, logFiles } from './log-files.ts'

/** nginx's levels, the least important first. */
export const levels = ['debug', 'info', 'notice', 'warn', 'error', 'crit', 'alert', 'emerg'] as const
export type Level = (typeof levels)[number]

/** One `error_log`. */
export interface ErrorLogSpec {
  /** Absolute; `stderr` is the standard error stream. */
  readonly path: string
  /** The least important level that is written; `error` where absent, as in nginx. */
  readonly level?: Level
}

const defaultLog: ErrorLogSpec = { path: 'stderr', level: 'notice' }

/** Longest text of a line, in characters: one line must not fill a log. */
const mostText = 4000

/**
 * The error log: lines as nginx writes them, `2026/11/30 10:00:00 [error] 123#0: text`, to every `error_log` whose level
 * admits them. Until it is told otherwise it writes to standard error from `notice` on: nginx's default is `error`, but
 * what a start has to say (what is listened on, which directives have no effect) must be seen by whoever starts it.
 */
export class ErrorLog {
  readonly #files: LogFiles
  #outputs: { readonly file: LogFile; readonly least: number }[] = []
  #least: number = levels.length

  constructor(files: LogFiles = logFiles) {
    this.#files = files
    this.configure([])
  }

  /**
   * Writes from now on to these alone; to the default where there are none.
   * @throws Error when a file cannot be opened; then everything stays as it was
   */
  configure(specs: readonly ErrorLogSpec[]): void {
    const asked = specs.length > 0 ? specs : [defaultLog]
    const outputs = asked.map(({ path, level = 'error' }) => ({
      file: this.#files.open(path),
      least: levels.indexOf(level),
    }))
    this.#outputs = outputs
    this.#least = Math.min(levels.length, ...outputs.map(({ least }) => least))
  }

  /** Whether anything would be written: for callers whose text is dear to make. */
  admits(level: Level): boolean {
    return levels.indexOf(level) >= this.#least
  }

  /** @param text any; control characters in it are escaped, and a very long one is cut */
  log(level: Level, text: string): void {
    const rank = levels.indexOf(level)
    if (rank < this.#least) return
    const cut = text.length > mostText ? `${text.slice(0, mostText)}...` : text
    const safe = bytes(cut).replace(/[\x00-\x1f\x7f]/g, hex)
    const line = `${logTime(Date.now())} [${level}] ${process.pid}#${threadId}: ${safe}\n`
    for (const { file, least } of this.#outputs) if (rank >= least) file.write(line)
  }
}

function hex(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}

/** The process's own. Trouble with log files is told here; trouble with its own file can only be counted. */
export const errorLog = new ErrorLog()
logFiles.trouble = (text) => errorLog.log('alert', text)
