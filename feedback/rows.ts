/**
 * Numbers that every thread counts in a row of its own, so that nobody has to wait for anybody; who reads them adds
 * the rows up. The row of a thread that dies goes on with its successor.
 */
export class Rows {
  readonly buffer: SharedArrayBuffer
  readonly #rows: readonly Float64Array[]
  /** This thread's row. */
  readonly own: Float64Array

  /**
   * @param fields how many numbers a row has
   * @param threads how many rows, 1 or more
   * @param own which is this thread's, from 0
   * @param buffer of other threads' rows; undefined makes new ones
   */
  constructor(fields: number, threads = 1, own = 0, buffer?: SharedArrayBuffer) {
    // A cache line between two rows, or threads would slow each other down by writing beside one another.
    const stride = 8 * Math.ceil((fields + 8) / 8)
    this.buffer = buffer ?? new SharedArrayBuffer(8 * stride * threads)
    const count = Math.floor(this.buffer.byteLength / (8 * stride))
    this.#rows = Array.from(
      { length: count },
      (_, row) => new Float64Array(this.buffer, 8 * stride * row, fields),
    )
    const mine = this.#rows[own]
    if (mine === undefined) throw new Error(`there is no row ${own}`)
    this.own = mine
  }

  get threads(): number {
    return this.#rows.length
  }

  sum(field: number): number {
    let sum = 0
    for (const row of this.#rows) sum += row[field]!
    return sum
  }

  /** Clears numbers that go with their thread. */
  clear(row: number, fields: readonly number[]): void {
    const numbers = this.#rows[row]
    if (numbers !== undefined) for (const field of fields) numbers[field] = 0
  }
}
