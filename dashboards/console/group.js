/*
 * A group of peers, as far as the page knows it.
 */

import { Tracked } from './history.js'

/** Counters of the queue, and of sessions that stay, in the order in which they are told. */
const queueNumbers = ['', 'queued', 'queueDropped', 'queueTimedout', 'queueOverflows', 'queueMs']
const stickyNumbers = ['stickyNew', 'stickyHit', 'stickyMiss', '', 'evicted']

export class Group extends Tracked {
  /** @type {import('./store.js').Store} */
  store
  /** @type {import('./told.js').GroupLayout} */
  layout
  /** @type {import('./told.js').GroupState | undefined} */
  state
  /** @type {import('./peer.js').Peer[]} */
  peers = []

  /**
   * @param {import('./store.js').Store} store
   * @param {import('./told.js').GroupLayout} layout
   */
  constructor(store, layout) {
    super(store.history)
    this.store = store
    this.layout = layout
  }

  get name() {
    return this.layout.name
  }

  /** Whether it carries sessions over TCP and UDP, and not requests. */
  get isStream() {
    return this.layout.kind === 'stream'
  }

  /** What it is asked for: 1 request, 2 sessions. */
  get asked() {
    return this.isStream ? 'session' : 'request'
  }

  /** How many are in progress at its peers. */
  get inFlight() {
    return this.peers.reduce((sum, peer) => sum + (peer.number('inFlight') ?? 0), 0)
  }

  /** What was added up for the last state. @type {{ at: number, sums: Map<string, number> }} */
  #added = { at: 0, sums: new Map() }

  /**
   * What a counter of its peers has grown by, over all of them.
   * @param {string} name
   * @param {number} ms
   */
  peersGrown(name, ms) {
    const { now } = this.store
    if (this.#added.at !== now) this.#added = { at: now, sums: new Map() }
    const { sums } = this.#added
    const key = `${name} ${ms}`
    let sum = sums.get(key)
    if (sum === undefined) {
      sum = this.peers.reduce((total, peer) => total + (peer.grown(name, ms) ?? 0), 0)
      sums.set(key, sum)
    }
    return sum
  }

  /** How many peers are in each state; only states that some are in. @returns {Map<string, number>} */
  get states() {
    const counts = new Map()
    for (const { state } of this.peers) counts.set(state, (counts.get(state) ?? 0) + 1)
    return counts
  }

  /** What was last said of its canary, as long as that is asked. @type {string | undefined} */
  verdict

  /** Whether its canary does worse. */
  get canaryFails() {
    return this.verdict === 'fail'
  }

  /** How many peers keep attempts waiting, and how many those are. */
  get waits() {
    const counts = this.peers.map(({ waits }) => waits?.count ?? 0).filter((count) => count > 0)
    return { peers: counts.length, attempts: counts.reduce((sum, count) => sum + count, 0) }
  }

  /**
   * How long requests took that ended within a span, as the buckets of the histogram tell: between two bounds it is
   * guessed that they are evenly spread.
   * @param {number} part 0.99 for the 99th percentile
   * @param {number} ms
   * @returns {number | undefined} undefined where none ended; Infinity beyond the last bound
   */
  quantile(part, ms) {
    const found = this.bucketOf(part, ms)
    return found && found.low + (found.high - found.low) * found.within
  }

  /**
   * The bucket of the histogram in which that quantile lies: that is all that is known of it for sure.
   * @param {number} part
   * @param {number} ms
   * @returns {{ low: number, high: number, within: number, top: boolean } | undefined} `within` how far into it, 0 to 1;
   *   `top` where no request took longer than its upper bound
   */
  bucketOf(part, ms) {
    const { words } = this.store.layout ?? {}
    const bounds = (this.isStream ? words?.sessionBuckets : words?.buckets) ?? []
    const counts = Array.from({ length: bounds.length + 1 }, (_, at) => this.grown(`duration ${at}`, ms) ?? 0)
    const all = counts.reduce((sum, one) => sum + one, 0)
    if (all === 0) return undefined
    let below = 0
    for (const [at, count] of counts.entries()) {
      if (count > 0 && below + count >= part * all) {
        const low = at === 0 ? 0 : bounds[at - 1]
        const high = bounds[at] ?? Number.POSITIVE_INFINITY
        return { low, high, within: (part * all - below) / count, top: below + count >= all }
      }
      below += count
    }
    return undefined
  }

  /**
   * @param {readonly (number | null)[] | undefined} told
   * @param {number} at
   * @param {string} name empty: it is not remembered
   */
  #keepOf(told, at, name) {
    const value = told?.[at]
    if (name !== '' && typeof value === 'number') this.keep(name, value)
  }

  /**
   * Takes in what was told of it.
   * @param {import('./told.js').GroupState} told
   * @param {import('./told.js').Layout} layout
   */
  take(told, { words }) {
    this.state = told
    for (const name of /** @type {const} */ (['requests', 'attempts', 'retries'])) this.keep(name, told[name])
    for (const [d, count] of told.denials.entries()) this.keep(`denial ${words.denials[d]}`, count)
    for (const [i, name] of queueNumbers.entries()) this.#keepOf(told.queue, i, name)
    for (const [i, name] of stickyNumbers.entries()) this.#keepOf(told.sticky, i, name)
    for (const [i, name] of ['shadowBoth', 'shadowSame', 'pickedMs', 'shadowMs'].entries()) {
      this.#keepOf(told.shadow, i, name)
    }
    /** @type {Map<string, number>} */
    const sums = new Map()
    /** @param {string} name @param {number} value */
    const add = (name, value) => sums.set(name, (sums.get(name) ?? 0) + value)
    for (const [t, row] of told.tracks.entries()) {
      for (const [at, value] of row.entries()) {
        const name = words.track[at] ?? ''
        if (typeof value === 'number') {
          add(name, value)
          this.keep(`${name} of ${this.layout.tracks[t]}`, value)
        } else if (value) for (const [b, count] of value.entries()) add(`duration ${b}`, count)
      }
    }
    for (const [name, value] of sums) this.keep(name, value)
  }
}
