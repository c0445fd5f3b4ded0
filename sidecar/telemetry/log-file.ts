import { closeSync, write as writeLater, writeSync } from 'node:fs'
import { monotonic } from '../../feedback/clock.ts'
import { countLines, LogLosses } from './log-losses.ts'
import { isFull, nap, openSink, type Sink, standard, writeAll } from './log-sink.ts'
import { PipeTurn } from './pipe-turns.ts'
import { failureText } from './system-error.ts'

/** Characters that may wait while a file takes no more; lines beyond are dropped and counted. */
const mostPending = 1024 * 1024
/** Waiting characters that are written at once and not at the end of the event loop's turn. */
const enough = 16 * 1024
/** Milliseconds between two writes of a file that gets lines all the time; what comes after a rest is written at once. */
const gatherMs = 10
/** A pipe takes so many bytes as one: lines of several threads, or processes, do not mix then (Linux's PIPE_BUF). */
const pipeUnit = 4096
/** After how many milliseconds a full pipe is tried again. */
const fullPipeMs = 5
/** And after how many one at which it is another thread's turn. */
const turnMs = 1

const lineFeed = Buffer.from('\n')

/**
 * One log file: takes whole lines and never makes its caller wait or fail. Lines are gathered and written together, at
 * the end of the event loop's turn or, where they come all the time, a hundred times a second. What cannot be written is
 * dropped and counted.
 */
export class LogFile {
  /** As opened; standard streams are `/dev/stdout` and `/dev/stderr`. */
  readonly path: string
  readonly #losses: LogLosses
  #sink: Sink | undefined
  #pending = ''
  /** What a pipe has not taken, and whether it has taken a part of the same line. */
  #rest: Buffer | undefined
  #begun = false
  readonly #turn: PipeTurn
  #scheduled = false
  /** When waiting lines were last written; monotonic milliseconds. */
  #flushedAt = 0
  #writing = false
  /** Part of a line was written and the rest was lost: the next one must not begin in its midst. */
  #torn = false
  /** Descriptors given up while a write in the background still needs them. */
  readonly #closing = new Set<number>()

  /**
   * @param path absolute, `/dev/stdout` or `/dev/stderr`
   * @param trouble told, at most once a minute, that lines are lost, and then that they are not any more
   * @throws Error `open() "…" failed (2: No such file or directory)`
   */
  constructor(path: string, trouble: (text: string) => void = () => {}) {
    this.path = path
    this.#turn = new PipeTurn(path)
    this.#losses = new LogLosses(path, trouble)
    this.#sink = openSink(path)
  }

  /** Lines lost so far. */
  get dropped(): number {
    return this.#losses.count
  }

