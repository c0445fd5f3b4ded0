/*
 * The tracks of a group side by side, with the verdict on the canary; and the method that is tried beside the group's own.
 */

import { h, setAttribute, setHidden, setText } from './dom.js'
import { count, duration, percent, rate, setting, span } from './format.js'
import { failing, Poll } from './poll.js'
import { chosen } from './settings.js'

/** @typedef {import('./group.js').Group} Group */

/** Samples of ten minutes are compared, of the whole fleet where there is one: that is not asked for every moment. */
const verdictMs = 10_000

const columns = ['Track', 'Split', 'Requests/s', 'Errors', 'Mean time', 'Went elsewhere']
const ofSessions = ['Track', 'Split', 'Sessions/s', 'Errors', 'Mean length', 'Went elsewhere']

export class GroupTracks {
  /** @type {Group} */
  #group
  /** @type {Map<string, HTMLElement[]>} */
  #rows = new Map()
  #body = h('tbody')
  #verdict = h('div', { class: 'verdict-box' })
  #text = h('pre')
  #badge = h('b', { class: 'badge' })
  #why = h('span')
  /** @type {Poll} */
  #poll
  element

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    const titles = group.isStream ? ofSessions : columns
    const head = h('tr', {}, ...titles.map((title) => h('th', { scope: 'col' }, title)))
    const table = h('table', { class: 'plain' }, h('caption', {}, 'Tracks'), h('thead', {}, head), this.#body)
    this.#verdict.append(
      h('p', {}, 'Canary: ', this.#badge, ' ', this.#why),
      h('details', {}, h('summary', {}, 'Grounds'), this.#text),
    )
    this.element = h(
      'div',
      { class: 'tracks', hidden: true },
      h('div', { class: 'scroll' }, table),
      this.#verdict,
    )
    const [baseline, canary] = this.#sides
    const query = new URLSearchParams({ baseline, canary })
    this.#poll = new Poll(
      `canary/${encodeURIComponent(group.name)}?${query}`,
      (answer) => this.#judged(answer),
      (error) => this.#unjudged(error),
      verdictMs,
    )
  }

  /** The tracks that are compared: `stable`, or else the first, and the first other. */
  get #sides() {
    const { tracks } = this.#group.layout
    const baseline = tracks.includes('stable') ? 'stable' : (tracks[0] ?? 'stable')
    return [baseline, tracks.find((track) => track !== baseline) ?? 'canary']
  }

  /** @param {boolean} open whether anybody can see it */
  update(open) {
    const { tracks, split } = this.#group.layout
    const several = tracks.length > 1
    setHidden(this.element, !several)
    if (several && open) this.#poll.start()
    else this.stop()
    if (!several) return
    const ms = chosen().span
    for (const track of this.#rows.keys()) {
      if (tracks.includes(track)) continue
      this.#rows.get(track)?.[0]?.parentElement?.remove()
      this.#rows.delete(track)
    }
    const all = this.#group.rate('answered', ms) ?? 0
    for (const track of tracks) {
      const cells = this.#rows.get(track) ?? this.#add(track)
      const meant = split?.percents.find(([name]) => name === track)?.[1]
      const answered = this.#group.rate(`answered of ${track}`, ms)
      const ended = this.#group.grown(`answered of ${track}`, ms)
      const errors = this.#group.grown(`serverErrors of ${track}`, ms)
      const failed = ended === undefined || ended === 0 ? undefined : (errors ?? 0) / ended
      const part = answered === undefined || all === 0 ? undefined : answered / all
      const texts = [
        meant === undefined ? '–' : `${meant} %`,
        `${rate(answered)}${part === undefined ? '' : ` (${percent(part)})`}`,
        percent(failed),
        duration(this.#group.mean(`ms of ${track}`, `answered of ${track}`, ms)),
        split === undefined ? '–' : count(this.#group.last(`fallbacks of ${track}`) ?? 0),
      ]
      for (const [i, text] of texts.entries()) setText(cells[i], text)
      setAttribute(cells[2], 'data-trouble', (failed ?? 0) > 0 ? 'yes' : undefined)
    }
  }

  stop() {
    this.#poll.stop()
    this.#group.verdict = undefined
  }

  /** @param {string} track */
  #add(track) {
    const cells = columns.slice(1).map(() => h('td'))
    this.#rows.set(track, cells)
    this.#body.append(h('tr', {}, h('th', { scope: 'row' }, track), ...cells))
    return cells
  }

  /** @param {any} answer see sidecar/admin/canary-answer.ts */
  #judged({ verdict, reason, text, baseline, canary, window, samples }) {
    this.#group.verdict = verdict
    setHidden(this.#verdict, false)
    setText(this.#badge, verdict)
    setAttribute(this.#badge, 'data-verdict', verdict)
    const medians = [samples.canary.median, samples.baseline.median]
    const middle = medians.includes(undefined) ? '' : `; medians ${medians.map(duration).join(' and ')}`
    const covered = `${span(1000 * window.covered)} of the last ${setting(1000 * window.asked)}`
    setText(this.#why, `${reason} (${canary} against ${baseline}, ${covered}${middle})`)
    setText(this.#text, text)
  }

  /** @param {unknown} error */
  #unjudged(error) {
    this.#group.verdict = undefined
    setText(this.#badge, 'no verdict')
    setAttribute(this.#badge, 'data-verdict', 'inconclusive')
    setText(this.#why, failing(error))
    setText(this.#text, '')
  }
}

/** What the method would have done that is tried beside the group's own. */
export class GroupShadow {
  /** @type {Group} */
  #group
  #text = h('span', { class: 'note-body' })
  #name = h('b')
  element

  /** @param {Group} group */
  constructor(group) {
    this.#group = group
    this.element = h(
      'p',
      { class: 'note shadow', hidden: true },
      h('span', {}, 'Tried beside it, without traffic: ', this.#name),
      ' ',
      this.#text,
    )
  }

  update() {
    const { layout, state } = this.#group
    setHidden(this.element, layout.shadow === undefined)
    if (layout.shadow === undefined || state?.shadow === undefined) return
    setText(this.#name, layout.shadow)
    const ms = chosen().span
    const both = this.#group.grown('shadowBoth', ms) ?? 0
    if (both === 0) {
      setText(this.#text, `no pick within the span; ${count(state.shadow[0])} since the start`)
      return
    }
    const same = (this.#group.grown('shadowSame', ms) ?? 0) / both
    const picked = this.#group.mean('pickedMs', 'shadowBoth', ms) ?? 0
    const shadow = this.#group.mean('shadowMs', 'shadowBoth', ms) ?? 0
    const change = picked > 0 ? (shadow - picked) / picked : 0
    const less = change < 0 ? 'less' : 'more'
    setText(
      this.#text,
      `would have picked the same peer in ${percent(same)} of ${count(both)} picks; expected ${duration(shadow)} instead of ` +
        `${duration(picked)}, ${percent(Math.abs(change))} ${less}`,
    )
  }
}
