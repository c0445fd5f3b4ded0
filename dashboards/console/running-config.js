/*
 * The configuration that runs, with its lines numbered, and a search in it.
 */

import { h, setHidden, setText } from './dom.js'
import { count } from './format.js'

/** Lines are laid out in pieces of so many, of which a browser draws those that are seen. */
const piece = 200

export class RunningConfig {
  #about = h('p', { class: 'count' })
  #error = h('p', { class: 'empty', hidden: true })
  #text = h('div', { class: 'code', tabindex: '0', role: 'region', 'aria-label': 'The configuration' })
  #found = h('span', { class: 'count', role: 'status' })
  #search
  #formats
  /** @type {'yaml' | 'json'} */
  #format = 'yaml'
  /** @type {string[]} */
  #lines = []
  /** @type {HTMLElement[]} */
  #marks = []
  #at = -1
  #generation = 0
  /** What was changed while that generation runs, as a text. */
  #changes = ''
  element

  constructor() {
    this.#search = h('input', {
      type: 'search',
      placeholder: 'Search the configuration',
      'aria-label': 'Search the configuration',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => this.#show(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter') this.#step(event.shiftKey ? -1 : 1)
      },
    })
    this.#formats = /** @type {const} */ (['yaml', 'json']).map((format) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': String(format === this.#format),
          'data-format': format,
          onclick: () => this.#use(format),
        },
        format.toUpperCase(),
      ),
    )
    this.element = h(
      'section',
      { id: 'view-config', hidden: true, 'aria-labelledby': 'config-title' },
      h('div', { class: 'panel-head' }, h('h2', { id: 'config-title' }, 'Configuration'), this.#about),
      h(
        'div',
        { class: 'toolbar' },
        this.#search,
        h('button', { type: 'button', 'aria-label': 'Previous', onclick: () => this.#step(-1) }, '↑'),
        h('button', { type: 'button', 'aria-label': 'Next', onclick: () => this.#step(1) }, '↓'),
        this.#found,
        h('div', { class: 'choice', role: 'group', 'aria-label': 'Form' }, ...this.#formats),
        h('button', { type: 'button', onclick: () => this.#copy() }, 'Copy'),
      ),
      this.#error,
      this.#text,
    )
  }

  focusSearch() {
    this.#search.focus()
    this.#search.select()
  }

  /**
   * Shows the configuration of a generation, where it is not the one that is shown.
   * @param {number} generation
   * @param {string} changes what was changed while it runs
   */
  async update(generation, changes) {
    if (generation === this.#generation && changes === this.#changes) return
    this.#generation = generation
    this.#changes = changes
    await this.#load()
  }

  /** @param {'yaml' | 'json'} format */
  #use(format) {
    this.#format = format
    for (const button of this.#formats)
      button.setAttribute('aria-pressed', String(button.dataset['format'] === format))
    void this.#load()
  }

  async #load() {
    const { name, text } = await this.#ask()
    setHidden(this.#error, text !== undefined)
    if (text === undefined) {
      setText(this.#error, name)
      // The next look tries anew.
      this.#generation = 0
      return
    }
    this.#lines = text.replace(/\n$/, '').split('\n')
    setText(
      this.#about,
      `generation ${count(this.#generation)}, ${count(this.#lines.length)} lines, secrets masked`,
    )
    this.#show()
  }

  /** @returns {Promise<{ name: string, text: string | undefined }>} */
  async #ask() {
    try {
      const response = await fetch(`config?format=${this.#format}`, { cache: 'no-store' })
      if (!response.ok)
        return { name: `The configuration is not told: status ${response.status}`, text: undefined }
      return { name: '', text: await response.text() }
    } catch {
      return { name: 'The configuration is not told: no answer.', text: undefined }
    }
  }

  #show() {
    const wanted = this.#search.value.trim().toLowerCase()
    this.#marks = []
    this.#at = -1
    const pieces = []
    for (let first = 0; first < this.#lines.length; first += piece) {
      const lines = this.#lines.slice(first, first + piece)
      const start = h(
        'ol',
        { start: first + 1 },
        ...lines.map((line) => h('li', {}, ...this.#marked(line, wanted))),
      )
      start.style.setProperty('--lines', String(lines.length))
      start.style.setProperty('counter-reset', `line ${first}`)
      pieces.push(start)
    }
    this.#text.replaceChildren(...pieces)
    if (wanted === '') setText(this.#found, '')
    else if (this.#marks.length === 0) setText(this.#found, 'not found')
    else this.#step(1, false)
  }

  /**
   * @param {string} line
   * @param {string} wanted lower case
   */
  #marked(line, wanted) {
    if (wanted === '') return [line]
    const parts = []
    const low = line.toLowerCase()
    let from = 0
    for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
      const mark = h('mark', {}, line.slice(at, at + wanted.length))
      this.#marks.push(mark)
      parts.push(line.slice(from, at), mark)
      from = at + wanted.length
    }
    return [...parts, line.slice(from)]
  }

  /** Goes to another place. @param {number} by @param {boolean} [scroll] */
  #step(by, scroll = true) {
    if (this.#marks.length === 0) return
    this.#marks[this.#at]?.removeAttribute('data-current')
    this.#at = (this.#at + by + this.#marks.length) % this.#marks.length
    const mark = this.#marks[this.#at]
    mark.setAttribute('data-current', 'yes')
    if (scroll || this.#at === 0) mark.scrollIntoView({ block: 'nearest' })
    setText(this.#found, `${count(this.#at + 1)} of ${count(this.#marks.length)}`)
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(`${this.#lines.join('\n')}\n`)
      setText(this.#found, 'copied')
    } catch {
      setText(this.#found, 'the browser does not let us')
    }
  }
}
