/*
 * What can be made of a peer: below what is known of it.
 */

import { changesOf } from './change-texts.js'
import { confirm } from './dialogs.js'
import { h, setAttribute, setHidden, setText } from './dom.js'
import { pathOf, request } from './requests.js'

/** @typedef {import('./peer.js').Peer} Peer */

const orders = /** @type {const} */ ([
  [
    'up',
    'Up',
    'It may be picked; failures that have set it aside are forgotten. What probes have found stays.',
  ],
  ['drain', 'Drain', 'It gets nothing new but what is bound to it, and ends what it has begun.'],
  ['down', 'Down', 'It gets nothing new, and ends what it has begun.'],
])

export class PeerControls {
  /** @type {Peer} */
  #peer
  #orders
  #weight
  #limit
  #all = h('input', { type: 'checkbox' })
  #allLabel
  #allText = h('span')
  #back
  #remove
  #said = h('p', { class: 'said', role: 'status' })
  #busy = false
  element

  /** @param {Peer} peer */
  constructor(peer) {
    this.#peer = peer
    this.#orders = orders.map(([order, title, about]) =>
      h(
        'button',
        {
          type: 'button',
          'data-order': order,
          'data-tip': about,
          'aria-pressed': 'false',
          onclick: () => void this.#patch({ state: order }),
        },
        title,
      ),
    )
    this.#weight = new NumberField('Weight', 1, (value) => this.#patch({ weight: value }))
    this.#limit = new NumberField('Most connections', 0, (value) => this.#patch({ max_conns: value }))
    this.#allLabel = h('label', { class: 'check' }, this.#all, this.#allText)
    this.#back = h('button', { type: 'button', onclick: () => void this.#takeBack() }, 'Take back')
    this.#remove = h('button', { type: 'button', onclick: () => void this.#leave() }, 'Remove…')
    this.element = h(
      'fieldset',
      { class: 'controls' },
      h('legend', {}, `Change ${peer.name}`),
      h('div', { class: 'choice', role: 'group', 'aria-label': 'State' }, ...this.#orders),
      this.#weight.element,
      this.#limit.element,
      this.#allLabel,
      this.#back,
      this.#remove,
      this.#said,
    )
  }

  update() {
    const { layout, group } = this.#peer
    setHidden(this.element, layout.retired === true)
    const order = layout.order ?? 'up'
    for (const button of this.#orders) {
      setAttribute(button, 'aria-pressed', String(button.dataset['order'] === order))
    }
    this.#weight.show(layout.weight)
    this.#limit.show(layout.maxConns)
    setHidden(this.#allLabel, layout.line === undefined)
    setText(this.#allText, ` all addresses of ${layout.line ?? ''}`)
    setHidden(
      this.#back,
      changesOf(this.#peer).every(({ kind }) => kind === 'added'),
    )
    setHidden(this.#remove, !group.layout.open)
  }

  /** Whom it is about: the peer, or all of its line. */
  get #address() {
    const { name, line } = this.#peer.layout
    return this.#all.checked && line !== undefined ? line : name
  }

  /** @param {object} wish */
  #patch(wish) {
    return this.#ask('PATCH', pathOf(this.#peer.group.name, this.#address), wish)
  }

  async #takeBack() {
    const { name } = this.#peer.group
    const held = changesOf(this.#peer).filter(({ kind }) => kind !== 'added')
    for (const { kind, target } of held) {
      if (!(await this.#ask('PATCH', pathOf(name, target), { [kind]: null }))) return
    }
  }

  async #leave() {
    const { group } = this.#peer
    const address = this.#address
    const text =
      'It gets nothing new, and is gone once its last request has ended. It stays away over reloads, as long as its line in the file is the same.'
    if (!(await confirm(`Remove ${address} from ${group.name}?`, text, 'Remove'))) return
    await this.#ask('DELETE', pathOf(group.name, address))
  }

  /**
   * @param {'PATCH' | 'DELETE'} method
   * @param {string} path
   * @param {object} [body]
   * @returns {Promise<boolean>} whether it is done
   */
  async #ask(method, path, body) {
    if (this.#busy) return false
    this.#busy = true
    setAttribute(this.#said, 'data-trouble', undefined)
    setText(this.#said, 'asking…')
    const answer = await request(method, path, body)
    this.#busy = false
    setAttribute(this.#said, 'data-trouble', answer?.ok === false ? 'yes' : undefined)
    setText(this.#said, answer === undefined ? '' : answer.ok ? 'done' : answer.error)
    return answer?.ok === true
  }
}

/** A number that is sent when it is given, and shows what holds as long as nobody writes in it. */
class NumberField {
  #input
  #written = false
  element

  /**
   * @param {string} title
   * @param {number} least
   * @param {(value: number) => Promise<boolean>} send
   */
  constructor(title, least, send) {
    const give = async () => {
      if (this.#input.value === '') return
      if (await send(Number(this.#input.value))) this.#written = false
    }
    this.#input = h('input', {
      type: 'number',
      min: least,
      oninput: () => {
        this.#written = true
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter') void give()
        if (event.key !== 'Escape' || !this.#written) return
        // What was written is let be, and the details stay open.
        this.#written = false
        event.stopPropagation()
      },
    })
    this.element = h(
      'span',
      { class: 'number' },
      h('label', { class: 'field' }, title, this.#input),
      h(
        'button',
        { type: 'button', 'aria-label': `Set ${title.toLowerCase()}`, onclick: () => void give() },
        'Set',
      ),
    )
  }

  /** @param {number} value */
  show(value) {
    const text = String(value)
    if (!this.#written && this.#input.value !== text) this.#input.value = text
  }
}
