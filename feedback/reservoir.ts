/** How many minutes are looked back on at most. */
export const reservoirMinutes = 60
/** Times that are kept of each minute. */
export const reservoirSize = 1000

/** Numbers of a minute before its times: which minute it is, attempts, errors among them, times that came. */
const cell = 4

/** What is known of a minute. */
export interface Minute {
  /** Minutes of the wall clock since 1970. */
  readonly minute: number
  /** Attempts that said success or failure. */
  readonly attempts: number
  /** Failures, and answers of 500 and above. */
  readonly errors: number
  /** Times that came; more than are kept, where a minute had more than `reservoirSize`. */
  readonly timed: number
  /** The kept ones, milliseconds: a random sample of all, all equally likely. Read only. */
  readonly times: Float32Array
}

/**
 * A sample of how attempts ended in each of the last minutes, for comparing two tracks. It lies in shared memory;
 * where several threads write to it, they do so one at a time (under the lock of the group's zone).
 */
export class Reservoir {
  readonly buffer: SharedArrayBuffer
  readonly #cells: Float64Array
  readonly #times: Float32Array

  /** @param buffer of another thread's; undefined makes one */
  constructor(buffer?: SharedArrayBuffer) {
    const cells = 8 * cell * reservoirMinutes
    this.buffer = buffer ?? new SharedArrayBuffer(cells + 4 * reservoirSize * reservoirMinutes)
    this.#cells = new Float64Array(this.buffer, 0, cell * reservoirMinutes)
    this.#times = new Float32Array(this.buffer, cells)
  }

  /**
   * Takes in how an attempt ended.
   * @param ms its time; undefined where it has none to tell
   * @param wallAt milliseconds of the wall clock
   * @param random uniform in [0, 1)
   */
  add(failed: boolean, ms: number | undefined, wallAt: number, random: () => number): void {
    const minute = Math.floor(wallAt / 60_000)
    const place = minute % reservoirMinutes
    const at = cell * place
    const cells = this.#cells
    if (cells[at] !== minute) {
      cells.fill(0, at, at + cell)
      cells[at] = minute
    }
    cells[at + 1]! += 1
    if (failed) cells[at + 2]! += 1
    if (ms === undefined) return
    const came = cells[at + 3]!
    cells[at + 3] = came + 1
    // Algorithm R (Vitter, 1985): the n-th takes a place with the chance that each kept one has of being among them.
    const slot = came < reservoirSize ? came : Math.floor(random() * (came + 1))
    if (slot < reservoirSize) this.#times[reservoirSize * place + slot] = ms
  }

  /**
   * The minutes from one on to another, the last included, in order; those in which nothing happened are left out.
   * @param from minutes of the wall clock since 1970
   */
  minutes(from: number, to: number): Minute[] {
    const found: Minute[] = []
    for (let minute = Math.max(from, to - reservoirMinutes + 1); minute <= to; minute++) {
      const place = minute % reservoirMinutes
      const at = cell * place
      if (this.#cells[at] !== minute || this.#cells[at + 1] === 0) continue
      const timed = this.#cells[at + 3]!
      const start = reservoirSize * place
      found.push({
        minute,
        attempts: this.#cells[at + 1]!,
        errors: this.#cells[at + 2]!,
        timed,
        times: this.#times.subarray(start, start + Math.min(timed, reservoirSize)),
      })
    }
    return found
  }
}
