/*
 * The peers of a group. Rows that nobody can see are not brought up to date, so hundreds cost little.
 */

import { arrange, h, setAttribute, setHidden, setText } from './dom.js'
import { count } from './format.js'
import { columns, headOf } from './peer-columns.js'
import { PeerDetails } from './peer-details.js'
import { PeerOrder } from './peer-order.js'
import { PeerRow } from './peer-row.js'
import { chosen } from './settings.js'

/** @typedef {import('./group.js').Group} Group */
/** @typedef {import('./peer.js').Peer} Peer */
/** @typedef {import('./peer-columns.js').ColumnId} ColumnId */

/** Rows that are shown at most: a page of thousands helps nobody. */
const most = 1000
/** A table of so few peers is kept up to date as a whole. */
const few = 30
/** How far beyond what is seen rows are kept up to date. */
const margin = '240px 0px'

export class PeerTable {
  /** @type {Group} */
  #group
  /** @type {Map<string, PeerRow>} */
  #rows = new Map()
  /** Of peers whose details are open. @type {Map<string, { row: HTMLElement, details: PeerDetails }>} */
  #open = new Map()
  /** @type {WeakMap<Element, PeerRow>} */
  #rowOf = new WeakMap()
  #order = new PeerOrder()
  /** @type {(peer: Peer) => boolean} */
  #shown = () => true
  #headers
  #body
  #observer
  #search
  #table
  #more = h('p', { class: 'empty', hidden: true })
  element

  /**
   * @param {Group} group
   * @param {(text: string) => void} search lists attempts that have to do with a word
   */
  constructor(group, search) {
    this.#group = group
    this.#search = search
    this.#headers = new Map(columns.map((column) => [column.id, this.#header(column)]))
    this.#body = h('tbody', { role: 'rowgroup' })
    this.#table = h(
      'table',
      { class: 'peers', role: 'table' },
      h('caption', { class: 'unseen' }, `Peers of ${group.name}`),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...this.#headers.values())),
      this.#body,
    )
    this.element = h('div', {}, this.#table, this.#more)
    this.#observer = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: margin })
    this.#table.addEventListener('keydown', (event) => this.#move(event))
  }

  /** @param {(typeof columns)[number]} column */
  #header({ id }) {
    const { title, about } = headOf(id, this.#group.isStream)
    const button = h('button', { type: 'button', title: about, onclick: () => this.#sortBy(id) }, title)
    return h('th', { scope: 'col', role: 'columnheader', 'data-column': id, 'aria-sort': 'none' }, button)
  }

  /** @param {ColumnId} id */
  #sortBy(id) {
    this.#order.switch(id)
    for (const [name, header] of this.#headers) setAttribute(header, 'aria-sort', this.#order.of(name))
    this.update(this.#shown)
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

  /** How many columns are shown: that of the probes is not where there are none. */
  get #width() {
    return columns.length - (this.#group.layout.probes.length > 0 ? 0 : 1)
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
    const { peers } = this.#group
    const byKey = new Map(peers.map((peer) => [peer.key, peer]))
    for (const [key, row] of this.#rows) {
      if (row.peer === byKey.get(key)) continue
      this.#observer.unobserve(row.element)
      this.#rows.delete(key)
      this.#close(key)
    }
    this.#shown = shown
    const wanted = this.#order.sort(peers, this.#isRead).filter(shown)
    const rows = wanted.slice(0, most).map((peer) => this.#rows.get(peer.key) ?? this.#add(peer))
    this.#arrange(rows)
    setHidden(this.#more, wanted.length <= most)
    setText(this.#more, `and ${count(wanted.length - most)} more: filter or sort to see them`)
    setAttribute(this.#table, 'data-probed', this.#group.layout.probes.length > 0 ? 'yes' : undefined)
    const scale = this.#scale()
    for (const row of rows) {
      if (rows.length <= few) row.visible = true
      row.update(scale)
    }
    for (const { row, details } of this.#open.values()) {
      setAttribute(/** @type {Element} */ (row.firstElementChild), 'colspan', String(this.#width))
      details.update()
    }
    return wanted.length
  }

  /** @param {PeerRow[]} rows */
  #arrange(rows) {
    const lines = rows.flatMap(({ peer, element }) => {
      const open = this.#open.get(peer.key)
      return open === undefined ? [element] : [element, open.row]
    })
    arrange(this.#body, lines)
  }

  /** @param {Peer} peer */
  #add(peer) {
    const row = new PeerRow(peer, () => this.#toggle(row))
    this.#rows.set(peer.key, row)
    this.#rowOf.set(row.element, row)
    this.#observer.observe(row.element)
    return row
  }

  /** Opens or closes the details of a peer. @param {PeerRow} row */
  #toggle({ peer, element, button }) {
    if (this.#close(peer.key)) return
    const details = new PeerDetails(peer, this.#search)
    const id = `details-${peer.key.replace(/[^\w.-]/g, '_')}`
    const about = { 'aria-label': `More of ${peer.name}` }
    const cell = h('td', { role: 'cell', colspan: this.#width, ...about }, details.element)
    const row = h('tr', { class: 'details-row', role: 'row', id, ...about }, cell)
    this.#open.set(peer.key, { row, details })
    setAttribute(button, 'aria-expanded', 'true')
    setAttribute(button, 'aria-controls', id)
    element.after(row)
    details.start()
    details.update()
  }

  /** @param {string} key @returns {boolean} whether they were open */
  #close(key) {
    const open = this.#open.get(key)
    if (open === undefined) return false
    open.details.stop()
    open.row.remove()
    this.#open.delete(key)
    const row = this.#rows.get(key)
    if (row !== undefined) {
      setAttribute(row.button, 'aria-expanded', 'false')
      setAttribute(row.button, 'aria-controls', undefined)
    }
    return true
  }

  /** Closes all details, which ask the program. */
  stop() {
    for (const key of [...this.#open.keys()]) this.#close(key)
  }

  /** Whether somebody has the focus in it, or the pointer over it: then nothing may move away. */
  get #isRead() {
    return this.#body.contains(document.activeElement) || this.#body.matches(':hover')
  }

  /** Up and down from one peer to the next; Escape closes the details around it. @param {KeyboardEvent} event */
  #move(event) {
    if (event.key === 'Escape') this.#leave()
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return
    const buttons = [...this.#body.querySelectorAll('.peer-name')]
    const at = buttons.indexOf(/** @type {Element} */ (document.activeElement))
    const next = buttons[at + step]
    if (at < 0 || !(next instanceof HTMLElement)) return
    event.preventDefault()
    next.focus()
  }

  /** Closes the details that have the focus, or whose peer has it. */
  #leave() {
    const { activeElement } = document
    for (const [key, { row }] of this.#open) {
      const button = this.#rows.get(key)?.button
      if (activeElement !== button && !row.contains(activeElement)) continue
      this.#close(key)
      button?.focus()
      return
    }
  }
}
