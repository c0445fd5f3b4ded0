import type { Call } from '../../feedback/call.ts'
import type { Variables } from '../../feedback/variables.ts'
import { jsonRecord } from './json-record.ts'
import { type LogFiles, logFiles } from './log-files.ts'
import { combined, compileFormat, type Escape, type LineFormat } from './log-format.ts'
import { sessionRecord } from './session-record.ts'

/** Takes the record of a finished request. */
export type AccessLog = (call: Call) => void

/** A `log_format` of the configuration. */
export interface NamedFormat {
  readonly name: string
  readonly escape?: Escape
  /** Its texts joined. */
  readonly format: string
}

/** What `access_log` says. */
export interface AccessLogSpec {
  /** Absolute; `stdout` and `/dev/stdout` are the standard output. */
  readonly path: string
  /** Name of a format; `json` where absent. */
  readonly format?: string
  /** Only requests for which this is neither empty nor `0`. */
  readonly if?: (call: Call) => string
}

/**
 * The access logs of one configuration. `combined` (nginx's) and `json` are known without being defined, and can be
 * defined otherwise.
 */
export class AccessLogs {
  readonly #formats: Map<string, LineFormat>
  readonly #files: LogFiles

  /**
   * @param kind whether they are of requests, or of sessions, for which there is `json` alone
   * @throws Error for an unknown variable, and for a name that is defined twice
   */
  constructor(
    variables: Variables,
    formats: readonly NamedFormat[],
    files: LogFiles = logFiles,
    kind: 'http' | 'stream' = 'http',
  ) {
    this.#files = files
    this.#formats = new Map([['json', kind === 'stream' ? sessionRecord : jsonRecord]])
    if (kind === 'http') this.#formats.set('combined', compileFormat(combined, 'default', variables))
    const names = new Set<string>()
    for (const { name, escape: mode = 'default', format } of formats) {
      if (names.has(name)) throw new Error(`duplicate "log_format" name "${name}"`)
      names.add(name)
      this.#formats.set(name, compileFormat(format, mode, variables))
    }
  }

  /**
   * Opens a log; the file is shared with others of the same path.
   * @throws Error for an unknown format and for a file that cannot be opened
   */
  open({ path, format = 'json', if: condition }: AccessLogSpec): AccessLog {
    const make = this.#formats.get(format)
    if (!make) throw new Error(`unknown log format "${format}"`)
    const file = this.#files.open(path)
    const log = (call: Call) => file.write(`${make(call)}\n`)
    if (condition === undefined) return log
    return (call) => {
      const value = condition(call)
      if (value !== '' && value !== '0') log(call)
    }
  }
}

/** Opens all logs anew, as after a rotation: access and error logs alike. */
export function reopenLogs(): void {
  logFiles.reopen()
}
