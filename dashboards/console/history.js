/*
 * Numbers over the last minutes, from which rates and shares over any span are worked out.
 */

/** How many states are remembered: five minutes of one a second. */
const remembered = 301
/** States closer to each other than this are one, milliseconds: the first of a new link may follow the last at once. */
const closest = 500
/** After a gap this long a line in a chart is not drawn through, milliseconds. */
export const gapMs = 3500

/** The moments of the states that are remembered, in a ring. */
export class History {
  times = new Float64Array(remembered).fill(Number.NaN)
  /** Where in the ring the last one is; -1: there is none. */
  slot = -1
  #filled = 0

  clear() {
    this.times.fill(Number.NaN)
    this.slot = -1
    this.#filled = 0
  }

  /**
   * Goes on to a moment.
   * @param {number} at
   * @returns {boolean} whether that is a place of its own, which has to be cleared of what was there
   */
  advance(at) {
    const fresh = this.slot < 0 || at - this.times[this.slot] >= closest
    if (fresh) {
      this.slot = (this.slot + 1) % remembered
      this.#filled = Math.min(remembered, this.#filled + 1)
    }
    this.times[this.slot] = at
    return fresh
  }

  /**
   * The places of the states within a span, the oldest first.
   * @param {number} ms
   * @returns {number[]}
   */
  slots(ms) {
    const found = []
    const since = this.times[this.slot] - ms - closest
    for (let back = this.#filled - 1; back >= 0; back--) {
      const slot = (this.slot - back + remembered) % remembered
      if (this.times[slot] >= since) found.push(slot)
    }
    return found
  }

  /**
   * The oldest state within a span of which something is known, without a gap from there to the last.
   * @param {number} ms
   * @param {Float64Array} column NaN where it is not known
   * @returns {number | undefined} undefined where there is none but the last
   */
  from(ms, column) {
    const { slot, times } = this
    const since = times[slot] - ms - closest
    let found
    for (let back = 1; back < this.#filled; back++) {
      const earlier = (slot - back + remembered) % remembered
      if (times[earlier] < since || Number.isNaN(column[earlier])) break
      found = earlier
    }
    return found
  }
}

/** Something that has numbers over time: a group or a peer. */
export class Tracked {
  /** @type {History} */
  history
  /** By name; NaN where a number was not told. @type {Map<string, Float64Array>} */
  #columns = new Map()

  /** @param {History} history */
  constructor(history) {
    this.history = history
  }

  /**
   * Notes a number of the last state.
   * @param {string} name
   * @param {number} value
   * @param {number} [slot]
   */
  keep(name, value, slot = this.history.slot) {
    let column = this.#columns.get(name)
    if (column === undefined) {
      column = new Float64Array(remembered).fill(Number.NaN)
      this.#columns.set(name, column)
    }
    column[slot] = value
  }

  /** Forgets what was at the place of the last state. */
  forget() {
    for (const column of this.#columns.values()) column[this.history.slot] = Number.NaN
  }

  /** Of a counter that was not told as long as it was 0: that it was. @param {string} name @param {string} known */
  fillIn(name, known) {
    const told = this.#columns.get(known)
    for (const slot of this.history.slots(Number.POSITIVE_INFINITY)) {
      if (slot !== this.history.slot && told !== undefined && !Number.isNaN(told[slot]))
        this.keep(name, 0, slot)
    }
  }

  /** @param {string} prefix @returns {string[]} */
  names(prefix) {
    return [...this.#columns.keys()].filter((name) => name.startsWith(prefix))
  }

  /**
   * A number as it was told last.
   * @param {string} name
   * @returns {number | undefined}
   */
  last(name) {
    const value = this.#columns.get(name)?.[this.history.slot]
    return value === undefined || Number.isNaN(value) ? undefined : value
  }

  /**
   * By how much a counter has grown, and within how long, milliseconds.
   * @param {string} name
   * @param {number} ms over how long at most
   * @returns {{ by: number, within: number } | undefined} undefined while that is not known
   */
  #growth(name, ms) {
    const { history } = this
    const column = this.#columns.get(name)
    if (column === undefined || Number.isNaN(column[history.slot])) return undefined
    const first = history.from(ms, column)
    if (first === undefined) return undefined
    // A counter that went down has begun anew.
    const by = Math.max(0, column[history.slot] - column[first])
    return { by, within: history.times[history.slot] - history.times[first] }
  }

  /**
   * @param {string} name
   * @param {number} ms
   * @returns {number | undefined}
   */
  grown(name, ms) {
    return this.#growth(name, ms)?.by
  }

  /**
   * How much a counter grows a second.
   * @param {string} name
   * @param {number} ms over how long
   * @returns {number | undefined}
   */
  rate(name, ms) {
    const growth = this.#growth(name, ms)
    return growth === undefined || growth.within <= 0 ? undefined : (1000 * growth.by) / growth.within
  }

  /**
   * What a counter grew by, by what another did: a mean.
   * @param {string} sum
   * @param {string} count
   * @param {number} ms
   * @returns {number | undefined}
   */
  mean(sum, count, ms) {
    const all = this.grown(count, ms)
    const total = this.grown(sum, ms)
    return all === undefined || total === undefined || all === 0 ? undefined : total / all
  }

  /**
   * The mean of a number that goes up and down.
   * @param {string} name
   * @param {number} ms
   * @returns {number | undefined}
   */
  average(name, ms) {
    const column = this.#columns.get(name)
    if (column === undefined) return undefined
    let sum = 0
    let count = 0
    for (const slot of this.history.slots(ms)) {
      if (Number.isNaN(column[slot])) continue
      sum += column[slot]
      count += 1
    }
    return count === 0 ? undefined : sum / count
  }

  /**
   * A line to draw: a rate or a mean for each step between two states.
   * @param {string} name of a counter
   * @param {number} ms
   * @param {string} [per] another counter, for a mean; left out: by the second
   * @returns {{ at: number, value: number }[]} value NaN where there is none
   */
  line(name, ms, per) {
    const { times } = this.history
    const column = this.#columns.get(name)
    const by = per === undefined ? times : this.#columns.get(per)
    /** @type {{ at: number, value: number }[]} */
    const points = []
    if (column === undefined || by === undefined) return points
    let before = -1
    for (const slot of this.history.slots(ms + gapMs)) {
      if (before >= 0) {
        const grown = column[slot] - column[before]
        const steps = (by[slot] - by[before]) / (per === undefined ? 1000 : 1)
        const good = grown >= 0 && steps > 0 && times[slot] - times[before] <= gapMs
        points.push({ at: times[slot], value: good ? grown / steps : Number.NaN })
      }
      before = slot
    }
    return points
  }
}
