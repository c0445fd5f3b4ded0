/*
 * A peer's line in the table of its group. It is made once; what changes every second are texts in it.
 */

import { badgeText, changesOf } from './change-texts.js'
import { draw } from './chart.js'
import { h, setAttribute, setHidden, setShape, setStyle, setText, shape } from './dom.js'
import { count, duration, percent, rate } from './format.js'
import { columns, headOf } from './peer-columns.js'
import { probeText, stateNote, waitNote, wellNote } from './peer-texts.js'
import { chosen } from './settings.js'
import { stalled, stateShapes, states } from './words.js'

/** @typedef {import('./peer.js').Peer} Peer */

/** The width of the small lines, milliseconds. */
export const lineMs = 60_000

export class PeerRow {
  /** @type {Peer} */
  peer
  visible = false
  element
  button
  #badges
  #changes
  #stateShape
  #state
  #stateNote
  #waits
  #waitsText
  #bar
  #share
  #intended
  #shadow
  #rate
  #rateLine
  #flight
  #limit
  #time
  #timeNote
  #timeLine
  #well
  #wellNote
  #probes
  #cells

  /**
   * @param {Peer} peer
   * @param {() => void} toggle opens or closes its details
   */
  constructor(peer, toggle) {
    this.peer = peer
    this.button = h(
      'button',
      { type: 'button', class: 'peer-name', 'aria-expanded': 'false', onclick: toggle },
      peer.name,
    )
    this.#badges = h('span', { class: 'badges' })
    this.#changes = h('span', { class: 'badges changed', hidden: true })
    this.#stateShape = shape('checking')
    this.#state = h('span')
    this.#stateNote = h('small')
    this.#waitsText = h('span')
    this.#waits = h(
      'span',
      { class: 'state waits', 'data-state': 'waiting', 'data-tip': stalled, hidden: true },
      shape('waiting'),
      this.#waitsText,
    )
    this.#bar = h('span', { class: 'bar-share', 'aria-hidden': 'true' }, h('i'), h('b'))
    this.#share = h('span')
    this.#intended = h('small')
    this.#shadow = h('small', { class: 'shadow-share', hidden: true })
    this.#rate = h('span')
    this.#rateLine = h('canvas', { class: 'spark', 'aria-hidden': 'true' })
    this.#flight = h('span')
    this.#limit = h('small')
    this.#time = h('span')
    this.#timeNote = h('small')
    this.#timeLine = h('canvas', { class: 'spark', 'aria-hidden': 'true' })
    this.#well = h('span')
    this.#wellNote = h('small')
    this.#probes = h('span', { class: 'probe-list' })
    this.#cells = {
      peer: h(
        'th',
        { scope: 'row', role: 'rowheader' },
        h('span', { class: 'name-line' }, this.button),
        this.#badges,
        this.#changes,
      ),
      state: h(
        'td',
        { role: 'cell' },
        h('span', { class: 'state' }, this.#stateShape, this.#state),
        this.#stateNote,
        this.#waits,
      ),
      share: h(
        'td',
        { role: 'cell' },
        this.#bar,
        h('span', { class: 'pair' }, this.#share, this.#intended),
        this.#shadow,
      ),
      rate: h('td', { role: 'cell' }, h('span', { class: 'beside' }, this.#rate, this.#rateLine)),
      flight: h('td', { role: 'cell' }, this.#flight, this.#limit),
      time: h(
        'td',
        { role: 'cell' },
        h('span', { class: 'beside' }, this.#time, this.#timeLine),
        this.#timeNote,
      ),
      well: h('td', { role: 'cell' }, this.#well, this.#wellNote),
      probes: h('td', { role: 'cell' }, this.#probes),
    }
    for (const { id } of columns) {
      this.#cells[id].dataset['column'] = id
      this.#cells[id].dataset['label'] = headOf(id, peer.group.isStream).label
    }
    this.element = h('tr', { class: 'peer', role: 'row' }, ...Object.values(this.#cells))
    this.#update()
  }

  /** Shows what is now, if anybody can see it. @param {number} scale the share that fills the bar */
  update(scale) {
    setAttribute(this.element, 'data-state', this.peer.state)
    if (!this.visible) return
    this.#update()
    this.#shares(scale)
    this.#lines()
  }

  #update() {
    const { peer } = this
    const { store, layout, group } = peer
    const now = store.state?.at ?? 0
    const ms = chosen().span
    const { state } = peer
    this.#badge(layout, group.layout.tracks.length > 1)
    setShape(this.#stateShape, stateShapes[state] ?? 'checking')
    setText(this.#state, state)
    setAttribute(this.#cells.state, 'data-tip', states[state])
    setText(this.#stateNote, stateNote(peer, now))
    const waits = waitNote(peer)
    setHidden(this.#waits, waits === '')
    setText(this.#waitsText, waits)

    const perSecond = peer.rate('attempts', ms)
    setText(this.#rate, rate(perSecond))
    const inFlight = peer.number('inFlight') ?? 0
    const limit = peer.number('maxConns') ?? 0
    setText(this.#flight, count(inFlight))
    setText(this.#limit, limit > 0 ? `of ${count(limit)}` : '')

    const mean = peer.mean('headerMs', 'headers', ms)
    setText(this.#time, duration(mean))
    const connect = peer.number('connectTime') || undefined
    const average = peer.number('average') || peer.number('headerTime') || undefined
    const expected = peer.number('expected')
    // What a method assumes of a peer that it knows nothing of is no expectation.
    const assumed = expected !== undefined && !peer.number('average') && peer.number('report') === undefined
    const notes = []
    if (connect !== undefined) notes.push(`connects in ${duration(connect)}`)
    if (average !== undefined && !assumed) notes.push(`avg ${duration(average)}`)
    if (expected !== undefined) notes.push(assumed ? 'no average yet' : `expects ${duration(expected)}`)
    setText(this.#timeNote, notes.join(', '))

    const well = peer.well(ms)
    setText(this.#well, percent(well))
    const { note, about, trouble } = wellNote(peer, now, ms)
    setAttribute(this.#cells.well, 'data-tip', about)
    setText(this.#wellNote, note)
    setAttribute(this.#cells.well, 'data-trouble', trouble ? 'yes' : undefined)
    this.#probing(now)
  }

  /**
   * @param {import('./told.js').PeerLayout} layout
   * @param {boolean} tracks whether the group has several
   */
  #badge(layout, tracks) {
    const words = []
    if (layout.backup) words.push('backup')
    if (layout.retired) words.push('removed')
    if (tracks) words.push(layout.track)
    if (layout.weight !== 1) words.push(`weight ${layout.weight}`)
    const text = words.join(' · ')
    setText(this.#badges, text)
    setHidden(this.#badges, text === '')
    const changed = changesOf(this.peer).map(badgeText).join(' · ')
    setText(this.#changes, changed)
    setHidden(this.#changes, changed === '')
    setAttribute(this.element, 'data-changed', changed === '' ? undefined : 'yes')
  }

  /** @param {number} scale */
  #shares(scale) {
    const ms = chosen().span
    const actual = this.peer.actualShare(ms)
    const intended = this.peer.average('share', ms)
    setText(this.#share, percent(actual))
    setText(this.#intended, `meant ${percent(intended)}`)
    const width = (/** @type {number | undefined} */ part) => `${Math.min(100, (100 * (part ?? 0)) / scale)}%`
    setStyle(this.#bar, '--actual', width(actual))
    setStyle(this.#bar, '--intended', width(intended))
    this.#beside(ms)
  }

  /** What the method would do that is tried beside the group's own. @param {number} ms */
  #beside(ms) {
    const { group } = this.peer
    const { shadow } = group.layout
    setHidden(this.#shadow, shadow === undefined)
    if (shadow === undefined) return
    const picks = this.peer.grown('shadowPicks', ms)
    const all = group.peersGrown('shadowPicks', ms)
    const part = picks === undefined || !all ? undefined : Math.min(1, picks / all)
    setText(this.#shadow, `${shadow} ${percent(part)}`)
  }

  #lines() {
    const { peer } = this
    const now = peer.store.state?.at ?? 0
    draw(
      this.#rateLine,
      [
        { points: peer.line('attempts', lineMs), ink: 'line', area: true },
        { points: peer.line('failures', lineMs), ink: 'trouble', area: true },
      ],
      now,
      lineMs,
    )
    draw(this.#timeLine, [{ points: peer.line('headerMs', lineMs, 'headers'), ink: 'calm' }], now, lineMs)
  }

  /** @param {number} now */
  #probing(now) {
    const { probes } = this.peer
    const lines = [...probes.values()]
    // A list that has as many as before is changed in place.
    while (this.#probes.children.length > lines.length) this.#probes.lastElementChild?.remove()
    while (this.#probes.children.length < lines.length) {
      this.#probes.append(h('span', { class: 'probe' }, shape('silent'), h('span')))
    }
    for (const [i, probe] of lines.entries()) {
      const line = this.#probes.children[i]
      const look = probe.passed === undefined ? 'silent' : probe.passed ? 'passed' : 'failed'
      setShape(/** @type {SVGSVGElement} */ (line.firstChild), look)
      setAttribute(line, 'data-look', look)
      setText(/** @type {Node} */ (line.lastChild), probeText(probe, now))
      setAttribute(line, 'data-tip', probe.detail === '' ? undefined : probe.detail)
    }
    if (lines.length === 0) setText(this.#probes, '')
  }
}
