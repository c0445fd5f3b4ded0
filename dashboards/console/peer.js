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
  'connectMs',
  'reuses',
  'passedErrors',
  'passedCalls',
  'shadowPicks',
]

/** What waits this long, on average, and so many times longer than usual, is in trouble, milliseconds. */
const waitedMs = 1000
const waitedTimes = 10
/** Or when nothing has come at all for so long, and so many times longer than usual, milliseconds. */
const silentMs = 3000
const silentTimes = 5

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
  /** Attempts whose header has not come yet. */
  waiting = 0
  /** Since when, while some wait, nothing has come or ended. @type {number | undefined} */
  #silentAt
  /** What stood at the last state: headers and attempts that have ended. */
  #moved = ''
  /** Of `answering`, what is of threads that died. */
  #astray = Number.NEGATIVE_INFINITY
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
   * Why attempts did not end well, how often a second; the most frequent first. `5xx` and `grpc` are answers
   * that were passed on.
   * @param {number} ms
   */
  troubles(ms) {
    const found = this.reasonRates(ms).filter(({ reason }) => !neutral.has(reason))
    const passed = this.rate('passedErrors', ms) ?? 0
    if (passed > 0) found.push({ reason: '5xx', rate: passed })
    const calls = this.rate('passedCalls', ms) ?? 0
    if (calls > 0) found.push({ reason: 'grpc', rate: calls })
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
   * Part of the attempts that ended well among those that ended and say something of the peer. An answer 5xx or a
   * call of gRPC that failed is none that did, whatever the configuration takes for a failure.
   * @param {number} ms
   * @returns {number | undefined}
   */
  well(ms) {
    const passed = (this.grown('passedErrors', ms) ?? 0) + (this.grown('passedCalls', ms) ?? 0)
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
    this.#wait(at)
    if (known ? this.state !== before : !first) this.stateAt = at
    return known && this.state !== before ? before : undefined
  }

  /** Notes what waits. @param {number} at */
  #wait(at) {
    const inFlight = this.number('inFlight') ?? 0
    const answering = this.number('answering') ?? 0
    // As many at most have their header as are in progress.
    this.#astray = Math.max(this.#astray, answering - inFlight)
    const answered = Math.max(0, answering - Math.max(0, this.#astray))
    this.waiting = Math.max(0, inFlight - answered)
    const moved = `${this.number('headers')} ${(this.number('attempts') ?? 0) - inFlight}`
    if (this.waiting === 0) this.#silentAt = undefined
    else if (this.#silentAt === undefined || moved !== this.#moved) this.#silentAt = at
    this.#moved = moved
  }

  /**
   * What waits for a header longer than is usual here, so that the peer may have stalled; undefined where nothing does.
   * A peer without requests in progress never does, nor one that sends an answer, however long.
   * @returns {{ count: number, ms: number, silent: boolean } | undefined} for how long: on average, or `silent`, for
   *   how long at least nothing has come at all
   */
  get waits() {
    const { waiting: count } = this
    if (count === 0) return undefined
    const usual = this.number('headerTime') ?? 0
    const ms = this.number('waited')
    if (ms !== undefined && ms > Math.max(waitedMs, waitedTimes * usual)) return { count, ms, silent: false }
    const silence = this.#silentAt === undefined ? 0 : this.store.now - this.#silentAt
    if (silence < Math.max(silentMs, silentTimes * usual)) return undefined
    return { count, ms: silence, silent: true }
  }

  /** Whether somebody should look at it. @param {number} ms */
  inTrouble(ms) {
    if (!['up', 'recovering', 'draining'].includes(this.state)) return true
    return this.waits !== undefined || this.troubles(ms).length > 0
  }
}
