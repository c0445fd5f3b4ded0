import { closeSync, existsSync, openSync, readSync, renameSync, rmSync } from 'node:fs'
import { now } from './deed.ts'

/** How long a file that was moved away may still be written to, milliseconds. */
const lingerMs = 3000

interface Part {
  readonly path: string
  readonly fd: number
  at: number
  rest: string
  /** When it was moved away. */
  movedAt: number | undefined
}

/** Reads an access log of JSON as it is written, over rotations, so that no line is missed and none of it has to be kept. */
export class AccessLogReader<T> {
  readonly #path: string
  readonly #take: (record: T) => void
  readonly #buffer = Buffer.alloc(1024 * 1024)
  #parts: Part[] = []
  #serial = 0

  constructor(path: string, take: (record: T) => void) {
    this.#path = path
    this.#take = take
  }

  /** Moves the file away; the program has to be told to open it anew. */
  rotate(): void {
    this.read()
    const part = this.#parts.at(-1)
    if (!part || part.movedAt !== undefined) return
    renameSync(this.#path, `${this.#path}.${this.#serial++}`)
    part.movedAt = now()
  }

  /** Reads what was written since. */
  read(): void {
    const last = this.#parts.at(-1)
    if ((!last || last.movedAt !== undefined) && existsSync(this.#path)) {
      this.#parts.push({
        path: this.#path,
        fd: openSync(this.#path, 'r'),
        at: 0,
        rest: '',
        movedAt: undefined,
      })
    }
    for (const part of this.#parts) {
      for (;;) {
        const count = readSync(part.fd, this.#buffer, 0, this.#buffer.length, part.at)
        if (count === 0) break
        part.at += count
        const lines = (part.rest + this.#buffer.toString('latin1', 0, count)).split('\n')
        part.rest = lines.pop()!
        // The format is the configuration's, whoever reads it knows it.
        for (const line of lines) this.#take(JSON.parse(line) as T)
      }
    }
    const old = this.#parts.filter(({ movedAt }) => movedAt !== undefined && now() - movedAt > lingerMs)
    for (const part of old) closeSync(part.fd)
    if (old.length === 0) return
    this.#parts = this.#parts.filter((part) => !old.includes(part))
    for (let i = 0; i < this.#serial - 1; i += 1) rmSync(`${this.#path}.${i}`, { force: true })
  }

  close(): void {
    for (const { fd } of this.#parts) closeSync(fd)
    this.#parts = []
  }
}
