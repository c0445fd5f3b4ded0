/*
 * What the page knows: the last state that the program told, and counters of the last minutes, from which rates and
 * shares over any span are worked out. Nothing here touches the page.
 */

/** How many states are remembered: five minutes of one a second. */
const remembered = 301
/** States closer to each other than this are one, milliseconds: the first of a new link may follow the last at once. */
const closest = 500
/** After a gap this long a line in a chart is not drawn through, milliseconds. */
export const gapMs = 3500

/**
 * @typedef {object} PeerLayout
 * @property {string} key
 * @property {string} name
 * @property {string} server
 * @property {string} track
 * @property {number} weight
 * @property {number} maxFails
 * @property {number} failTimeout
 * @property {number} slowStart
 * @property {boolean} [backup]
 * @property {boolean} [retired]
 */

/**
 * @typedef {object} ProbeLayout
 * @property {string} name
 * @property {string} type
 * @property {string} location
 * @property {string} mode
 * @property {number} interval
 * @property {boolean} essential
 * @property {number} fails
 * @property {number} passes
 */

/**
 * @typedef {object} GroupLayout
 * @property {string} name
 * @property {string} method
 * @property {boolean} single
 * @property {{ ratio: number, min: number, window: number, locations: string[] }[]} budgets
 * @property {string[]} tracks
 * @property {ProbeLayout[]} probes
 * @property {PeerLayout[]} peers
 */

/**
 * @typedef {object} Layout
 * @property {number} layout
 * @property {string} version
 * @property {number} startedAt
 * @property {Record<'peer' | 'track' | 'probe' | 'states' | 'exclusions' | 'reasons' | 'denials', string[]> & { buckets: number[] }} words
 * @property {GroupLayout[]} groups
 */

/**
 * @typedef {object} FleetState
 * @property {string} group
 * @property {string} name
 * @property {string} id
 * @property {string[]} servers
 * @property {boolean} up
 * @property {number} since
 * @property {string} [error]
 * @property {boolean} refused
 * @property {boolean} required
 * @property {number} interval
 * @property {number} ttl
 * @property {number} exchanges
 * @property {number} failures
 * @property {number} losses
 * @property {number} [silence]
 * @property {number} [roundTripMs]
 */

/**
 * @typedef {object} ProgramState
 * @property {boolean} ready
 * @property {boolean} draining
 * @property {string} [unready]
 * @property {number} generation
 * @property {number} loadedAt
 * @property {{ ok: boolean, at: number, error?: string }} [reload]
 * @property {[number, number]} threads
 * @property {[number, number, number, number]} connections
 * @property {FleetState} [fleet]
 */

/** @typedef {(number | null | number[])[]} Row */

/**
 * @typedef {object} GroupState
 * @property {number} requests
 * @property {number} attempts
 * @property {number} retries
 * @property {number} waiting
 * @property {number} idle
 * @property {number[]} denials
 * @property {Row[]} tracks
 * @property {[number, number, number][]} budgets
 * @property {[number, number | null, number]} [fleet]
 * @property {Row[]} peers
 */

/**
 * @typedef {object} State
 * @property {number} layout
 * @property {number} at
 * @property {ProgramState} program
 * @property {GroupState[]} groups
 */

/**
 * @typedef {object} Probing what a probe found when it last asked a peer
 * @property {ProbeLayout} probe
 * @property {boolean | undefined} passed undefined: it said nothing, or did not ask yet
 * @property {string} detail
 * @property {number | undefined} at
 * @property {number | undefined} tookMs
 * @property {number} fails
 * @property {number} passes
 * @property {number} nextAt
 * @property {boolean} shared
 * @property {string | undefined} by
 * @property {number} leavesMs
 */

/** Numbers by name over the states that are remembered; what was not told is NaN. */
class Columns {
  /** @type {Map<string, Float64Array>} */
  #columns = new Map()

  /**
   * @param {number} slot
   * @param {string} name
   * @param {number} value
   */
  set(slot, name, value) {
    let column = this.#columns.get(name)
    if (column === undefined) {
      column = new Float64Array(remembered).fill(Number.NaN)
      this.#columns.set(name, column)
    }
    column[slot] = value
  }

