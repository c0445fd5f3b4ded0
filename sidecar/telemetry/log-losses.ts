/** Trouble with one file is told of once in so many milliseconds. */
const troubleMs = 60_000

/** Lines that one log file has lost, and what is said of that: once as it begins, and once as it is over. */
export class LogLosses {
  /** Lines lost so far. */
  count = 0
  readonly #path: string
  readonly #trouble: (text: string) => void
  #toldAt = Number.NEGATIVE_INFINITY
  /** Whether it was told that lines are lost, and not yet that they are not. */
  #told = false
  /** How many were lost when it was last said how many. */
  #said = 0

  constructor(path: string, trouble: (text: string) => void) {
    this.#path = path
    this.#trouble = trouble
  }

  /** @param why for people: what has happened to the file */
  add(lines: number, why: string): void {
    this.count += lines
    const now = performance.now()
    if (now - this.#toldAt < troubleMs) return
    this.#toldAt = now
    this.#told = true
    this.#trouble(`${why}, lines are dropped`)
  }

  /** Something was written. */
  over(): void {
    if (!this.#told) return
    this.#told = false
    const lost = this.count - this.#said
    this.#said = this.count
    this.#trouble(`"${this.#path}" is written to again, ${lost} lines were dropped`)
  }
}

/** How many lines end in it. */
export function countLines(data: Buffer): number {
  let lines = 0
  for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, at + 1)) lines += 1
  return lines
}
