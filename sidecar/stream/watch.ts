import { monotonic } from '../../feedback/clock.ts'
import { afterReading } from '../net/late.ts'

/** Something with a deadline that may move. */
export interface Dated {
  /** Monotonic milliseconds. */
  readonly due: number
  /** The moment has come. */
  late(now: number): void
  /** Puts it off by so many milliseconds, in which nobody could do anything. Left out: it is looked at again at once. */
  forgive?(ms: number): void
  /** Counts what has passed since it was last asked to; about once a second. */
  count?(now: number): void
}

/** Two looks are so far apart at least, milliseconds: many deadlines that lie close together are one look's. */
const leastMs = 5
const mostMs = 1000
/** A look that is so much later than it was to be shows that the process could not run meanwhile. */
const heldUpMs = 1000
/** What has passed is counted so often, milliseconds. */
const countMs = 900

/**
 * Looks after the deadlines of thousands with one timer. What happens only moves a mark, which is looked at when the
 * deadline before it has come.
 */
export class Watch {
  readonly #all: ReadonlySet<Dated>
  #timer: NodeJS.Timeout | undefined = undefined
  /** When the next look is to be. */
  #at = Number.POSITIVE_INFINITY
  /** When that was put down. */
  #setAt = 0
  #countedAt = 0

  /** @param all those that are looked after */
  constructor(all: ReadonlySet<Dated>) {
    this.#all = all
  }

  /** There is a deadline that may come before all others. */
  expect(at: number): void {
    if (at >= this.#at) return
    const now = monotonic()
    // A timer of weeks is too long for the system.
    const next = Math.max(Math.min(at, now + mostMs), now + leastMs)
    if (next >= this.#at) return
    this.#set(next, now)
  }

  #set(at: number, now: number): void {
    clearTimeout(this.#timer)
    this.#at = at
    this.#setAt = now
    this.#timer = setTimeout(() => this.#come(), Math.ceil(at - now)).unref()
  }

  /** What has come in meanwhile is read before anybody is judged. */
  #come(): void {
    const now = monotonic()
    // When it stopped running is not known: at the earliest when the look was put down.
    const lost = now - this.#at > heldUpMs ? now - this.#setAt : 0
    afterReading(() => this.#look(lost))
  }

  /** @param lost milliseconds in which the process could not run */
  #look(lost: number): void {
    const now = monotonic()
    this.#at = Number.POSITIVE_INFINITY
    if (this.#all.size === 0) return
    let next = now + mostMs
    const counts = now - this.#countedAt >= countMs
    if (counts) this.#countedAt = now
    for (const one of this.#all) {
      if (lost > 0) one.forgive?.(lost)
      else if (one.due <= now) one.late(now)
      if (counts) one.count?.(now)
      // It may have a later one now.
      next = Math.min(next, one.due)
    }
    this.#set(Math.max(next, now + leastMs), now)
  }
}
