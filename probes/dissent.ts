import type { ProbeRecord } from './record.ts'

/** How long an instance whose failure was contradicted leaves the peer to the others at first, intervals. */
const firstPause = 10
/** The pause doubles as often as it is wrong again, up to so many milliseconds, or the first one where that is longer. */
const longestPauseMs = 600_000

/** A pass within so many intervals speaks against a failure; after more the peer may have come back. */
const speaksAgainst = 1.5
/** Beside that, milliseconds: the way over Redis, and the moment that a second opinion waits for. */
const onTheWayMs = 500

/**
 * Whether this instance's word on a peer is worth anything. One whose own way to a peer is broken would take it from
 * all others again and again: so one that fails where another passes takes no turns for a while, and until a success of
 * its own it keeps a failure to itself where others answer.
 */
export class Dissent {
  /** Failures of this instance that make up the whole streak of failures; 0: there is none, or others have failed, too. */
  #alone = 0
  /** When the last of them came, by the server's clock. */
  #failedAt = 0
  /** Last pause, 0: it has not been contradicted since its last success. */
  #pauseMs = 0
  #until = Number.NEGATIVE_INFINITY

  /** Whether it has been contradicted since its last success. */
  get doubted(): boolean {
    return this.#pauseMs > 0
  }

  /** For how long it still takes no turn, milliseconds; 0: it does. @param now monotonic milliseconds */
  pauseLeft(now: number): number {
    return Math.max(0, this.#until - now)
  }

  /**
   * Takes in a result of the fleet.
   * @param mine whether this instance has asked
   * @returns whether that is the first time since its last success that it was contradicted
   */
  hear(record: ProbeRecord, mine: boolean, interval: number, now: number): boolean {
    const { streak, before, at } = record
    if (mine) {
      if (streak > 0) {
        this.#alone = this.#pauseMs = 0
        this.#until = Number.NEGATIVE_INFINITY
      } else {
        this.#alone = streak === -1 || -streak === this.#alone + 1 ? -streak : 0
        this.#failedAt = at
      }
      return false
    }
    const spoken = at - this.#failedAt <= speaksAgainst * interval + onTheWayMs
    const contradicted = streak > 0 && this.#alone > 0 && before === -this.#alone && spoken
    this.#alone = 0
    if (!contradicted) return false
    const first = !this.doubted
    this.pause(interval, now)
    return first
  }

  /** Leaves the peer to the others, for longer than before. */
  pause(interval: number, now: number): void {
    const first = firstPause * interval
    this.#pauseMs = this.doubted ? Math.max(first, Math.min(2 * this.#pauseMs, longestPauseMs)) : first
    this.#until = now + this.#pauseMs
  }
}
