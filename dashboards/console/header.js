/*
 * The head of the page: how the program is, in a line, and banners for what nobody should overlook.
 */

import { byId, h, setAttribute, setHidden, setShape, setText } from './dom.js'
import { ago, count, counted, rate, span, time } from './format.js'
import { chosen } from './settings.js'
import { stateOrder } from './words.js'

/** @typedef {import('./store.js').Store} Store */

/** What the link is like. @typedef {{ up: boolean, since: number, why: string, next: number | undefined, waits: boolean }} LinkState */

/** @type {readonly { id: string, title: string, about: string }[]} */
const facts = [
  { id: 'up', title: 'Up', about: 'Since the program was started' },
  {
    id: 'configuration',
    title: 'Configuration',
    about: 'How many have been loaded, and how the last reload went',
  },
  { id: 'threads', title: 'Threads', about: 'Threads that serve clients; those that died were replaced' },
  {
    id: 'connections',
    title: 'Connections',
    about: 'Of clients: with a request or a session in progress, and open in all',
  },
  { id: 'fleet', title: 'Fleet', about: 'Other instances that share what they learn' },
]

export class Header {
  /** @type {Store} */
  #store
  #values = new Map()
  #readiness = byId('readiness')
  #banners = byId('banners')
  /** @type {Map<string, HTMLElement>} */
  #shown = new Map()

  /** @param {Store} store */
  constructor(store) {
    this.#store = store
    // What stays below it at the top has to know how high it is.
    new ResizeObserver(([entry]) => {
      const height = entry?.borderBoxSize[0]?.blockSize ?? 0
      document.documentElement.style.setProperty('--top', `${height}px`)
    }).observe(byId('top'))
    for (const { id, title, about } of facts) {
      const value = h('dd')
      const item = h('div', { 'data-tip': about }, h('dt', {}, title), value)
      this.#values.set(id, { item, value })
      byId('facts').append(item)
    }
  }

