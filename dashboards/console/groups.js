/*
 * The groups, one section each: how it does as a whole, and its peers.
 */

import { draw } from './chart.js'
import { arrange, h, setAttribute, setHidden, setText, shape } from './dom.js'
import { counted, duration, rate } from './format.js'
import { lineMs } from './peer-row.js'
import { PeerTable } from './peer-table.js'
import { chosen } from './settings.js'
import { stateOrder, stateShapes, states } from './words.js'

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./store.js').Group} Group */

export class GroupSection {
  /** @type {Group} */
  group
  element
  #states
  #figures
  #line
  #table

  /** @param {Group} group */
  constructor(group) {
    this.group = group
    const id = `group-${encodeURIComponent(group.name)}`
    this.#states = h('p', { class: 'states' })
    this.#figures = new Map(
      figures.map(({ name, title, about }) => {
        const value = h('dd')
        return [name, { value, item: h('div', { title: about }, h('dt', {}, title), value) }]
      }),
    )
    this.#line = h('canvas', { class: 'spark', 'aria-hidden': 'true' })
    this.#table = new PeerTable(group)
    this.element = h(
      'section',
      { class: 'group', 'aria-labelledby': id },
      h(
        'header',
        {},
        h('h2', { id }, group.name, ' ', h('small', {}, group.layout.method)),
        this.#states,
        this.#line,
        h('dl', { class: 'figures' }, ...Array.from(this.#figures.values(), ({ item }) => item)),
      ),
      h('div', { class: 'group-body' }, this.#table.element),
    )
  }

  update() {
    const { group } = this
    const ms = chosen().span
    const now = group.store.state?.at ?? 0
    this.#summary()
    for (const { name, read, trouble } of figures) {
      const figure = this.#figures.get(name)
      if (figure === undefined) continue
      setText(figure.value, read(group, ms))
      setAttribute(figure.item, 'data-trouble', trouble?.(group, ms) ? 'yes' : undefined)
    }
    draw(
      this.#line,
      [
        { points: group.line('requests', lineMs), ink: 'line', area: true },
        { points: group.line('serverErrors', lineMs), ink: 'trouble', area: true },
      ],
      now,
      lineMs,
    )
    this.#table.update(() => true)
  }

  #summary() {
    const counts = this.group.states
    const items = stateOrder.filter((state) => counts.has(state))
    const text = items.map((state) => `${counts.get(state)} ${state}`).join(' ')
    if (this.#states.dataset['text'] === text) return
    this.#states.dataset['text'] = text
    this.#states.replaceChildren(
      ...items.map((state) =>
        h(
          'span',
          { class: 'state', 'data-state': state, title: states[state] },
          shape(stateShapes[state]),
          `${counts.get(state)} ${state}`,
        ),
      ),
    )
    setHidden(this.#states, items.length === 0)
  }
}

/** @type {{ name: string, title: string, about: string, read: (group: Group, ms: number) => string, trouble?: (group: Group, ms: number) => boolean }[]} */
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
    about: 'Attempts after the first of a request',
    read: (group, ms) => rate(group.rate('retries', ms)),
  },
  {
    name: 'median',
    title: 'p50',
    about: 'Half of the requests took no longer',
    read: (group, ms) => duration(group.quantile(0.5, ms)),
  },
  {
    name: 'tail',
    title: 'p99',
    about: '99 of 100 requests took no longer',
    read: (group, ms) => duration(group.quantile(0.99, ms)),
  },
]

export class GroupList {
  /** @type {Store} */
  #store
  /** @type {Map<Group, GroupSection>} */
  #sections = new Map()
  #count
  #list
  element

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
    this.#count = h('p', { class: 'count' })
    this.#list = h('div', { class: 'groups' })
    this.element = h('div', {}, h('div', { class: 'toolbar' }, this.#count), this.#list)
  }

  update() {
    const { groups } = this.#store
    for (const group of this.#sections.keys()) if (!groups.includes(group)) this.#sections.delete(group)
    const sections = groups.map((group) => {
      const section = this.#sections.get(group) ?? new GroupSection(group)
      this.#sections.set(group, section)
      return section
    })
    arrange(
      this.#list,
      sections.map(({ element }) => element),
    )
    const peers = groups.reduce((sum, group) => sum + group.peers.length, 0)
    setText(this.#count, `${counted(groups.length, 'group')}, ${counted(peers, 'peer')}`)
    for (const section of sections) section.update()
  }
}
