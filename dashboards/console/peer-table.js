/*
 * The peers of a group. Rows that nobody can see are not brought up to date, so hundreds cost little.
 */

import { arrange, h, setAttribute } from './dom.js'
import { columns, PeerRow } from './peer-row.js'
import { chosen } from './settings.js'
import { stateOrder } from './words.js'

/** @typedef {import('./store.js').Group} Group */
/** @typedef {import('./store.js').Peer} Peer */
/** @typedef {import('./peer-row.js').ColumnId} ColumnId */

/** How far beyond what is seen rows are kept up to date. */
const margin = '240px 0px'

export class PeerTable {
  /** @type {Group} */
  #group
  /** @type {Map<string, PeerRow>} */
  #rows = new Map()
  /** @type {WeakMap<Element, PeerRow>} */
  #rowOf = new WeakMap()
  /** @type {ColumnId | undefined} */
  #sorted
  #descending = true
  #headers
  #body
  #observer
  element

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    this.#headers = new Map(columns.map((column) => [column.id, this.#header(column)]))
    this.#body = h('tbody', { role: 'rowgroup' })
    this.element = h(
      'table',
      { class: 'peers', role: 'table' },
      h('caption', { class: 'unseen' }, `Peers of ${group.name}`),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...this.#headers.values())),
      this.#body,
    )
    this.#observer = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: margin })
    this.element.addEventListener('keydown', (event) => this.#move(event))
  }

  /** @param {(typeof columns)[number]} column */
  #header({ id, title, about }) {
    const button = h('button', { type: 'button', title: about, onclick: () => this.#sortBy(id) }, title)
    return h('th', { scope: 'col', role: 'columnheader', 'data-column': id, 'aria-sort': 'none' }, button)
  }

  /** @param {ColumnId} id */
  #sortBy(id) {
    const falling = !['peer', 'state'].includes(id)
    if (this.#sorted !== id) {
      this.#sorted = id
      this.#descending = falling
    } else if (this.#descending === falling) this.#descending = !falling
    else this.#sorted = undefined
    for (const [name, header] of this.#headers) {
      const order = this.#descending ? 'descending' : 'ascending'
      setAttribute(header, 'aria-sort', name === this.#sorted ? order : 'none')
    }
    this.update((peer) => this.#rows.get(peer.key)?.element.isConnected ?? false)
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #seen(entries) {
    const scale = this.#scale()
    for (const { target, isIntersecting } of entries) {
      const row = this.#rowOf.get(target)
      if (row === undefined) continue
      row.visible = isIntersecting
      if (isIntersecting) row.update(scale)
    }
  }

  /** The greatest share of all: it fills the bar. */
  #scale() {
    const ms = chosen().span
    let most = 0
    for (const peer of this.#group.peers) {
      most = Math.max(most, peer.actualShare(ms) ?? 0, peer.average('share', ms) ?? 0)
    }
    return most || 1
  }

  /**
   * Brings everything up to date.
   * @param {(peer: Peer) => boolean} shown which peers are
   * @returns {number} how many those are
   */
  update(shown) {
    const peers = this.#group.peers
    const byKey = new Map(peers.map((peer) => [peer.key, peer]))
    for (const [key, row] of this.#rows) {
      if (row.peer === byKey.get(key)) continue
      this.#observer.unobserve(row.element)
      this.#rows.delete(key)
    }
    const rows = []
    for (const [place, peer] of peers.entries()) {
      const row = this.#rows.get(peer.key) ?? this.#add(peer, place)
      row.place = place
      if (shown(peer)) rows.push(row)
    }
    this.#sort(rows)
    arrange(
      this.#body,
      rows.map(({ element }) => element),
    )
    const scale = this.#scale()
    for (const row of rows) row.update(scale)
    return rows.length
  }

  /**
   * @param {Peer} peer
   * @param {number} place
   */
  #add(peer, place) {
    const row = new PeerRow(peer, place, () => {})
    this.#rows.set(peer.key, row)
    this.#rowOf.set(row.element, row)
    this.#observer.observe(row.element)
    return row
  }

  /** @param {PeerRow[]} rows */
  #sort(rows) {
    const by = this.#sorted
    if (by === undefined) {
      rows.sort((a, b) => a.place - b.place)
      return
    }
    const values = new Map(rows.map((row) => [row, sortValue(row.peer, by)]))
    const sign = this.#descending ? -1 : 1
    rows.sort((a, b) => {
      const [x, y] = [values.get(a) ?? 0, values.get(b) ?? 0]
      const order =
        typeof x === 'string' ? x.localeCompare(String(y), 'en', { numeric: true }) : x - Number(y)
      return sign * order || a.place - b.place
    })
  }

  /** Up and down from one peer to the next. @param {KeyboardEvent} event */
  #move(event) {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return
    const buttons = [...this.#body.querySelectorAll('.peer-name')]
    const at = buttons.indexOf(/** @type {Element} */ (document.activeElement))
    const next = buttons[at + step]
    if (at < 0 || !(next instanceof HTMLElement)) return
    event.preventDefault()
    next.focus()
  }
}

/**
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
      return stateOrder.indexOf(peer.state)
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
