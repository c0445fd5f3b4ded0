/*
 * What was changed of a group while the program runs, with what takes it back, and what adds a server.
 */

import { changeText } from './change-texts.js'
import { askServer, confirm } from './dialogs.js'
import { h, setAttribute, setHidden, setText } from './dom.js'
import { time } from './format.js'
import { pathOf, request } from './requests.js'

/** @typedef {import('./group.js').Group} Group */
/** @typedef {import('./told.js').ChangeLayout} Change */

export class GroupChanges {
  /** @type {Group} */
  #group
  #title
  #list = h('ul')
  #all
  #add
  #said = h('p', { class: 'said', role: 'status' })
  #shown = ''
  element

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    const about =
      'They hold until they are taken back, until the file says something else of that very thing, or until the program ends.'
    this.#title = h('h3', { 'data-tip': about, tabindex: '0' }, 'Changed while it runs')
    this.#all = h('button', { type: 'button', onclick: () => void this.#reset() }, 'Take all back…')
    this.#add = h(
      'button',
      { type: 'button', 'aria-label': `Add a server to ${group.name}`, onclick: () => void this.#grow() },
      'Add a server…',
    )
    this.element = h(
      'div',
      { class: 'changes' },
      this.#title,
      this.#list,
      h('p', { class: 'answers' }, this.#all, this.#add, this.#said),
    )
  }

  update() {
    const { changes = [], open } = this.#group.layout
    setHidden(this.element, changes.length === 0 && !open)
    setHidden(this.#title, changes.length === 0)
    setHidden(this.#list, changes.length === 0)
    setHidden(this.#all, changes.length === 0)
    setHidden(this.#add, !open)
    // Whoever has the focus in it is not to lose it where nothing has changed.
    const shown = JSON.stringify(changes)
    if (shown === this.#shown) return
    this.#shown = shown
    this.#list.replaceChildren(...changes.map((change) => this.#item(change)))
  }

  /** @param {Change} change */
  #item(change) {
    const text = changeText(change)
    return h(
      'li',
      {},
      h('span', {}, text),
      h('small', {}, ` ${time(change.at)} by ${change.by} `),
      h(
        'button',
        { type: 'button', 'aria-label': `Take back: ${text}`, onclick: () => void this.#takeBack(change) },
        'Take back',
      ),
    )
  }

  /** @param {Change} change */
  #takeBack({ kind, target }) {
    const { name } = this.#group
    if (kind === 'added') return this.#ask('DELETE', pathOf(name, target))
    if (kind === 'removed') return this.#ask('POST', `${pathOf(name)}/peers`, { server: target })
    return this.#ask('PATCH', pathOf(name, target), { [kind]: null })
  }

  async #reset() {
    const { name, layout } = this.#group
    const count = layout.changes?.length ?? 0
    const text = `${count === 1 ? 'One change is' : `${count} changes are`} forgotten, and all is as in the file.`
    if (await confirm(`Take back all changes of ${name}?`, text, 'Take back')) {
      await this.#ask('DELETE', `${pathOf(name)}/changes`)
    }
  }

  #grow() {
    const { name } = this.#group
    return askServer(name, async (server) => {
      const answer = await request('POST', `${pathOf(name)}/peers`, server)
      if (answer === undefined) return 'A token is needed.'
      if (answer.ok) setText(this.#said, `${server['server']} is added`)
      return answer.ok ? undefined : answer.error
    })
  }

  /**
   * @param {'PATCH' | 'POST' | 'DELETE'} method
   * @param {string} path
   * @param {object} [body]
   */
  async #ask(method, path, body) {
    setText(this.#said, 'asking…')
    const answer = await request(method, path, body)
    setAttribute(this.#said, 'data-trouble', answer?.ok === false ? 'yes' : undefined)
    setText(this.#said, answer === undefined ? '' : answer.ok ? 'done' : answer.error)
  }
}