  /** @param line latin1, with its line feed */
  write(line: string): void {
    if (this.#pending.length + line.length > mostPending) {
      this.#losses.add(1, `"${this.path}" takes nothing`)
      return
    }
    this.#pending += line
    if (this.#writing || this.#scheduled) {
      if (this.#pending.length < enough || this.#writing) return
      this.#flush()
      return
    }
    this.#schedule()
  }

  #schedule(): void {
    this.#scheduled = true
    const flush = () => {
      this.#scheduled = false
      this.#flush()
    }
    // At the end of the process `flushSync` writes what waits.
    if (monotonic() - this.#flushedAt < gatherMs) setTimeout(flush, gatherMs).unref()
    else setImmediate(flush)
  }

  /**
   * Opens the path anew, as after a rotation. What waits goes to the old file first.
   * @returns what went wrong; then the old file stays in use
   */
  reopen(): string | undefined {
    if (standard(this.path) !== undefined) return undefined
    this.flushSync()
    try {
      const next = openSink(this.path)
      this.#release()
      this.#sink = next
      this.#torn = false
      return undefined
    } catch (error) {
      return failureText(error)
    }
  }

  /** Whether anything waits or is being written. */
  get busy(): boolean {
    return this.#writing || this.#pending !== '' || this.#rest !== undefined
  }

  /** Writes what waits now, even if that takes a moment (a tenth of a second at most): for the end of the process. */
  flushSync(): void {
    const sink = this.#opened()
    const until = performance.now() + 100
    if (sink?.kind === 'pipe') while (!this.#takeTurn() && performance.now() < until) nap()
    for (;;) {
      const data = this.#rest ?? this.#take(sink?.kind === 'file' ? mostPending : pipeUnit)
      this.#rest = undefined
      if (data.length === 0) break
      if (!sink) continue
      const lost = countLines(data.subarray(writeAll(sink.fd, data, until)))
      if (lost > 0) this.#losses.add(lost, `"${this.path}" takes nothing`)
    }
    this.#begun = false
    this.#turn.free()
  }

  /** Writes what waits and gives the file back; the next line opens it again. */
  close(): void {
    this.flushSync()
    this.#release()
  }

  #release(): void {
    const sink = this.#sink
    this.#sink = undefined
    if (!sink?.own) return
    if (this.#writing) this.#closing.add(sink.fd)
    else closeSync(sink.fd)
  }

  /** The sink, opened where it is needed and was given back; undefined when it cannot be, and what waits is lost. */
  #opened(): Sink | undefined {
    if (this.#sink !== undefined || this.#pending === '') return this.#sink
    try {
      this.#sink = openSink(this.path)
    } catch (error) {
      this.#fail(error, this.#take(mostPending + 1))
    }
    return this.#sink
  }

  #flush(): void {
    if (this.#writing) return
    this.#flushedAt = monotonic()
    const sink = this.#opened()
    if (sink?.kind === 'pipe') this.#flushPipe(sink.fd)
    else if (sink && this.#pending !== '') this.#flushLater(sink)
  }

  #flushPipe(fd: number): void {
    if (!this.#takeTurn()) {
      this.#later(turnMs)
      return
    }
    for (;;) {
      const data = this.#rest ?? this.#take(pipeUnit)
      if (data.length === 0) break
      this.#turn.mark(this.#begun || data.length > pipeUnit)
      this.#rest = undefined
      try {
        const written = writeSync(fd, data)
        this.#begun = written < data.length
        if (this.#begun) this.#rest = data.subarray(written)
        else this.#losses.over()
      } catch (error) {
        if (isFull(error)) {
          this.#rest = data
          this.#later(fullPipeMs)
          break
        }
        this.#begun = false
        this.#fail(error, data)
      }
    }
    if (!this.#begun) this.#turn.free()
  }

  #takeTurn(): boolean {
    const turn = this.#turn.take()
    if (turn !== 'torn') return turn
    // Another thread has died in the midst of a line.
    if (this.#rest === undefined) this.#torn = true
    else this.#rest = Buffer.concat([lineFeed, this.#rest])
    return true
  }

  #later(ms: number): void {
    this.#writing = true
    // A reader that has stopped must not keep the process alive.
    setTimeout(() => this.#written(), ms).unref()
  }

  #flushLater(sink: Exclude<Sink, { kind: 'pipe' }>): void {
    this.#writing = true
    const data = this.#take(mostPending)
    if (sink.kind === 'stream') {
      sink.stream.write(data, (error) => {
        if (error) this.#fail(error, data)
        else this.#losses.over()
        this.#written()
      })
      return
    }
    const go = (rest: Buffer) => {
      writeLater(sink.fd, rest, 0, rest.length, null, (error, written) => {
        if (error) this.#fail(error, rest, rest.length < data.length)
        else if (written < rest.length) return go(rest.subarray(written))
        else this.#losses.over()
        this.#written()
      })
    }
    go(data)
  }

  #written(): void {
    this.#writing = false
    for (const fd of this.#closing) closeSync(fd)
    this.#closing.clear()
    if (this.#rest !== undefined || this.#pending.length >= enough) this.#flush()
    else if (this.#pending !== '' && !this.#scheduled) this.#schedule()
  }

  /** Takes whole lines off what waits: as many as fit into `most` bytes, and at least one. */
  #take(most: number): Buffer {
    let text = this.#pending
    if (text.length > most) {
      const end = text.lastIndexOf('\n', most - 1)
      text = text.slice(0, (end < 0 ? text.indexOf('\n', most) : end) + 1)
    }
    this.#pending = this.#pending.slice(text.length)
    if (this.#torn && text !== '') {
      this.#torn = false
      text = `\n${text}`
    }
    return Buffer.from(text, 'latin1')
  }

  #fail(error: unknown, lost: Buffer, partly = false): void {
    // It stays so where not even the line feed that was to mend it could be written.
    if (partly || lost[0] === 10) this.#torn = true
    this.#losses.add(
      countLines(lost) - (lost[0] === 10 ? 1 : 0),
      `write() to "${this.path}" failed (${failureText(error)})`,
    )
  }
}
