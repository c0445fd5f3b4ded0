/*
 * All groups, one section each, of which the toolbar picks.
 */

import { arrange, h, setHidden, setText } from './dom.js'
import { GroupSection } from './group-section.js'
import { methodWords } from './method-words.js'
import { chosen } from './settings.js'
import { Toolbar } from './toolbar.js'

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./group.js').Group} Group */
/** @typedef {import('./peer.js').Peer} Peer */

/** With more groups than this, or more peers in all, each begins as a line. */
const mostOpen = 4
const mostPeers = 600

export class GroupList {
  /** @type {Store} */
  #store
  /** @type {Map<Group, GroupSection>} */
  #sections = new Map()
  #list = h('div', { class: 'groups' })
  #empty = h('p', { class: 'empty' })
  #changed
  #search
  /** The group to be shown as soon as it is there. @type {string | undefined} */
  #wanted
  /** Generation of which the methods' words are known. */
  #described = 0
  toolbar
  element

  /**
   * @param {Store} store
   * @param {() => void} changed asks for everything to be brought up to date
   * @param {(text: string) => void} search lists attempts that have to do with a word
   */
  constructor(store, changed, search) {
    this.#store = store
    this.#changed = changed
    this.#search = search
    this.toolbar = new Toolbar(changed, () => this.foldAll())
    this.element = h('div', { id: 'view-groups' }, this.toolbar.element, this.#empty, this.#list)
  }

  /** Goes to the first peer that is shown, unless one has the focus already. */
  focusPeer() {
    if (document.activeElement?.closest('.peers tbody')) return
    const first = this.element.querySelector('.group-body:not([hidden]) .peer-name')
    if (first instanceof HTMLElement) first.focus()
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
    const { text, trouble } = this.toolbar
    let troubles = 0
    const shown = []
    for (const group of groups) {
      const section = this.#sections.get(group) ?? this.#add(group)
      const bad = group.peers.filter((peer) => peer.inTrouble(ms)).length
      troubles += bad + Number(group.canaryFails)
      const errors = (group.rate('serverErrors', ms) ?? 0) > 0
      const named = text === '' || groupHas(group, text) || group.peers.some((peer) => peerHas(peer, text))
      if (named && (!trouble || bad > 0 || errors || group.canaryFails)) shown.push(section)
    }
    arrange(
      this.#list,
      shown.map(({ element }) => element),
    )
    for (const section of shown) section.update((peer) => this.#shows(peer, ms))
    this.toolbar.update(
      troubles,
      groups.length,
      shown.some(({ isOpen }) => isOpen),
    )
    setHidden(this.#empty, shown.length > 0)
    setText(this.#empty, this.#nothing(groups.length))
    if (this.#wanted !== undefined) this.#show()
    void this.#describe()
  }

  /** @param {number} groups how many there are */
  #nothing(groups) {
    const { text, trouble } = this.toolbar
    if (this.#store.state === undefined) return 'Waiting for the first numbers.'
    if (this.#store.state.program.generation === 0)
      return 'The program starts: no configuration is in force yet.'
    if (groups === 0) return 'The configuration has no group of peers: add an "upstream" and reload.'
    if (!trouble || text !== '') return 'Nothing fits the filter.'
    return 'No trouble: every peer may be picked and answers, and no attempt failed within the span.'
  }

  /** @param {Peer} peer @param {number} ms */
  #shows(peer, ms) {
    const { text, trouble } = this.toolbar
    if (trouble && !peer.inTrouble(ms)) return false
    return text === '' || groupHas(peer.group, text) || peerHas(peer, text)
  }

  /** @param {Group} group */
  #add(group) {
    const section = new GroupSection(group, this.#changed, this.#search)
    const { groups } = this.#store
    const peers = groups.reduce((sum, { layout }) => sum + layout.peers.length, 0)
    section.open(groups.length <= mostOpen && peers <= mostPeers)
    this.#sections.set(group, section)
    this.#described = 0
    return section
  }

  /** Asks for the words of the methods where the configuration is another one. */
  async #describe() {
    const generation = this.#store.state?.program.generation ?? 0
    if (generation === this.#described || generation === 0) return
    this.#described = generation
    const words = await methodWords()
    for (const [group, section] of this.#sections) section.describe(words.get(group.name.toLowerCase()) ?? '')
  }
}

/** @param {Group} group @param {string} text lower case */
function groupHas({ name }, text) {
  return name.toLowerCase().includes(text)
}

/** @param {Peer} peer @param {string} text lower case */
function peerHas({ name, layout: { server, track }, state, waits }, text) {
  if (waits !== undefined && 'silent or slow'.includes(text)) return true
  return state.startsWith(text) || [name, server, track].some((one) => one.toLowerCase().includes(text))
}
