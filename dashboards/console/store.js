/*
 * What the page knows: the last state that the program told, and numbers of the last minutes. Nothing here touches the
 * page.
 */

import { Group } from './group.js'
import { History } from './history.js'
import { Peer } from './peer.js'

export class Store {
  history = new History()
  /** @type {import('./told.js').Layout | undefined} */
  layout
  /** @type {import('./told.js').State | undefined} */
  state
  /** In the order of the configuration. @type {Group[]} */
  groups = []
  /** @type {Map<string, number>} */
  #columnAt = new Map()
  /** @type {{ peer: Peer, before: string }[]} */
  #changes = []

  /** @param {string} name of a number of a peer */
  columnAt(name) {
    return this.#columnAt.get(name) ?? -1
  }

  /** When the last state was, wall clock milliseconds of the program; 0 before the first. */
  get now() {
    return this.state?.at ?? 0
  }

  /**
   * Takes in what there is. What was known of groups and peers that stay, stays.
   * @param {import('./told.js').Layout} layout
   * @returns {boolean} whether it is another run of the program, so that nothing from before counts
   */
  takeLayout(layout) {
    const restarted = this.layout !== undefined && this.layout.startedAt !== layout.startedAt
    if (restarted) {
      this.groups = []
      this.history.clear()
      this.#changes = []
    }
    this.layout = layout
    this.#columnAt = new Map(layout.words.peer.map((name, at) => [name, at]))
    const groups = new Map(this.groups.map((group) => [group.name, group]))
    this.groups = layout.groups.map((about) => {
      const group = groups.get(about.name) ?? new Group(this, about)
      // Another one of that name would be another group.
      groups.delete(about.name)
      group.layout = about
      const peers = new Map(group.peers.map((peer) => [peer.key, peer]))
      group.peers = about.peers.map((line) => {
        const peer = peers.get(line.key) ?? new Peer(group, line)
        peer.layout = line
        peer.probes = new Map()
        return peer
      })
      return group
    })
    return restarted
  }

  /** @param {import('./told.js').State} state */
  takeState(state) {
    const { layout } = this
    if (layout === undefined || state.layout !== layout.layout) return
    const first = this.history.slot < 0
    this.state = state
    if (this.history.advance(state.at)) {
      for (const group of this.groups) for (const one of [group, ...group.peers]) one.forget()
    }
    for (const [g, group] of this.groups.entries()) {
      const told = state.groups[g]
      if (told === undefined) continue
      group.take(told, layout)
      for (const [p, peer] of group.peers.entries()) {
        const row = told.peers[p]
        const before = row && peer.take(row, first)
        if (before !== undefined) this.#changes.push({ peer, before })
      }
    }
  }

  /** @param {{ layout: number, rows: [number, number, number, ...(number | string | null)[]][] }} probes */
  takeProbes({ layout, rows }) {
    const words = this.layout?.words
    if (words === undefined || layout !== this.layout?.layout) return
    for (const [g, p, at, ...values] of rows) {
      const group = this.groups[g]
      const peer = group?.peers[p]
      const probe = group?.layout.probes[at]
      if (peer === undefined || probe === undefined) continue
      /** @param {string} name */
      const value = (name) => values[words.probe.indexOf(name)] ?? undefined
      const passed = value('passed')
      peer.probes.set(at, {
        probe,
        passed: passed === undefined ? undefined : passed === 1,
        detail: String(value('detail') ?? ''),
        at: optional(value('at')),
        tookMs: optional(value('tookMs')),
        fails: Number(value('fails')),
        passes: Number(value('passes')),
        nextAt: Number(value('nextAt')),
        shared: value('shared') === 1,
        by: value('by') === undefined ? undefined : String(value('by')),
        leavesMs: Number(value('leavesMs')),
      })
    }
  }

  /** Peers that have changed their state since this was last called, with the state before. */
  takeChanges() {
    const changes = this.#changes
    this.#changes = []
    return changes
  }
}

/** @param {number | string | undefined} value */
function optional(value) {
  return value === undefined ? undefined : Number(value)
}
