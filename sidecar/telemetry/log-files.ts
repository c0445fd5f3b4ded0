import { setTimeout as wait } from 'node:timers/promises'
import { LogFile } from './log-file.ts'

/** How long log files have for their last lines at the end, milliseconds. */
export const lastLinesMs = 300

/** All log files of the process: one of a path, shared by all logs that go there. */
export class LogFiles {
  readonly #files = new Map<string, LogFile>()
  /** Told that lines of a file are lost, and that one could not be opened anew. */
  trouble: (text: string) => void = () => {}

  /**
   * @param path absolute; `stdout`, `stderr` and what Linux calls them are the standard streams
   * @throws Error `open() "…" failed (2: No such file or directory)`
   */
  open(path: string): LogFile {
    const name = canonical(path)
    let file = this.#files.get(name)
    if (!file) {
      file = new LogFile(name, (text) => this.trouble(text))
      this.#files.set(name, file)
    }
    return file
  }

  /** Opens every file anew, as after a rotation. One that cannot be opened stays as it is, and that is told. */
  reopen(): void {
    for (const file of this.#files.values()) {
      const failure = file.reopen()
      if (failure !== undefined) this.trouble(failure)
    }
  }

  /** Gives back what a new configuration does not name. A late line to such a file still arrives. */
  keepOnly(paths: Iterable<string>): void {
    const kept = new Set([...paths].map(canonical))
    for (const [name, file] of this.#files) {
      if (kept.has(name)) continue
      file.close()
      this.#dropped += file.dropped
      this.#files.delete(name)
    }
  }

  /** Lines lost so far, by all files. */
  get dropped(): number {
    let sum = this.#dropped
    for (const file of this.#files.values()) sum += file.dropped
    return sum
  }
  #dropped = 0

  /**
   * Waits until everything is written, for so long at most: a write in the background is lost with the thread that
   * began it. What waits after that is written at once, as far as somebody takes it.
   */
  async settle(ms: number): Promise<void> {
    const until = performance.now() + ms
    while ([...this.#files.values()].some((file) => file.busy) && performance.now() < until) await wait(2)
    this.flushSync()
  }

  flushSync(): void {
    for (const file of this.#files.values()) file.flushSync()
  }
}

const aliases: ReadonlyMap<string, string> = new Map([
  ['stdout', '/dev/stdout'],
  ['/dev/fd/1', '/dev/stdout'],
  ['/proc/self/fd/1', '/dev/stdout'],
  ['stderr', '/dev/stderr'],
  ['/dev/fd/2', '/dev/stderr'],
  ['/proc/self/fd/2', '/dev/stderr'],
])

function canonical(path: string): string {
  return aliases.get(path) ?? path
}

/** The process's own. What waits when the process ends is written then. */
export const logFiles = new LogFiles()
process.on('exit', () => logFiles.flushSync())
