/*
 * All groups, and what picks among them: a filter, trouble alone, the span that numbers are over.
 */

import { arrange, byId, h, setAttribute, setHidden, setText, shape } from './dom.js'
import { counted, rate, setting } from './format.js'
import { GroupSection } from './group-section.js'
import { methodWords } from './method-words.js'
import { choose, chosen, spans } from './settings.js'
import { stateOrder } from './words.js'

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./group.js').Group} Group */
/** @typedef {import('./peer.js').Peer} Peer */

/** With more groups than this each begins as a line. */
const mostOpen = 4

export class GroupList {
  /** @type {Store} */
  #store
  /** @type {Map<Group, GroupSection>} */
  #sections = new Map()
  #text = ''
  #trouble = false
  /** The group to be shown as soon as it is there. @type {string | undefined} */
  #wanted
  #list = h('div', { class: 'groups' })
  #empty = h('p', { class: 'empty' })
  #filter
  #troubleButton
  #troubleText = h('span', {}, 'Trouble')
  #spanButtons
  #fold
  #search
  /** Generation of which the methods' words are known. */
  #described = 0
  element

  /**
   * @param {Store} store
   * @param {() => void} changed asks for everything to be brought up to date
   * @param {(text: string) => void} search lists attempts that have to do with a word
   */
  constructor(store, changed, search) {
    this.#store = store
    this.#search = search
    this.#filter = h('input', {
      type: 'search',
      id: 'filter',
      placeholder: 'Filter groups and peers',
      'aria-label': 'Filter groups and peers',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.#text = this.#filter.value.trim().toLowerCase()
        changed()
      },
    })
    this.#troubleButton = h(
      'button',
      { type: 'button', 'aria-pressed': 'false', onclick: () => this.troubleOnly() },
      shape('unavailable'),
      this.#troubleText,
    )
    this.#spanButtons = spans.map((ms) =>
      h(
        'button',
        { type: 'button', 'aria-pressed': 'false', 'data-span': ms, onclick: () => this.setSpan(ms) },
        setting(ms),
      ),
    )
    this.#fold = h('button', { type: 'button', onclick: () => this.foldAll() }, 'Close all')
    this.#changed = changed
    this.element = h(
      'div',
      { id: 'view-groups' },
      h(
        'div',
        { class: 'toolbar' },
        this.#filter,
        this.#troubleButton,
        this.#fold,
        h(
          'button',
          {
            type: 'button',
            id: 'rail-toggle',
            'aria-pressed': String(chosen().rail),
            'data-tip': 'Lists attempts beside the groups',
            onclick: () => this.#switchRail(),
          },
          'Attempts beside',
        ),
        h(
          'div',
          { class: 'choice', role: 'group', 'aria-label': 'Numbers are over the last' },
          h('span', { class: 'count' }, 'over'),
          ...this.#spanButtons,
        ),
      ),
      this.#empty,
      this.#list,
    )
    this.#showSpan()
    document.documentElement.dataset['rail'] = chosen().rail ? 'on' : 'off'
  }

  /** @type {() => void} */
  #changed

  /** Puts the cursor into the filter. */
  focusFilter() {
    this.#filter.focus()
    this.#filter.select()
  }

  troubleOnly() {
    this.#trouble = !this.#trouble
    setAttribute(this.#troubleButton, 'aria-pressed', String(this.#trouble))
    this.#changed()
  }

  /** @param {number} ms */
  setSpan(ms) {
    choose({ span: ms })
    this.#showSpan()
    this.#changed()
  }

  nextSpan() {
    this.setSpan(spans[(spans.indexOf(chosen().span) + 1) % spans.length] ?? spans[0])
  }

  #switchRail() {
    choose({ rail: !chosen().rail })
    setAttribute(byId('rail-toggle'), 'aria-pressed', String(chosen().rail))
    document.documentElement.dataset['rail'] = chosen().rail ? 'on' : 'off'
  }

  #showSpan() {
    for (const button of this.#spanButtons) {
      setAttribute(button, 'aria-pressed', String(Number(button.dataset['span']) === chosen().span))
    }
  }

  /** Opens all, or closes all where any is open. */
  foldAll() {
    const sections = [...this.#sections.values()]
    const open = !sections.some(({ isOpen }) => isOpen)
    for (const section of sections) section.open(open)
    this.#changed()
  }

  /** The section that has the focus, or else the first. @returns {GroupSection | undefined} */
  get current() {
    const sections = [...this.#sections.values()]
    return sections.find(({ element }) => element.contains(document.activeElement)) ?? sections[0]
  }

  /** Shows a group, as soon as it is there. @param {string} name */
  reveal(name) {
    this.#wanted = name
    this.update()
  }

  #show() {
    const section = [...this.#sections.values()].find(({ group }) => group.name === this.#wanted)
    if (section === undefined) return
    this.#wanted = undefined
    section.open(true)
    section.update(() => true)
    section.element.scrollIntoView()
  }

  update() {
    const { groups } = this.#store
    for (const [group, section] of this.#sections) {
      if (groups.includes(group)) continue
      section.stop()
      this.#sections.delete(group)
    }
    const ms = chosen().span
    let troubles = 0
    const shown = []
    for (const group of groups) {
      const section = this.#sections.get(group) ?? this.#add(group)
      const bad = group.peers.filter((peer) => peer.inTrouble(ms)).length
      const errors = (group.rate('serverErrors', ms) ?? 0) > 0
      troubles += bad
      const fits = this.#fits(group) && (!this.#trouble || bad > 0 || errors)
      if (fits) shown.push(section)
      section.update((peer) => this.#shows(peer, ms))
    }
    arrange(
      this.#list,
      shown.map(({ element }) => element),
    )
    setText(this.#troubleText, troubles > 0 ? `Trouble ${troubles}` : 'Trouble')
    setAttribute(this.#troubleButton, 'data-trouble', troubles > 0 ? 'yes' : undefined)
    setHidden(this.#fold, groups.length < 2)
    setText(this.#fold, shown.some(({ isOpen }) => isOpen) ? 'Close all' : 'Open all')
    this.#sum(ms)
    setHidden(this.#empty, shown.length > 0)
    setText(this.#empty, this.#nothing(groups.length))
    if (this.#wanted !== undefined) this.#show()
    void this.#describe()
  }

  /** @param {number} groups how many there are */
  #nothing(groups) {
    if (this.#store.state === undefined) return 'Waiting for the first numbers.'
    if (groups === 0) return 'The configuration has no group of peers: add an "upstream" and reload.'
    return this.#trouble && this.#text === ''
      ? 'No trouble: every peer may be picked, and no attempt failed within the span.'
      : 'Nothing fits the filter.'
  }

  /** @param {number} ms */
  #sum(ms) {
    const { groups } = this.#store
    const counts = new Map()
    let requests
    for (const group of groups) {
      for (const [state, count] of group.states) counts.set(state, (counts.get(state) ?? 0) + count)
      const one = group.rate('requests', ms)
      if (one !== undefined) requests = (requests ?? 0) + one
    }
    const peers = groups.reduce((sum, group) => sum + group.peers.length, 0)
    const states = stateOrder
      .filter((state) => counts.has(state))
      .map((state) => `${counts.get(state)} ${state}`)
    const total = requests === undefined ? '' : `, ${rate(requests)} requests/s`
    setText(
      byId('summary'),
      groups.length === 0
        ? ''
        : `${counted(groups.length, 'group')}, ${counted(peers, 'peer')}: ${states.join(', ')}${total}`,
    )
  }

  /** @param {Group} group */
  #fits(group) {
    return (
      this.#text === '' ||
      group.name.toLowerCase().includes(this.#text) ||
      group.peers.some((peer) => this.#named(peer))
    )
  }

  /** @param {Peer} peer */
  #named({ name, layout, state }) {
    const text = this.#text
    return (
      name.toLowerCase().includes(text) ||
      layout.server.toLowerCase().includes(text) ||
      layout.track.toLowerCase().includes(text) ||
      state.startsWith(text)
    )
  }

  /** @param {Peer} peer @param {number} ms */
  #shows(peer, ms) {
    if (this.#trouble && !peer.inTrouble(ms)) return false
    return this.#text === '' || peer.group.name.toLowerCase().includes(this.#text) || this.#named(peer)
  }

  /** @param {Group} group */
  #add(group) {
    const section = new GroupSection(group, this.#changed, this.#search)
    section.open(this.#store.groups.length <= mostOpen)
    this.#sections.set(group, section)
    this.#described = 0
    return section
  }

  /** Asks for the words of the methods where the configuration is another one. */
  async #describe() {
    const generation = this.#store.state?.program.generation ?? 0
    if (generation === this.#described) return
    this.#described = generation
    const words = await methodWords()
    for (const [group, section] of this.#sections) section.describe(words.get(group.name.toLowerCase()) ?? '')
  }
}
