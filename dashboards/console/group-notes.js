/*
 * What there is to say of a group beside its peers: retries, what was denied, its tracks, a method that is tried beside
 * its own, the queue, sessions that stay, names, the fleet. Each is there only where there is something to say.
 */

import { h, setAttribute, setHidden, setStyle, setText } from './dom.js'
import { ago, count, counted, percent, rate, setting } from './format.js'
import { GroupWays } from './group-ways.js'
import { note } from './note.js'
import { chosen } from './settings.js'

/** @typedef {import('./group.js').Group} Group */

export class GroupNotes {
  /** @type {Group} */
  #group
  #retries = note('Retries')
  #denials = note('Denied')
  #fleet = note('Fleet')
  #ways
  #bar
  #retriesText = h('span')
  #denialWords = new Map()
  element

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    this.#bar = h('span', { class: 'meter', 'aria-hidden': 'true' }, h('i'))
    this.#retries.body.append(this.#bar, this.#retriesText)
    this.#ways = new GroupWays(group)
    this.element = h(
      'div',
      { class: 'notes' },
      this.#retries.element,
      this.#denials.element,
      ...this.#ways.elements,
      this.#fleet.element,
    )
  }

  update() {
    this.#retryBudget()
    this.#denied()
    this.#ways.update()
    this.#shared()
    const none = [...this.element.children].every((child) => child instanceof HTMLElement && child.hidden)
    setHidden(this.element, none)
  }

  #retryBudget() {
    const { state, layout } = this.#group
    const budget = layout.budgets[0]
    setHidden(this.#retries.element, budget === undefined || state === undefined)
    if (budget === undefined || state === undefined) return
    const [requests, retries, allows] = state.budgets[0] ?? [0, 0, 1]
    const most = budget.ratio * requests + (budget.min * budget.window) / 1000
    const used = most > 0 ? Math.min(1, retries / most) : 1
    setStyle(this.#bar, '--part', `${100 * used}%`)
    setAttribute(this.#retries.element, 'data-trouble', allows === 1 ? undefined : 'yes')
    const waiting = state.waiting > 0 ? `, ${count(state.waiting)} waiting` : ''
    const spent = allows === 1 ? '' : ': the budget is spent'
    setText(
      this.#retriesText,
      `${count(retries)} of ${count(Math.floor(most))} in ${setting(budget.window)}${waiting}${spent}`,
    )
    const others =
      layout.budgets.length > 1
        ? ` There are ${layout.budgets.length - 1} other budgets; "Why there?" has them all.`
        : ''
    const rule = `At most ${percent(budget.ratio)} of the ${this.#group.asked}s of ${setting(budget.window)}, plus ${budget.min} a second`
    setAttribute(
      this.#retries.element,
      'data-tip',
      `${rule}, in ${budget.locations.slice(0, 5).join(', ')}.${others}`,
    )
  }

  #denied() {
    const words = this.#group.store.layout?.words.denials ?? []
    const ms = chosen().span
    let any = false
    for (const [d, word] of words.entries()) {
      const all = this.#group.state?.denials[d] ?? 0
      if (all === 0) continue
      any = true
      let chip = this.#denialWords.get(word)
      if (chip === undefined) {
        chip = h('span', { class: 'chip', 'data-word': word, tabindex: '0' })
        this.#denialWords.set(word, chip)
        this.#denials.body.append(chip)
      }
      const now = this.#group.rate(`denial ${word}`, ms) ?? 0
      setText(chip, `${word} ${count(all)}${now > 0 ? `, ${rate(now)}/s` : ''}`)
      setAttribute(chip, 'data-trouble', now > 0 ? 'yes' : undefined)
    }
    setHidden(this.#denials.element, !any)
  }

  #shared() {
    const fleet = this.#group.state?.fleet
    setHidden(this.#fleet.element, fleet === undefined)
    if (fleet === undefined) return
    const [members, age, resets] = fleet
    const who = members === 0 ? 'instances not known yet' : counted(members, 'instance')
    const heard =
      age === null ? 'nothing heard yet' : `heard ${age < 1000 ? `${count(age)} ms ago` : ago(age)}`
    const lost = resets > 0 ? `, begun anew ${counted(resets, 'time')}` : ''
    setText(this.#fleet.body, `${who}, ${heard}${lost}`)
  }
}
