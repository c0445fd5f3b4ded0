/*
 * The list that attempts stand in, of which one can be chosen, by pointer or keyboard, to be looked at more closely.
 */

import { attemptDetail, entryLine } from './attempt-entry.js'
import { h, setAttribute, setHidden } from './dom.js'

/** @typedef {import('./attempt-entry.js').Entry} Entry */

/** How many entries are listed. */
const listed = 150
/** How far one goes with a key. */
const page = 10

export class AttemptList {
  /** By the line in the list. @type {WeakMap<Element, Entry>} */
  #entryOf = new WeakMap()
  #serial = 0
  /** @type {HTMLElement | undefined} */
  #selected
  #pointed = false
  #several
  element
  detail = h('section', { class: 'attempt-detail', 'aria-label': 'The attempt in detail', hidden: true })

  /**
   * @param {() => boolean} several whether there are several groups to tell apart
   * @param {() => void} read told when somebody begins to read it, or no longer does
   */
  constructor(several, read) {
    this.#several = several
    this.element = h('ol', {
      class: 'attempts',
      role: 'listbox',
      tabindex: '0',
      'aria-label': 'Attempts, newest first',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
      onclick: (/** @type {MouseEvent} */ event) => this.#click(event),
      onfocus: read,
      // The focus has not moved yet while it is being taken away.
      onblur: () => queueMicrotask(read),
    })
    /** @param {boolean} pointed */
    const point = (pointed) => {
      this.#pointed = pointed
      read()
    }
    // A finger that scrolls is no pointer that rests.
    this.element.addEventListener('pointerenter', ({ pointerType }) => point(pointerType === 'mouse'))
    this.element.addEventListener('pointerleave', () => point(false))
  }

  /** Whether somebody reads it: it has the focus, or the pointer over it. */
  get isRead() {
    return this.#pointed || document.activeElement === this.element
  }

  get isEmpty() {
    return this.element.childElementCount === 0
  }

  /** @param {Entry[]} entries newest first, and newer than those that are there */
  add(entries) {
    this.element.prepend(...entries.slice(0, listed).map((entry) => this.#line(entry)))
    while (this.element.childElementCount > listed) this.element.lastElementChild?.remove()
    if (this.#selected?.isConnected === false) this.#select(undefined)
  }

  /** @param {Entry[]} entries newest first, in the place of those that are there */
  fill(entries) {
    this.#select(undefined)
    this.element.replaceChildren()
    this.add(entries)
  }

  /** @param {Entry} entry */
  #line(entry) {
    this.#serial += 1
    const line = entryLine(entry, this.#several(), this.#serial)
    this.#entryOf.set(line, entry)
    return line
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const lines = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll('.attempt')])
    const at = this.#selected === undefined ? -1 : lines.indexOf(this.#selected)
    /** @type {Record<string, number>} */
    const places = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      Home: 0,
      End: lines.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    }
    if (event.key === 'Escape') this.#select(undefined)
    const to = places[event.key]
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
    setAttribute(this.element, 'aria-activedescendant', line?.id)
    const entry = line && this.#entryOf.get(line)
    setHidden(this.detail, entry?.kind !== 'attempt')
    if (entry?.kind !== 'attempt') return
    this.detail.replaceChildren(...attemptDetail(entry.attempt).filter((one) => one !== null))
  }
}
