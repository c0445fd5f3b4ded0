/*
 * In which order the peers of a group stand.
 */

import { chosen } from './settings.js'
import { stateOrder } from './words.js'

/** @typedef {import('./peer.js').Peer} Peer */
/** @typedef {import('./peer-columns.js').ColumnId} ColumnId */

/** How long an order by numbers stays, milliseconds: they change all the time, and what moves cannot be read. */
const orderMs = 5000

export class PeerOrder {
  /** Undefined: as the configuration has them. @type {ColumnId | undefined} */
  #by
  #descending = true
  /** Their places, by key, when they were sorted last, and when that was. @type {Map<string, number> | undefined} */
  #places
  #at = 0

  /** By that column; the other way round; and then as they were. @param {ColumnId} id */
  switch(id) {
    const falling = !['peer', 'state'].includes(id)
    this.#places = undefined
    if (this.#by !== id) {
      this.#by = id
      this.#descending = falling
    } else if (this.#descending === falling) this.#descending = !falling
    else this.#by = undefined
  }

  /** In the words of `aria-sort`. @param {ColumnId} id */
  of(id) {
    if (id !== this.#by) return 'none'
    return this.#descending ? 'descending' : 'ascending'
  }

  /**
   * @param {readonly Peer[]} peers in the order of the configuration, in which those stay that are alike
   * @param {boolean} held whether somebody reads them, so that nothing may move away
   * @returns {Peer[]}
   */
  sort(peers, held) {
    const by = this.#by
    if (by === undefined) return [...peers]
    if (this.#places === undefined || (performance.now() - this.#at > orderMs && !held)) {
      const values = new Map(peers.map((peer) => [peer, sortValue(peer, by)]))
      const sign = this.#descending ? -1 : 1
      const sorted = [...peers].sort((a, b) => {
        const [x, y] = [values.get(a) ?? 0, values.get(b) ?? 0]
        return (
          sign * (typeof x === 'string' ? x.localeCompare(String(y), 'en', { numeric: true }) : x - Number(y))
        )
      })
      this.#places = new Map(sorted.map(({ key }, at) => [key, at]))
      this.#at = performance.now()
    }
    const places = this.#places
    return [...peers].sort(
      (a, b) => (places.get(a.key) ?? peers.length) - (places.get(b.key) ?? peers.length),
    )
  }
}

/**
 * What peers are sorted by.
 * @param {Peer} peer
 * @param {ColumnId} by
 * @returns {number | string}
 */
function sortValue(peer, by) {
  const ms = chosen().span
  switch (by) {
    case 'peer':
      return peer.name
    case 'state':
      // One that keeps requests waiting comes before those that are in the same state and do not.
      return stateOrder.indexOf(peer.state) - (peer.waits === undefined ? 0 : 0.5)
    case 'share':
      return peer.actualShare(ms) ?? -1
    case 'rate':
      return peer.rate('attempts', ms) ?? -1
    case 'flight':
      return peer.number('inFlight') ?? -1
    case 'time':
      return peer.mean('headerMs', 'headers', ms) ?? -1
    case 'well':
      return 1 - (peer.well(ms) ?? 1)
    case 'probes':
      return [...peer.probes.values()].some(({ passed }) => passed === false) ? 1 : 0
  }
}
