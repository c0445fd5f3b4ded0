/*
 * The fleet: who this instance is in it, how the way to Redis is, and what the groups share.
 */

import { h, setHidden } from './dom.js'
import { ago, count, counted, duration, percent, setting, span, time } from './format.js'

/** @typedef {import('./store.js').Store} Store */

export class FleetView {
  /** @type {Store} */
  #store
  #facts = h('dl', { class: 'pairs' })
  #groups = h('tbody')
  #table
  #members = h('tbody')
  #membersTable
  element

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
    const columns = ['Group', 'Instances', 'Heard', 'Begun anew']
    this.#table = h(
      'table',
      { class: 'plain' },
      h('caption', {}, 'What is shared'),
      h('thead', {}, h('tr', {}, ...columns.map((title) => h('th', { scope: 'col' }, title)))),
      this.#groups,
    )
    this.#membersTable = h(
      'table',
      { class: 'plain' },
      h('caption', {}, 'Members'),
      h('thead', {}, h('tr', {}, ...['Instance', 'Shares'].map((title) => h('th', { scope: 'col' }, title)))),
      this.#members,
    )
    this.element = h(
      'section',
      { id: 'view-fleet', hidden: true, 'aria-labelledby': 'fleet-title' },
      h('div', { class: 'panel-head' }, h('h2', { id: 'fleet-title' }, 'Fleet')),
      h(
        'div',
        { class: 'blocks' },
        h('section', { class: 'block' }, h('h3', {}, 'This instance'), this.#facts),
        h('div', { class: 'scroll' }, this.#membersTable),
        h('div', { class: 'scroll' }, this.#table),
      ),
    )
  }

  /** Whether there is one. */
  get there() {
    return this.#store.state?.program.fleet !== undefined
  }

  update() {
    const fleet = this.#store.state?.program.fleet
    if (fleet === undefined || this.element.hidden) return
    const { now } = this.#store
    const all = fleet.exchanges + fleet.failures
    /** @type {[string, string][]} */
    const facts = [
      ['Shares as', fleet.group],
      ['Name', fleet.name],
      ['Id', fleet.id],
      ['Redis', fleet.servers.join(', ')],
      [
        'Reached',
        `${fleet.up ? 'yes' : fleet.refused ? 'yes, and it could not be used' : 'no'}, since ${time(fleet.since)} (${span(now - fleet.since)})`,
      ],
      ['Last fault', fleet.error ?? 'none since it was reached'],
      [
        'Heard',
        fleet.silence === undefined
          ? 'never'
          : fleet.silence < 1000
            ? `${count(fleet.silence)} ms ago`
            : ago(fleet.silence),
      ],
      [
        'Exchanges',
        `${count(fleet.exchanges)}, ${count(fleet.failures)} failed${all > 0 ? ` (${percent(fleet.failures / all)})` : ''}`,
      ],
      ['Round trip', duration(fleet.roundTripMs)],
      ['Lost', counted(fleet.losses, 'time')],
      ['Interval', setting(fleet.interval)],
      ['Gone after', setting(fleet.ttl)],
      ['Needed to be ready', fleet.required ? 'yes' : 'no'],
    ]
    this.#facts.replaceChildren(...facts.flatMap(([title, text]) => [h('dt', {}, title), h('dd', {}, text)]))
    const groups = this.#store.groups.filter(({ state }) => state?.fleet !== undefined)
    this.#groups.replaceChildren(
      ...groups.map(({ name, state }) => {
        const [members, age, resets] = state?.fleet ?? [0, null, 0]
        const heard = age === null ? 'nothing yet' : age < 1000 ? `${count(age)} ms ago` : ago(age)
        return h(
          'tr',
          {},
          h('th', { scope: 'row', class: 'mono' }, name),
          h('td', {}, members === 0 ? 'not known yet' : count(members)),
          h('td', {}, heard),
          h('td', {}, resets === 0 ? 'never' : counted(resets, 'time')),
        )
      }),
    )
    setHidden(this.#table, groups.length === 0)
    this.#list(fleet.id, groups)
  }

  /**
   * @param {string} own id of this instance
   * @param {import('./group.js').Group[]} groups those that are shared
   */
  #list(own, groups) {
    /** @type {Map<string, string[]>} */
    const shares = new Map()
    for (const { name, layout } of groups) {
      for (const id of layout.roster ?? []) shares.set(id, [...(shares.get(id) ?? []), name])
    }
    setHidden(this.#membersTable, shares.size === 0)
    const lines = [...shares].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    this.#members.replaceChildren(
      ...lines.map(([id, names]) => {
        const all = names.length === groups.length && groups.length > 1
        return h(
          'tr',
          {},
          h('th', { scope: 'row', class: 'mono' }, id, id === own ? h('small', {}, ' this one') : null),
          h('td', {}, all ? `all ${groups.length} groups` : names.join(', ')),
        )
      }),
    )
  }
}