  /** @param {number} slot */
  clear(slot) {
    for (const column of this.#columns.values()) column[slot] = Number.NaN
  }

  /**
   * @param {string} name
   * @param {number} slot
   * @returns {number} NaN where nothing was told
   */
  get(name, slot) {
    return this.#columns.get(name)?.[slot] ?? Number.NaN
  }

  /** @param {string} prefix */
  names(prefix) {
    return [...this.#columns.keys()].filter((name) => name.startsWith(prefix))
  }
}

/** Something that has numbers over time: a group or a peer. */
class Tracked {
  /** @type {Store} */
  store
  columns = new Columns()

  /** @param {Store} store */
  constructor(store) {
    this.store = store
  }

  /**
   * By how much a counter has grown.
   * @param {string} name
   * @param {number} ms over how long
   * @returns {number | undefined} undefined while that is not known
   */
  grown(name, ms) {
    const { store, columns } = this
    const last = columns.get(name, store.slot)
    if (Number.isNaN(last)) return undefined
    const first = store.from(ms, (slot) => columns.get(name, slot))
    if (first === undefined) return undefined
    // A counter that went down has begun anew.
    return Math.max(0, last - columns.get(name, first))
  }

  /**
   * How much a counter grows a second.
   * @param {string} name
   * @param {number} ms over how long
   * @returns {number | undefined}
   */
  rate(name, ms) {
    const { store, columns } = this
    const grown = this.grown(name, ms)
    const first = store.from(ms, (slot) => columns.get(name, slot))
    if (grown === undefined || first === undefined) return undefined
    const spent = store.times[store.slot] - store.times[first]
    return spent > 0 ? (1000 * grown) / spent : undefined
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
    let sum = 0
    let count = 0
    for (const slot of this.store.slots(ms)) {
      const value = this.columns.get(name, slot)
      if (Number.isNaN(value)) continue
      sum += value
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
    const { store, columns } = this
    const points = []
    let before = -1
    for (const slot of store.slots(ms + gapMs)) {
      if (before >= 0) {
        const grown = columns.get(name, slot) - columns.get(name, before)
        const spent = store.times[slot] - store.times[before]
        const by = per === undefined ? spent / 1000 : columns.get(per, slot) - columns.get(per, before)
        const good = grown >= 0 && by > 0 && spent <= gapMs
        points.push({ at: store.times[slot], value: good ? grown / by : Number.NaN })
      }
      before = slot
    }
    return points
  }
}

export class Peer extends Tracked {
  /** @type {Group} */
  group
  /** @type {PeerLayout} */
  layout
  /** @type {Row} */
  row = []
  /** By its place among the group's probes. @type {Map<number, Probing>} */
  probes = new Map()
  /** Since when its state is what it is; undefined: since before the page was opened. @type {number | undefined} */
  stateAt
  /** The last failure that was seen. @type {{ reason: string, at: number } | undefined} */
  lastFailure

  /**
   * @param {Group} group
   * @param {PeerLayout} layout
   */
  constructor(group, layout) {
    super(group.store)
    this.group = group
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

  /** Of each reason, how often a second; the most frequent first. @param {number} ms */
  reasonRates(ms) {
    return this.columns
      .names('reason ')
      .map((name) => ({ reason: name.slice(7), rate: this.rate(name, ms) ?? 0 }))
      .filter(({ rate }) => rate > 0)
      .sort((a, b) => b.rate - a.rate)
  }

  /** Its part of the group's attempts. @param {number} ms @returns {number | undefined} */
  actualShare(ms) {
    const own = this.grown('attempts', ms)
    const all = this.group.grown('attempts', ms)
    return own === undefined || all === undefined || all === 0 ? undefined : Math.min(1, own / all)
  }

  /** Part of the attempts that ended plainly well among those that ended. @param {number} ms @returns {number | undefined} */
  well(ms) {
    const good = this.grown('succeeded', ms)
    if (good === undefined) return undefined
    let bad = 0
    for (const name of this.columns.names('reason ')) bad += this.grown(name, ms) ?? 0
    return good + bad === 0 ? undefined : good / (good + bad)
  }

  /** Whether somebody should look at it. @param {number} ms */
  inTrouble(ms) {
    return !['up', 'recovering', 'draining'].includes(this.state) || this.reasonRates(ms).length > 0
  }
}

export class Group extends Tracked {
  /** @type {GroupLayout} */
  layout
  /** @type {GroupState | undefined} */
  state
  /** @type {Peer[]} */
  peers = []

  /**
   * @param {Store} store
   * @param {GroupLayout} layout
   */
  constructor(store, layout) {
    super(store)
    this.layout = layout
  }

  get name() {
    return this.layout.name
  }

  /** How many peers are in each state; only states that some are in. @returns {Map<string, number>} */
  get states() {
    const counts = new Map()
    for (const { state } of this.peers) counts.set(state, (counts.get(state) ?? 0) + 1)
    return counts
  }

  /**
   * How long requests took that ended within a span, as the buckets of the histogram tell: between two bounds it is
   * guessed that they are evenly spread.
   * @param {number} part 0.99 for the 99th percentile
   * @param {number} ms
   * @returns {number | undefined} undefined where none ended; Infinity beyond the last bound
   */
  quantile(part, ms) {
    const bounds = this.store.layout?.words.buckets ?? []
    const counts = Array.from({ length: bounds.length + 1 }, (_, at) => this.grown(`duration ${at}`, ms) ?? 0)
    const all = counts.reduce((sum, one) => sum + one, 0)
    if (all === 0) return undefined
    let below = 0
    for (const [at, count] of counts.entries()) {
      if (count > 0 && below + count >= part * all) {
        const low = at === 0 ? 0 : bounds[at - 1]
        const high = bounds[at] ?? Number.POSITIVE_INFINITY
        return low + ((high - low) * (part * all - below)) / count
      }
      below += count
    }
    return Number.POSITIVE_INFINITY
  }
}

export class Store {
  /** @type {Layout | undefined} */
  layout
  /** @type {State | undefined} */
  state
  /** In the order of the configuration. @type {Group[]} */
  groups = []
  /** Moments of the states that are remembered, in a ring. */
  times = new Float64Array(remembered).fill(Number.NaN)
  /** Where in the ring the last one is. */
  slot = -1
  #filled = 0
  /** @type {Map<string, number>} */
  #columnAt = new Map()
  /** Peers that have changed their state since this was last taken. @type {{ peer: Peer, before: string, after: string }[]} */
  #changes = []

  /** @param {string} name of a number of a peer */
  columnAt(name) {
    return this.#columnAt.get(name) ?? -1
  }

  /**
   * Takes in what there is. What was known of groups and peers that stay, stays.
   * @param {Layout} layout
   * @returns {boolean} whether it is another run of the program, so that nothing from before counts
   */
  takeLayout(layout) {
    const restarted = this.layout !== undefined && this.layout.startedAt !== layout.startedAt
    if (restarted) {
      this.groups = []
      this.times.fill(Number.NaN)
      this.slot = -1
      this.#filled = 0
      this.#changes = []
    }
    this.layout = layout
    this.#columnAt = new Map(layout.words.peer.map((name, at) => [name, at]))
    const groups = new Map(this.groups.map((group) => [group.name, group]))
    this.groups = layout.groups.map((about) => {
      const group = groups.get(about.name) ?? new Group(this, about)
      groups.delete(about.name)
      group.layout = about
      group.state = undefined
      const peers = new Map(group.peers.map((peer) => [peer.key, peer]))
      group.peers = about.peers.map((line) => {
        const peer = peers.get(line.key) ?? new Peer(group, line)
        peer.layout = line
        peer.probes = new Map()
        return peer
      })
      return group
    })
    return restarted
  }

  /** @param {State} state */
  takeState(state) {
    const { layout } = this
    if (layout === undefined || state.layout !== layout.layout) return
    const first = this.state === undefined || this.slot < 0
    this.state = state
    if (this.slot < 0 || state.at - this.times[this.slot] >= closest) this.#advance()
    const { slot } = this
    this.times[slot] = state.at
    for (const [g, group] of this.groups.entries()) {
      const told = state.groups[g]
      if (told === undefined) continue
      group.state = told
      keepGroup(group, told, layout, slot)
      for (const [p, peer] of group.peers.entries()) {
        const row = told.peers[p]
        if (row !== undefined) this.#keepPeer(peer, row, slot, first)
      }
    }
  }

  #advance() {
    this.slot = (this.slot + 1) % remembered
    this.#filled = Math.min(remembered, this.#filled + 1)
    for (const group of this.groups) {
      group.columns.clear(this.slot)
      for (const peer of group.peers) peer.columns.clear(this.slot)
    }
  }

  /**
   * @param {Peer} peer
   * @param {Row} row
   * @param {number} slot
   * @param {boolean} first whether the page has only been opened
   */
  #keepPeer(peer, row, slot, first) {
    const known = peer.row.length > 0
    const before = known ? peer.state : ''
    const counts = known ? peer.reasons : undefined
    peer.row = row
    const at = this.times[slot]
    if (known && peer.state !== before) {
      peer.stateAt = at
      this.#changes.push({ peer, before, after: peer.state })
    } else if (!known && !first) peer.stateAt = at
    for (const name of kept) peer.columns.set(slot, name, peer.number(name) ?? Number.NaN)
    for (const [reason, count] of peer.reasons) {
      const name = `reason ${reason}`
      const had = counts?.get(reason) ?? 0
      if (counts !== undefined && count > had) {
        peer.lastFailure = { reason, at }
        // The first of its kind: until now there were none.
        if (had === 0) for (const earlier of this.slots(Number.POSITIVE_INFINITY)) fill(peer, name, earlier)
      }
      peer.columns.set(slot, name, count)
    }
  }

  /** @param {{ layout: number, rows: [number, number, number, ...(number | string | null)[]][] }} probes */
  takeProbes({ layout, rows }) {
    const words = this.layout?.words
    if (words === undefined || layout !== this.layout?.layout) return
    for (const [g, p, at, ...values] of rows) {
      const group = this.groups[g]
      const peer = group?.peers[p]
      const probe = group?.layout.probes[at]
      if (peer === undefined || probe === undefined) continue
      /** @param {string} name */
      const value = (name) => values[words.probe.indexOf(name)] ?? undefined
      const passed = value('passed')
      peer.probes.set(at, {
        probe,
        passed: passed === undefined ? undefined : passed === 1,
        detail: String(value('detail') ?? ''),
        at: optional(value('at')),
        tookMs: optional(value('tookMs')),
        fails: Number(value('fails')),
        passes: Number(value('passes')),
        nextAt: Number(value('nextAt')),
        shared: value('shared') === 1,
        by: value('by') === undefined ? undefined : String(value('by')),
        leavesMs: Number(value('leavesMs')),
      })
    }
  }

  /** Changes of state since this was last called. */
  takeChanges() {
    const changes = this.#changes
    this.#changes = []
    return changes
  }

  /**
   * The places of the states within a span, the oldest first.
   * @param {number} ms
   * @returns {number[]}
   */
  slots(ms) {
    const found = []
    const since = this.times[this.slot] - ms - closest
    for (let back = Math.min(this.#filled, remembered) - 1; back >= 0; back--) {
      const slot = (this.slot - back + remembered) % remembered
      if (this.times[slot] >= since) found.push(slot)
    }
    return found
  }

  /**
   * The oldest state within a span that has a number.
   * @param {number} ms
   * @param {(slot: number) => number} read
   * @returns {number | undefined} undefined where it is the last one
   */
  from(ms, read) {
    const { slot, times } = this
    const since = times[slot] - ms - closest
    let found
    for (let back = 1; back < this.#filled; back++) {
      const earlier = (slot - back + remembered) % remembered
      if (times[earlier] < since || Number.isNaN(read(earlier))) break
      found = earlier
    }
    return found
  }
}

/** Numbers of a peer that are remembered. */
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
]

/**
 * @param {Group} group
 * @param {GroupState} told
 * @param {Layout} layout
 * @param {number} slot
 */
function keepGroup(group, told, layout, slot) {
  const { columns } = group
  for (const name of /** @type {const} */ (['requests', 'attempts', 'retries']))
    columns.set(slot, name, told[name])
  const words = layout.words.track
  /** @type {Map<string, number>} */
  const sums = new Map()
  /** @param {string} name @param {number} value */
  const add = (name, value) => sums.set(name, (sums.get(name) ?? 0) + value)
  for (const [t, row] of told.tracks.entries()) {
    for (const [at, value] of row.entries()) {
      const name = words[at] ?? ''
      if (typeof value === 'number') {
        add(name, value)
        columns.set(slot, `${name} of ${group.layout.tracks[t]}`, value)
      } else if (value) for (const [b, count] of value.entries()) add(`duration ${b}`, count)
    }
  }
  for (const [name, value] of sums) columns.set(slot, name, value)
  for (const [d, count] of told.denials.entries())
    columns.set(slot, `denial ${layout.words.denials[d]}`, count)
}

/**
 * @param {Peer} peer
 * @param {string} name
 * @param {number} slot
 */
function fill(peer, name, slot) {
  if (!Number.isNaN(peer.columns.get('attempts', slot))) peer.columns.set(slot, name, 0)
}

/** @param {number | string | undefined} value */
function optional(value) {
  return value === undefined ? undefined : Number(value)
}
