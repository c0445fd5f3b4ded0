/** Time, and something to wait for a moment with. */
export interface Timers {
  /** Monotonic milliseconds. */
  now(): number
  /**
   * Runs something once, after so many milliseconds.
   * @returns keeps it from running
   */
  after(ms: number, run: () => void): () => void
}

/** What comes up again and again, each in its own rhythm. */
export interface Recurring {
  /** Monotonic milliseconds. */
  dueAt: number
  /** Milliseconds, more than 0. */
  readonly interval: number
}

/**
 * How many are told of in one go. Then whatever else the process does has as long as what came of them has taken: where
 * more is due than can be done it comes late, and the requests of clients do not.
 */
const most = 64

/**
 * Says when each of many is due, with one timer for all of them: it waits for whoever is next. One that comes late,
 * as after a pause of the process, comes once and not as often as it was missed, and keeps its rhythm.
 */
export class DueQueue<T extends Recurring> {
  readonly #timers: Timers
  readonly #due: (item: T) => void
  /** By when they are due; the last is the next. */
  #items: T[] = []
  #cancel: (() => void) | undefined
  #wakeAt = Number.POSITIVE_INFINITY
  #restUntil = Number.NEGATIVE_INFINITY

  /** @param due is told of each; must not throw, nor change the queue */
  constructor(timers: Timers, due: (item: T) => void) {
    this.#timers = timers
    this.#due = due
  }

  get items(): readonly T[] {
    return this.#items
  }

  /** Puts others in the place of all that are in it. */
  use(items: readonly T[]): void {
    this.#items = items.toSorted((a, b) => b.dueAt - a.dueAt)
    this.#arm()
  }

  /** Has one of them come up at another moment than it would. @param dueAt monotonic milliseconds */
  put(item: T, dueAt: number): void {
    const at = this.#items.indexOf(item, this.#place(item.dueAt))
    if (at < 0) return
    this.#items.splice(at, 1)
    item.dueAt = dueAt
    this.#insert(item)
    // One that rests goes on by itself.
    if (!Number.isNaN(this.#wakeAt)) this.#arm()
  }

  #arm(): void {
    const next = Math.max(this.#restUntil, this.#items.at(-1)?.dueAt ?? Number.POSITIVE_INFINITY)
    if (next === this.#wakeAt) return
    this.#cancel?.()
    this.#cancel = undefined
    this.#wakeAt = next
    if (next === Number.POSITIVE_INFINITY) return
    this.#cancel = this.#timers.after(Math.max(0, next - this.#timers.now()), () => this.#wake())
  }

  #wake(): void {
    this.#wakeAt = Number.POSITIVE_INFINITY
    this.#cancel = undefined
    const now = this.#timers.now()
    for (let told = 0; ; told++) {
      const next = this.#items.at(-1)
      if (next === undefined || next.dueAt > now) break
      if (told === most) {
        this.#rest(now)
        return
      }
      this.#items.pop()
      next.dueAt += next.interval * (1 + Math.floor((now - next.dueAt) / next.interval))
      this.#insert(next)
      this.#due(next)
    }
    this.#arm()
  }

  /** Pauses as long as what has been begun since a moment takes, which only the next turn of the loop can tell. */
  #rest(since: number): void {
    this.#wakeAt = Number.NaN
    this.#cancel = this.#timers.after(0, () => {
      const now = this.#timers.now()
      this.#cancel = undefined
      this.#restUntil = now + (now - since)
      this.#arm()
    })
  }

  #insert(item: T): void {
    // Of equals the one that was there first comes first.
    this.#items.splice(this.#place(item.dueAt), 0, item)
  }

  /** The first place whose item is not due after a moment. */
  #place(dueAt: number): number {
    const items = this.#items
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (items[middle]!.dueAt > dueAt) low = middle + 1
      else high = middle
    }
    return low
  }
}
