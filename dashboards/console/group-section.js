/*
 * A group: how it does as a whole in a line, and when it is open all there is to say of it, its peers last.
 */

import { draw } from './chart.js'
import { h, setAttribute, setHidden, setText, shape } from './dom.js'
import { Explanation } from './explanation.js'
import { count, counted, duration, rate, setting } from './format.js'
import { GroupChanges } from './group-changes.js'
import { GroupNotes } from './group-notes.js'
import { GroupShadow, GroupTracks } from './group-tracks.js'
import { lineMs } from './peer-row.js'
import { PeerTable } from './peer-table.js'
import { chosen } from './settings.js'
import { stalled, stateOrder, stateShapes, states } from './words.js'

/** @typedef {import('./group.js').Group} Group */

/** @type {readonly { name: string, title: string, about: string, read: (group: Group, ms: number) => string, more?: (group: Group, ms: number) => string, trouble?: (group: Group, ms: number) => boolean }[]} */
const figures = [
  {
    name: 'requests',
    title: 'requests/s',
    about: 'Requests that asked the group for a peer',
    read: (group, ms) => rate(group.rate('requests', ms)),
  },
  {
    name: 'errors',
    title: 'errors/s',
    about: 'Requests that ended with 5xx for their clients',
    read: (group, ms) => rate(group.rate('serverErrors', ms)),
    trouble: (group, ms) => (group.rate('serverErrors', ms) ?? 0) > 0,
  },
  {
    name: 'retries',
    title: 'retries/s',
    about: 'Attempts after the first of a request: failures that clients did not see',
    read: (group, ms) => rate(group.rate('retries', ms)),
  },
  {
    name: 'median',
    title: 'p50',
    about: 'Half of the requests took no longer',
    read: (group, ms) => quantileText(group, 0.5, ms),
    more: (group, ms) => bucketText(group, 0.5, ms),
  },
  {
    name: 'tail',
    title: 'p99',
    about: '99 of 100 requests took no longer',
    read: (group, ms) => quantileText(group, 0.99, ms),
    more: (group, ms) => bucketText(group, 0.99, ms),
  },
]

/**
 * A bound where only that is known: none took longer. Else a guess, between the two bounds of the bucket.
 * @param {Group} group
 * @param {number} part
 * @param {number} ms
 */
function quantileText(group, part, ms) {
  const found = group.bucketOf(part, ms)
  if (found === undefined) return duration(undefined)
  if (found.high === Number.POSITIVE_INFINITY) return `>${setting(found.low)}`
  return found.top ? `≤${setting(found.high)}` : `~${duration(group.quantile(part, ms))}`
}

/**
 * @param {Group} group
 * @param {number} part
 * @param {number} ms
 */
function bucketText(group, part, ms) {
  const found = group.bucketOf(part, ms)
  if (found === undefined) return ''
  const { low, high, top } = found
  if (high === Number.POSITIVE_INFINITY)
    return `. The histogram tells only that it is more than ${setting(low)}.`
  const bounds = `. The histogram tells that it is between ${setting(low)} and ${setting(high)}`
  return top
    ? `${bounds}, and that no request took longer than that.`
    : `${bounds}; in between it is a guess.`
}

export class GroupSection {
  /** @type {Group} */
  group
  element
  #open = false
  #states = h('p', { class: 'states' })
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
    this.#figures = new Map(
      figures.map(({ name, title, about }) => {
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
    for (const { name, about, read, more, trouble } of figures) {
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
