/*
 * A peer, as far as the page knows it.
 */

import { Tracked } from './history.js'
import { neutral } from './words.js'

/** Numbers that are remembered. */
const kept = [
  'attempts',
  'succeeded',
  'failures',
  'headers',
  'headerMs',
  'inFlight',
  'share',
  'connects',
  'reuses',
  'passedErrors',
  'shadowPicks',
]

export class Peer extends Tracked {
  /** @type {import('./group.js').Group} */
  group
  /** @type {import('./store.js').Store} */
  store
  /** @type {import('./told.js').PeerLayout} */
  layout
  /** @type {import('./told.js').Row} */
  row = []
  /** By its place among the group's probes. @type {Map<number, import('./told.js').Probing>} */
  probes = new Map()
  /** Since when its state is what it is; undefined: since before the page was opened. @type {number | undefined} */
  stateAt
  /** The last failure that was seen. @type {{ reason: string, at: number } | undefined} */
  lastFailure

  /**
   * @param {import('./group.js').Group} group
   * @param {import('./told.js').PeerLayout} layout
   */
  constructor(group, layout) {
    super(group.store.history)
    this.group = group
    this.store = group.store
    this.layout = layout
  }

  get key() {
    return this.layout.key
  }
  get name() {
    return this.layout.name
  }

  /**
   * A number of the last state, by its name in the layout.
   * @param {string} name
   * @returns {number | undefined} undefined where it is not known
   */
  number(name) {
    const value = this.row[this.store.columnAt(name)]
    return typeof value === 'number' ? value : undefined
  }

  get state() {
    return this.store.layout?.words.states[this.number('state') ?? -1] ?? 'up'
  }

  /** Why it may not be picked now; undefined when it may. */
  get excluded() {
    return this.store.layout?.words.exclusions[(this.number('excluded') ?? 0) - 1]
  }

  /** How often attempts ended for each reason, ever. @returns {Map<string, number>} */
  get reasons() {
    const pairs = this.row[this.store.columnAt('reasons')]
    const counts = new Map()
    if (!Array.isArray(pairs)) return counts
    for (let i = 0; i < pairs.length; i += 2) {
      counts.set(this.store.layout?.words.reasons[pairs[i]] ?? '', pairs[i + 1])
    }
    return counts
  }

  /**
   * Why attempts did not end well, how often a second; the most frequent first. `5xx` are answers that were passed on.
   * @param {number} ms
   */
  troubles(ms) {
    const found = this.reasonRates(ms).filter(({ reason }) => !neutral.has(reason))
    const passed = this.rate('passedErrors', ms) ?? 0
    if (passed > 0) found.push({ reason: '5xx', rate: passed })
    return found.sort((a, b) => b.rate - a.rate)
  }

  /** Of each reason, how often a second. @param {number} ms */
  reasonRates(ms) {
    return this.names('reason ')
      .map((name) => ({ reason: name.slice(7), rate: this.rate(name, ms) ?? 0 }))
      .filter(({ rate }) => rate > 0)
  }

  /** Its part of the group's attempts. @param {number} ms @returns {number | undefined} */
  actualShare(ms) {
    const own = this.grown('attempts', ms)
    const all = this.group.grown('attempts', ms)
    return own === undefined || all === undefined || all === 0 ? undefined : Math.min(1, own / all)
  }

  /**
   * Part of the attempts that ended well among those that ended and say something of the peer. An answer 5xx is none
   * that did, whatever the configuration takes for a failure.
   * @param {number} ms
   * @returns {number | undefined}
   */
  well(ms) {
    const passed = this.grown('passedErrors', ms) ?? 0
    const good = (this.grown('succeeded', ms) ?? 0) - passed
    let bad = passed
    for (const name of this.names('reason ')) {
      if (!neutral.has(name.slice(7))) bad += this.grown(name, ms) ?? 0
    }
    return good + bad <= 0 ? undefined : Math.max(0, good) / (good + bad)
  }

  /**
   * Takes in what was told of it.
   * @param {import('./told.js').Row} row
   * @param {boolean} first whether nothing is known from before
   * @returns {string | undefined} the state that it was in, where that has changed
   */
  take(row, first) {
    const known = this.row.length > 0
    const before = known ? this.state : ''
    const counts = known ? this.reasons : undefined
    const at = this.history.times[this.history.slot]
    this.row = row
    for (const name of kept) this.keep(name, this.number(name) ?? Number.NaN)
    for (const [reason, count] of this.reasons) {
      const had = counts?.get(reason) ?? 0
      if (counts !== undefined && count > had) {
        if (!neutral.has(reason)) this.lastFailure = { reason, at }
        if (had === 0) this.fillIn(`reason ${reason}`, 'attempts')
      }
      this.keep(`reason ${reason}`, count)
    }
    if (known ? this.state !== before : !first) this.stateAt = at
    return known && this.state !== before ? before : undefined
  }

  /** Whether somebody should look at it. @param {number} ms */
  inTrouble(ms) {
    return !['up', 'recovering', 'draining'].includes(this.state) || this.troubles(ms).length > 0
  }
}
