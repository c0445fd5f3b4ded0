/*
 * A group: how it does as a whole in a line, and when it is open all there is to say of it, its peers last.
 */

import { draw } from './chart.js'
import { h, setAttribute, setHidden, setText, shape } from './dom.js'
import { Explanation } from './explanation.js'
import { count, counted } from './format.js'
import { GroupChanges } from './group-changes.js'
import { figuresOf } from './group-figures.js'
import { GroupNotes } from './group-notes.js'
import { GroupShadow, GroupTracks } from './group-tracks.js'
import { lineMs } from './peer-row.js'
import { PeerTable } from './peer-table.js'
import { chosen } from './settings.js'
import { stalled, stateOrder, stateShapes, states } from './words.js'

/** @typedef {import('./group.js').Group} Group */

export class GroupSection {
  /** @type {Group} */
  group
  element
  #open = false
  #states = h('p', { class: 'states' })
  /** @type {readonly import('./group-figures.js').Figure[]} */
  #list
  #figures
  #line = h('canvas', { class: 'spark wide', 'aria-hidden': 'true' })
  #method = h('small')
  #toggle
  #why
  #body
  #notes
  #changes
  #tracks
  #shadow
  #table
  #none = h('p', { class: 'empty', hidden: true }, 'No peer of this group fits the filter.')
  /** @type {Explanation | undefined} */
  #explanation

  /**
   * @param {Group} group
   * @param {() => void} changed told when it was opened or closed by hand
   * @param {(text: string) => void} search lists attempts that have to do with a word
   */
  constructor(group, changed, search) {
    this.group = group
    const id = `group-${encodeURIComponent(group.name)}`
    this.#toggle = h(
      'button',
      {
        type: 'button',
        class: 'fold',
        'aria-expanded': 'false',
        'aria-controls': `${id}-body`,
        onclick: () => {
          this.open(!this.#open)
          changed()
        },
      },
      shape('open'),
      group.name,
    )
    this.#why = h(
      'button',
      {
        type: 'button',
        class: 'why',
        'aria-label': `Why there? ${group.name}`,
        'aria-expanded': 'false',
        onclick: () => this.explain(),
      },
      'Why there?',
    )
    this.#list = figuresOf(group.isStream)
    this.#figures = new Map(
      this.#list.map(({ name, title, about }) => {
        const value = h('dd')
        return [name, { value, item: h('div', { 'data-tip': about }, h('dt', {}, title), value) }]
      }),
    )
    this.#notes = new GroupNotes(group)
    this.#changes = new GroupChanges(group)
    this.#tracks = new GroupTracks(group)
    this.#shadow = new GroupShadow(group)
    this.#table = new PeerTable(group, search)
    this.#body = h(
      'div',
      { class: 'group-body', id: `${id}-body`, hidden: true },
      this.#notes.element,
      this.#tracks.element,
      this.#shadow.element,
      this.#table.element,
      this.#none,
      this.#changes.element,
    )
    this.element = h(
      'section',
      { class: 'group', id, 'aria-labelledby': `${id}-name` },
      h(
        'header',
        {},
        h('h2', { id: `${id}-name` }, this.#toggle),
        this.#method,
        this.#states,
        this.#line,
        h('dl', { class: 'figures' }, ...Array.from(this.#figures.values(), ({ item }) => item)),
        this.#why,
      ),
      this.#body,
    )
  }

  get isOpen() {
    return this.#open
  }

  /** @param {boolean} open */
  open(open) {
    if (this.#open === open) return
    this.#open = open
    setAttribute(this.#toggle, 'aria-expanded', String(open))
    setHidden(this.#body, !open)
    if (!open) this.#explanation?.stop()
    else if (this.#explanation?.element.isConnected) this.#explanation.start()
    if (!open) this.#table.stop()
  }

  /** Shows why a request would go where it would go, or no longer. */
  explain() {
    this.#explanation ??= new Explanation(this.group.name)
    const { element } = this.#explanation
    const show = !element.isConnected
    setAttribute(this.#why, 'aria-expanded', String(show))
    if (show) {
      this.open(true)
      this.#body.prepend(element)
      this.#explanation.start()
    } else {
      this.#explanation.stop()
      element.remove()
    }
  }

  /** The configuration's words for the method; empty where they are not known. @param {string} words */
  describe(words) {
    setText(this.#method, words === '' ? this.group.layout.method : words)
  }

  /** Stops whatever asks the program. */
  stop() {
    this.#explanation?.stop()
    this.#tracks.stop()
    this.#table.stop()
  }

  /** @param {(peer: import('./peer.js').Peer) => boolean} shown which peers are */
  update(shown) {
    const { group } = this
    const ms = chosen().span
    if (this.#method.textContent === '') this.describe('')
    this.#summary()
    for (const { name, about, read, more, trouble } of this.#list) {
      const figure = this.#figures.get(name)
      if (figure === undefined) continue
      setText(figure.value, read(group, ms))
      if (more !== undefined) setAttribute(figure.item, 'data-tip', about + more(group, ms))
      setAttribute(figure.item, 'data-trouble', trouble?.(group, ms) ? 'yes' : undefined)
    }
    draw(
      this.#line,
      [
        { points: group.line('requests', lineMs), ink: 'line', area: true },
        { points: group.line('serverErrors', lineMs), ink: 'trouble', area: true },
      ],
      group.store.now,
      lineMs,
    )
    this.#tracks.update(this.#open)
    if (!this.#open) return
    this.#notes.update()
    this.#changes.update()
    this.#shadow.update()
    const count = this.#table.update(shown)
    setHidden(this.#table.element, count === 0)
    setHidden(this.#none, count > 0)
    setText(
      this.#none,
      group.peers.length === 0 ? 'The group has no peer.' : 'No peer of this group fits the filter.',
    )
  }

  #summary() {
    const counts = this.group.states
    const items = stateOrder.filter((state) => counts.has(state))
    const { peers, attempts } = this.group.waits
    const waits = peers === 0 ? '' : `${counted(peers, 'peer')} silent or slow, ${count(attempts)} waiting`
    const text = [...items.map((state) => `${counts.get(state)} ${state}`), waits].join(' ')
    if (this.#states.dataset['text'] === text) return
    this.#states.dataset['text'] = text
    this.#states.replaceChildren(
      ...items.map((state) =>
        h(
          'span',
          { class: 'state', 'data-state': state, 'data-tip': states[state] },
          shape(stateShapes[state]),
          `${counts.get(state)} ${state}`,
        ),
      ),
      ...(waits === ''
        ? []
        : [
            h(
              'span',
              { class: 'state', 'data-state': 'waiting', 'data-tip': stalled },
              shape('waiting'),
              waits,
            ),
          ]),
    )
  }
}
