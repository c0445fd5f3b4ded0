/*
 * All that is known of a peer, below its line: what the page has, and what the program says when it is asked.
 */

import { draw } from './chart.js'
import { h, setText } from './dom.js'
import { duration, rate } from './format.js'
import { PeerControls } from './peer-controls.js'
import { factsOf } from './peer-facts.js'
import { failing, Poll } from './poll.js'
import { chosen } from './settings.js'

/** @typedef {import('./peer.js').Peer} Peer */

/** The width of the charts: all that is remembered, milliseconds. */
const chartMs = 300_000

export class PeerDetails {
  /** @type {Peer} */
  #peer
  /** What the program has said of it. @type {any} */
  #told
  #poll
  #error = h('p', { class: 'count' })
  #rates = h('canvas', { class: 'chart', 'aria-hidden': 'true' })
  #times = h('canvas', { class: 'chart', 'aria-hidden': 'true' })
  #ratesText = h('figcaption')
  #timesText = h('figcaption')
  #blocks = h('div', { class: 'blocks' })
  #controls
  element

  /**
   * @param {Peer} peer
   * @param {(text: string) => void} search lists attempts that have to do with a word
   */
  constructor(peer, search) {
    this.#peer = peer
    // The groups of `stream` have their prefix everywhere but in the status tree, where they have a place of their own.
    const { isStream, name } = peer.group
    const [kind, group] = isStream ? ['stream', name.slice('stream/'.length)] : ['http', name]
    const path = `status/${kind}/upstreams/${encodeURIComponent(group)}/peers/${encodeURIComponent(peer.name)}?date=epoch`
    this.#poll = new Poll(
      path,
      (answer) => {
        this.#told = { ...answer, askedAt: peer.store.now }
        setText(this.#error, '')
        this.update()
      },
      (error) => setText(this.#error, `The rest is not known now: ${failing(error)}`),
    )
    this.#controls = new PeerControls(peer)
    this.element = h(
      'div',
      { class: 'details' },
      h(
        'div',
        { class: 'charts' },
        h('figure', {}, this.#ratesText, this.#rates),
        h('figure', {}, this.#timesText, this.#times),
      ),
      this.#blocks,
      this.#controls.element,
      h(
        'p',
        { class: 'panel-head' },
        h('button', { type: 'button', onclick: () => search(peer.name) }, 'Its attempts'),
        this.#error,
      ),
    )
  }

  start() {
    this.#poll.start()
  }

  stop() {
    this.#poll.stop()
  }

  update() {
    const peer = this.#peer
    const { now } = peer.group.store
    this.#controls.update()
    // Whoever reads a word with the keyboard is not to lose it.
    if (!this.#blocks.contains(document.activeElement)) {
      this.#blocks.replaceChildren(...factsOf(peer, this.#told))
    }
    setText(
      this.#ratesText,
      `Attempts a second, and failures, over five minutes: ${rate(peer.rate('attempts', chosen().span))} now`,
    )
    setText(
      this.#timesText,
      `Mean time to the ${this.#peer.group.isStream ? 'first byte' : 'header'}: ${duration(peer.mean('headerMs', 'headers', chosen().span))} now`,
    )
    draw(
      this.#rates,
      [
        { points: peer.line('attempts', chartMs), ink: 'line', area: true },
        { points: peer.line('failures', chartMs), ink: 'trouble', area: true },
      ],
      now,
      chartMs,
    )
    draw(
      this.#times,
      [{ points: peer.line('headerMs', chartMs, 'headers'), ink: 'calm', area: true }],
      now,
      chartMs,
    )
  }
}
