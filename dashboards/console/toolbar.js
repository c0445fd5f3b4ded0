/*
 * What picks among the groups and their peers, and the span that numbers are over.
 */

import { h, setAttribute, setHidden, setText, shape } from './dom.js'
import { setting } from './format.js'
import { choose, chosen, spans } from './settings.js'

export class Toolbar {
  /** What names must have in them, lower case. */
  text = ''
  /** Whether only what is in trouble is shown. */
  trouble = false
  #changed
  #filter
  #troubleButton
  #troubleText = h('span', {}, 'Trouble')
  #fold
  #rail
  #spans
  element

  /**
   * @param {() => void} changed asks for everything to be brought up to date
   * @param {() => void} fold opens or closes all groups
   */
  constructor(changed, fold) {
    this.#changed = changed
    this.#filter = h('input', {
      type: 'search',
      id: 'filter',
      placeholder: 'Filter groups and peers',
      'aria-label': 'Filter groups and peers',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.text = this.#filter.value.trim().toLowerCase()
        changed()
      },
    })
    this.#troubleButton = h(
      'button',
      { type: 'button', 'aria-pressed': 'false', onclick: () => this.troubleOnly() },
      shape('unavailable'),
      this.#troubleText,
    )
    this.#fold = h('button', { type: 'button', onclick: fold }, 'Close all')
    const about = 'Lists attempts beside the groups'
    this.#rail = h(
      'button',
      { type: 'button', id: 'rail-toggle', 'data-tip': about, onclick: () => this.#switchRail() },
      'Attempts',
    )
    this.#spans = spans.map((ms) =>
      h('button', { type: 'button', 'data-span': ms, onclick: () => this.#setSpan(ms) }, setting(ms)),
    )
    this.element = h(
      'div',
      { class: 'toolbar' },
      this.#filter,
      this.#troubleButton,
      this.#fold,
      h(
        'div',
        { class: 'choice', role: 'group', 'aria-label': 'Numbers are over the last' },
        h('span', { class: 'count' }, 'over'),
        ...this.#spans,
      ),
      this.#rail,
    )
    this.#show()
  }

  /** Puts the cursor into the filter. */
  focusFilter() {
    this.#filter.focus()
    this.#filter.select()
  }

  troubleOnly() {
    this.trouble = !this.trouble
    setAttribute(this.#troubleButton, 'aria-pressed', String(this.trouble))
    this.#changed()
  }

  nextSpan() {
    this.#setSpan(spans[(spans.indexOf(chosen().span) + 1) % spans.length] ?? spans[0])
  }

  /** @param {number} ms */
  #setSpan(ms) {
    choose({ span: ms })
    this.#show()
    this.#changed()
  }

  #switchRail() {
    choose({ rail: !chosen().rail })
    this.#show()
  }

  /** Shows what is chosen. */
  #show() {
    const { span, rail } = chosen()
    for (const button of this.#spans) {
      setAttribute(button, 'aria-pressed', String(Number(button.dataset['span']) === span))
    }
    setAttribute(this.#rail, 'aria-pressed', String(rail))
    document.documentElement.dataset['rail'] = rail ? 'on' : 'off'
  }

  /**
   * @param {number} troubles how many peers are in trouble
   * @param {number} groups how many there are
   * @param {boolean} open whether any is open
   */
  update(troubles, groups, open) {
    setText(this.#troubleText, troubles > 0 ? `Trouble ${troubles}` : 'Trouble')
    setAttribute(this.#troubleButton, 'data-trouble', troubles > 0 ? 'yes' : undefined)
    setHidden(this.#fold, groups < 2)
    setText(this.#fold, open ? 'Close all' : 'Open all')
  }
}
