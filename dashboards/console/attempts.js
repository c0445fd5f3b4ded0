/*
 * Attempts as they end, newest first. The list holds still while somebody reads it: while it is paused, has the focus,
 * or has the pointer over it.
 */

import { attemptDetail, entryLine, fits } from './attempt-entry.js'
import { h, setAttribute, setHidden, setText, shape } from './dom.js'
import { count, rate } from './format.js'

/** @typedef {import('./attempt-entry.js').Entry} Entry */
/** @typedef {import('./store.js').Store} Store */

/** How many entries are remembered, and how many of them are listed. */
const remembered = 1000
const listed = 150
/** A second of the rates at the top, milliseconds. */
const rateMs = 10_000

export class Attempts {
  /** @type {Store} */
  #store
  /** Newest first. @type {Entry[]} */
  #entries = []
  /** By the line in the list. @type {WeakMap<Element, Entry>} */
  #entryOf = new WeakMap()
  /** What came while the list held still. @type {Entry[]} */
  #held = []
  #paused = false
  #pointed = false
  #failures = false
  #text = ''
  #serial = 0
  /** @type {HTMLElement | undefined} */
  #selected
  #rates = h('p', { class: 'count' })
  #pause
  #only
  #filter
  #list
  #empty
  #detail
  element

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
    this.#pause = h(
      'button',
      { type: 'button', 'aria-pressed': 'false', onclick: () => this.pause() },
      'Pause',
    )
    this.#only = h(
      'button',
      { type: 'button', 'aria-pressed': 'false', onclick: () => this.#onlyFailures() },
      shape('failed'),
      'Only failures',
    )
    this.#filter = h('input', {
      type: 'search',
      placeholder: 'Peer, path, reason …',
      'aria-label': 'Filter attempts',
      oninput: () => this.#narrow(),
      autocomplete: 'off',
      spellcheck: 'false',
    })
    this.#list = h('ol', {
      class: 'attempts',
      role: 'listbox',
      tabindex: '0',
      'aria-label': 'Attempts, newest first',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
      onfocus: () => this.#hold(),
      onblur: () => this.#go(),
      onclick: (/** @type {MouseEvent} */ event) => this.#click(event),
    })
    // A finger that scrolls is no pointer that rests.
    this.#list.addEventListener('pointerenter', (event) => {
      this.#pointed = event.pointerType === 'mouse'
      this.#hold()
    })
    this.#list.addEventListener('pointerleave', () => {
      this.#pointed = false
      this.#go()
    })
    this.#empty = h('p', { class: 'empty' })
    this.#detail = h('section', {
      class: 'attempt-detail',
      'aria-label': 'The attempt in detail',
      hidden: true,
    })
    this.element = h(
      'div',
      { class: 'attempts-panel' },
      h(
        'div',
        { class: 'panel-head' },
        h('h2', { id: 'attempts-title' }, 'Attempts'),
        this.#rates,
        this.#pause,
      ),
      h('div', { class: 'panel-tools' }, this.#filter, this.#only),
      this.#empty,
      this.#list,
      this.#detail,
    )
    this.#say()
  }

  /** @param {import('./told.js').RecentBatch} batch */
  take({ attempts, more, moreFailed }) {
    /** @type {Entry[]} */
    const entries = attempts.map((attempt) => ({ kind: 'attempt', at: attempt.at, attempt }))
    entries.sort((a, b) => b.at - a.at)
    if (more > 0) entries.unshift({ kind: 'more', at: entries[0]?.at ?? 0, more, failed: moreFailed })
    this.#add(entries)
  }

  /**
   * @param {{ peer: import('./peer.js').Peer, before: string }[]} changes
   * @param {number} at
   */
  takeChanges(changes, at) {
    this.#add(
      changes.map(({ peer, before }) => ({
        kind: 'change',
        at,
        upstream: peer.group.name,
        peer: peer.name,
        before,
        after: peer.state,
      })),
    )
  }

  /** Nothing from before counts any more. */
  clear() {
    this.#entries = []
    this.#held = []
    this.#select(undefined)
    this.#fill()
  }

  /** @param {Entry[]} entries newest first */
  #add(entries) {
    if (entries.length === 0) return
    if (this.#still) {
      this.#held.unshift(...entries)
      this.#held.length = Math.min(this.#held.length, remembered)
      this.#say()
      return
    }
    this.#entries.unshift(...entries)
    this.#entries.length = Math.min(this.#entries.length, remembered)
    this.#list.prepend(
      ...entries
        .filter((entry) => this.#fits(entry))
        .slice(0, listed)
        .map((entry) => this.#line(entry)),
    )
    this.#trim()
  }

  /** @param {Entry} entry */
  #fits(entry) {
    return fits(entry, this.#text, this.#failures)
  }

  /** @param {Entry} entry */
  #line(entry) {
    this.#serial += 1
    const line = entryLine(entry, this.#store.groups.length > 1, this.#serial)
    this.#entryOf.set(line, entry)
    return line
  }

  #trim() {
    while (this.#list.children.length > listed) this.#list.lastElementChild?.remove()
    if (this.#selected?.isConnected === false) this.#select(undefined)
    this.#say()
  }

  #fill() {
    this.#list.replaceChildren(
      ...this.#entries
        .filter((entry) => this.#fits(entry))
        .slice(0, listed)
        .map((entry) => this.#line(entry)),
    )
    this.#trim()
  }

  /** Whether the list is to hold still. */
  get #still() {
    return this.#paused || this.#pointed || document.activeElement === this.#list
  }

  #hold() {
    this.#say()
  }

  #go() {
    // The focus has not moved yet while it is being taken away.
    queueMicrotask(() => {
      if (this.#still) return
      const held = this.#held
      this.#held = []
      this.#add(held)
      this.#say()
    })
  }

  /** Stops the list, or lets it go on. */
  pause() {
    this.#paused = !this.#paused
    setAttribute(this.#pause, 'aria-pressed', String(this.#paused))
    this.#go()
    this.#say()
  }

  #onlyFailures() {
    this.#failures = !this.#failures
    setAttribute(this.#only, 'aria-pressed', String(this.#failures))
    this.#fill()
  }

  #narrow() {
    this.#text = this.#filter.value.trim().toLowerCase()
    this.#fill()
  }

  /** Lists what has to do with a word. @param {string} text */
  search(text) {
    this.#filter.value = text
    this.#narrow()
  }

  #say() {
    const held = this.#held.filter((entry) => this.#fits(entry)).length
    let text = this.#paused ? 'Go on' : 'Pause'
    if (this.#still && held > 0) text = `${text} (${count(held)} new)`
    setText(this.#pause, text)
    setAttribute(this.element, 'data-still', this.#still ? 'yes' : undefined)
    const none = this.#list.children.length === 0
    setHidden(this.#empty, !none)
    if (!none) return
    const filtered = this.#text !== '' || this.#failures
    const seen = this.#entries.length > 0
    setText(
      this.#empty,
      filtered && seen ? 'None of those seen so far.' : 'Nothing yet. Attempts are listed here as they end.',
    )
  }

  /** Brings what is said above the list up to date. */
  update() {
    let all
    let bad = 0
    for (const group of this.#store.groups) {
      const attempts = group.rate('attempts', rateMs)
      if (attempts !== undefined) all = (all ?? 0) + attempts
      for (const peer of group.peers) for (const { rate: one } of peer.troubles(rateMs)) bad += one
    }
    setText(this.#rates, all === undefined ? '' : `${rate(all)}/s${bad > 0 ? `, ${rate(bad)}/s failed` : ''}`)
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const lines = /** @type {HTMLElement[]} */ ([...this.#list.querySelectorAll('.attempt')])
    const at = this.#selected === undefined ? -1 : lines.indexOf(this.#selected)
    const to = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      Home: 0,
      End: lines.length - 1,
      PageDown: at + 10,
      PageUp: at - 10,
    }[event.key]
    if (event.key === 'Escape') this.#select(undefined)
    if (to === undefined || lines.length === 0 || event.ctrlKey || event.altKey || event.metaKey) return
    event.preventDefault()
    const line = lines[Math.max(0, Math.min(lines.length - 1, to))]
    this.#select(line)
    line.scrollIntoView({ block: 'nearest' })
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const line = event.target instanceof Element ? event.target.closest('.attempt') : null
    if (line instanceof HTMLElement) this.#select(line === this.#selected ? undefined : line)
  }

  /** @param {HTMLElement | undefined} line */
  #select(line) {
    this.#selected?.setAttribute('aria-selected', 'false')
    this.#selected = line
    line?.setAttribute('aria-selected', 'true')
    setAttribute(this.#list, 'aria-activedescendant', line?.id)
    const entry = line && this.#entryOf.get(line)
    setHidden(this.#detail, entry?.kind !== 'attempt')
    if (entry?.kind !== 'attempt') return
    this.#detail.replaceChildren(...attemptDetail(entry.attempt).filter((one) => one !== null))
  }
}
