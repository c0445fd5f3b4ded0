import { monotonic } from '../feedback/clock.ts'
import { answer } from './answer.ts'
import type { Answer, Asking } from './probe.ts'

/** What a peer says that has no form of its own: bytes of a connection, or datagrams. */
export class Heard {
  readonly #startedAt: number
  readonly #connectMs: number | undefined
  readonly #most: number
  readonly #holds: Asking['holds']
  readonly #pieces: Buffer[] = []
  #length = 0
  #headerMs: number | undefined

  /**
   * @param startedAt monotonic milliseconds
   * @param connectMs undefined where there is no connection
   * @param most bytes that are kept
   * @param holds what has to hold for it to be enough; undefined: the first byte, or datagram, is
   */
  constructor(startedAt: number, connectMs: number | undefined, most: number, holds: Asking['holds']) {
    this.#startedAt = startedAt
    this.#connectMs = connectMs
    this.#most = most
    this.#holds = holds
  }

  /** Whether anything came. */
  get any(): boolean {
    return this.#headerMs !== undefined
  }

  /** @returns whether nothing that may come yet could change the verdict */
  take(piece: Buffer): boolean {
    this.#headerMs ??= monotonic() - this.#startedAt
    const kept = piece.subarray(0, this.#most - this.#length)
    // What is read lies in memory that the next read uses again.
    if (kept.length > 0) this.#pieces.push(Buffer.from(kept))
    this.#length += kept.length
    return this.#holds === undefined || this.#holds(this.answer()) || this.#length >= this.#most
  }

  /** What came so far is an answer; the test, where there is one, judges it. */
  answer(seen: Partial<Answer> = {}): Answer {
    return answer(this.#startedAt, {
      passed: true,
      body: Buffer.concat(this.#pieces).toString('latin1'),
      connectMs: this.#connectMs,
      headerMs: this.#headerMs,
      detail: this.any ? `${this.#length} ${this.#length === 1 ? 'byte' : 'bytes'} came` : '',
      ...seen,
    })
  }
}