  /**
   * @param {LinkState} link
   * @param {boolean} outdated whether the program has another page by now
   */
  update(link, outdated) {
    const { state, layout } = this.#store
    setText(byId('version'), layout?.version ?? '')
    this.#ready(link)
    if (state !== undefined && layout !== undefined) {
      const { program } = state
      this.#set('up', span(state.at - layout.startedAt))
      const { reload } = program
      let loaded = `${count(program.generation)}, loaded ${ago(state.at - program.loadedAt)}`
      if (reload?.ok === false) loaded = `${count(program.generation)}, reload failed`
      this.#set('configuration', loaded, reload?.ok === false)
      const [running, replaced] = program.threads
      this.#set(
        'threads',
        replaced === 0 ? count(running) : `${count(running)}, ${count(replaced)} replaced`,
        replaced > 0,
      )
      const [, dropped, active, idle, lost] = program.connections
      const parts = [`${count(active)} active`, `${count(active + idle)} open`]
      if (dropped > 0) parts.push(`${count(dropped)} turned away`)
      if (lost > 0) parts.push(`${count(lost)} datagrams dropped`)
      this.#set('connections', parts.join(', '), dropped > 0)
      this.#set('fleet', this.#fleet(program.fleet), program.fleet?.up === false)
    }
    this.#sum()
    this.#warn(link, outdated)
  }

  /** All groups together, in a line. */
  #sum() {
    const { groups } = this.#store
    const ms = chosen().span
    const counts = new Map()
    /** @type {Map<string, number>} */
    const asked = new Map()
    let waiting = 0
    for (const group of groups) {
      for (const [state, number] of group.states) counts.set(state, (counts.get(state) ?? 0) + number)
      waiting += group.waits.peers
      const one = group.rate('requests', ms)
      if (one !== undefined) asked.set(group.asked, (asked.get(group.asked) ?? 0) + one)
    }
    const peers = groups.reduce((sum, group) => sum + group.peers.length, 0)
    const states = stateOrder
      .filter((state) => counts.has(state))
      .map((state) => `${counts.get(state)} ${state}`)
    if (waiting > 0) states.push(`${count(waiting)} silent or slow`)
    const total = Array.from(asked, ([what, one]) => `, ${rate(one)} ${what}s/s`).join('')
    const text = `${counted(groups.length, 'group')}, ${counted(peers, 'peer')}: ${states.join(', ')}${total}`
    setText(byId('summary'), groups.length === 0 ? '' : text)
  }

  /** @param {LinkState} link */
  #ready(link) {
    const { state } = this.#store
    let [text, look, tone] = ['connecting', 'checking', 'calm']
    if (!link.up && link.why !== '') [text, look, tone] = ['no link', 'unhealthy', 'bad']
    else if (state?.program.draining) [text, look, tone] = ['draining', 'draining', 'warn']
    else if (state?.program.unready !== undefined) [text, look, tone] = ['not ready', 'unavailable', 'bad']
    else if (state !== undefined) [text, look, tone] = ['ready', 'up', 'good']
    setText(/** @type {Node} */ (this.#readiness.lastElementChild), text)
    setShape(/** @type {any} */ (this.#readiness.firstElementChild), look)
    setAttribute(this.#readiness, 'data-tone', tone)
  }

  /** @param {import('./told.js').FleetState | undefined} fleet */
  #fleet(fleet) {
    if (fleet === undefined) return undefined
    if (!fleet.up) return 'not reached'
    let members = 0
    for (const { state } of this.#store.groups) members = Math.max(members, state?.fleet?.[0] ?? 0)
    return members === 0 ? 'reached' : counted(members, 'instance')
  }

  /**
   * @param {string} id
   * @param {string | undefined} text undefined hides it
   * @param {boolean} [trouble]
   */
  #set(id, text, trouble = false) {
    const { item, value } = this.#values.get(id)
    setHidden(item, text === undefined)
    setText(value, text ?? '')
    setAttribute(item, 'data-trouble', trouble ? 'yes' : undefined)
  }

  /**
   * @param {LinkState} link
   * @param {boolean} outdated
   */
  #warn(link, outdated) {
    const { state } = this.#store
    const program = state?.program
    const lost = !link.up && link.why !== ''
    this.#banner('link', 'bad', lost ? linkText(link, state?.at) : undefined)
    this.#banner(
      'drain',
      'warn',
      program?.draining ? 'It drains: work in progress ends, and then the process does.' : undefined,
    )
    const { reload, unready, fleet } = program ?? {}
    this.#banner(
      'ready',
      'bad',
      program?.draining || unready === undefined ? undefined : `Not ready: ${unready}`,
    )
    const failed =
      reload?.ok === false
        ? `The reload at ${time(reload.at)} failed, so the configuration before it goes on: ${reload.error}`
        : undefined
    this.#banner('reload', 'bad', failed)
    const apart =
      fleet?.up === false
        ? `The fleet is not reached since ${time(fleet.since)}: ${fleet.error ?? 'no answer yet'}. Balancing goes on by what this instance sees itself.`
        : undefined
    this.#banner('fleet', 'warn', apart)
    this.#banner(
      'page',
      'calm',
      outdated ? 'The program was updated, and has another page by now: load it anew.' : undefined,
    )
  }

  /**
   * @param {string} id
   * @param {'bad' | 'warn' | 'calm'} tone
   * @param {string | undefined} text
   */
  #banner(id, tone, text) {
    let banner = this.#shown.get(id)
    if (text === undefined) {
      banner?.remove()
      this.#shown.delete(id)
      return
    }
    if (banner === undefined) {
      banner = h('p', { class: 'banner', 'data-tone': tone, 'data-banner': id })
      this.#shown.set(id, banner)
      this.#banners.append(banner)
    }
    setText(banner, text)
  }
}

/**
 * @param {LinkState} link
 * @param {number | undefined} at what the page shows is from
 */
function linkText({ since, why, next }, at) {
  const seconds = span(Date.now() - since)
  const old = at === undefined ? 'Nothing has been seen yet.' : `What you see is from ${time(at)}.`
  const again = next === undefined ? 'Trying again now.' : `Trying again in ${Math.ceil(next / 1000)} s.`
  return `No link since ${seconds} (${why}). ${old} ${again}`
}
