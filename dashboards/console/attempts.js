/*
 * Attempts as they end, newest first. The list holds still while it is paused, and while somebody reads it.
 */

import { fits } from './attempt-entry.js'
import { AttemptList } from './attempt-list.js'
import { h, setAttribute, setHidden, setText, shape } from './dom.js'
import { count, rate } from './format.js'

/** @typedef {import('./attempt-entry.js').Entry} Entry */
/** @typedef {import('./store.js').Store} Store */

/** How many entries are remembered. */
const remembered = 1000
/** What the rates at the top are over, milliseconds. */
const rateMs = 10_000

export class Attempts {
  /** @type {Store} */
  #store
  /** Newest first. @type {Entry[]} */
  #entries = []
  /** What came while the list held still. @type {Entry[]} */
  #held = []
  #paused = false
  #failures = false
  #text = ''
  #rates = h('p', { class: 'count' })
  #pause
  #only
  #filter
  #list
  #empty = h('p', { class: 'empty' })
  element

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
    this.#list = new AttemptList(
      () => store.groups.length > 1,
      () => this.#go(),
    )
    this.#pause = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.pause() })
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
      this.#list.element,
      this.#list.detail,
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
    this.#fill()
  }

  /** @param {Entry[]} entries newest first */
  #add(entries) {
    const kept = this.#still ? this.#held : this.#entries
    kept.unshift(...entries)
    kept.length = Math.min(kept.length, remembered)
    if (!this.#still) this.#list.add(entries.filter((entry) => this.#fits(entry)))
    this.#say()
  }

  /** @param {Entry} entry */
  #fits(entry) {
    return fits(entry, this.#text, this.#failures)
  }

  #fill() {
    this.#list.fill(this.#entries.filter((entry) => this.#fits(entry)))
    this.#say()
  }

  /** Whether the list is to hold still. */
  get #still() {
    return this.#paused || this.#list.isRead
  }

  /** Goes on, where nothing speaks against it. */
  #go() {
    if (this.#still) return this.#say()
    const held = this.#held
    this.#held = []
    this.#add(held)
  }

  /** Goes to the list, which holds still from then on. */
  focusList() {
    this.#list.element.focus()
  }

  /** Stops the list, or lets it go on. */
  pause() {
    this.#paused = !this.#paused
    setAttribute(this.#pause, 'aria-pressed', String(this.#paused))
    this.#go()
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

  /** Says how the list is: still, with how many to come; or empty, and why. */
  #say() {
    const held = this.#held.filter((entry) => this.#fits(entry)).length
    const text = this.#paused ? 'Go on' : 'Pause'
    setText(this.#pause, this.#still && held > 0 ? `${text} (${count(held)} new)` : text)
    setHidden(this.#empty, !this.#list.isEmpty)
    if (!this.#list.isEmpty) return
    const filtered = (this.#text !== '' || this.#failures) && this.#entries.length > 0
    const none = 'Nothing yet. Attempts are listed here as they end.'
    setText(this.#empty, filtered ? 'None of those seen so far.' : none)
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
}
