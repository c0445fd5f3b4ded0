/*
 * "Why there?": why a request that came now would go where it would go.
 */

import { h, setText } from './dom.js'
import { count, counted, duration, percent, setting, time } from './format.js'
import { failing, Poll } from './poll.js'
import { meaning } from './words.js'

/** What is said of a peer. @typedef {any} PeerExplanation see sidecar/admin/explain.ts */

const columns = ['Peer', 'Chance', 'In flight', 'Expected', 'Average', 'Succeeds', 'Remarks']

export class Explanation {
  #poll
  #when = h('span', { class: 'count' })
  #title = h('h3', {}, 'If a request came now')
  #body = h('tbody')
  #retries = h('ul', { class: 'lines' })
  #text = h('pre')
  #error = h('p', { class: 'empty', hidden: true })
  element

  /** @param {string} name of the group */
  constructor(name) {
    this.#poll = new Poll(
      `explain/${encodeURIComponent(name)}`,
      (answer) => this.#show(answer),
      (error) => this.#fail(error),
    )
    const head = h('tr', {}, ...columns.map((title) => h('th', { scope: 'col' }, title)))
    this.element = h(
      'section',
      { class: 'explanation', 'aria-label': `Why a request to ${name} would go where it would go` },
      h(
        'div',
        { class: 'panel-head' },
        this.#title,
        this.#when,
        h('button', { type: 'button', onclick: () => this.#poll.again() }, 'Ask again'),
      ),
      this.#error,
      h('div', { class: 'scroll' }, h('table', { class: 'plain' }, h('thead', {}, head), this.#body)),
      this.#retries,
      h('details', {}, h('summary', {}, 'The same as text'), this.#text),
    )
  }

  start() {
    this.#poll.start()
  }

  stop() {
    this.#poll.stop()
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#error.hidden = false
    setText(this.#error, `Not known now: ${failing(error)}`)
  }

  /** @param {any} answer */
  #show(answer) {
    this.#error.hidden = true
    setText(this.#when, `asked at ${time(Date.now())}`)
    const primaries = answer.backup_switch?.list !== 'backups'
    const standby =
      primaries &&
      answer.peers.some((/** @type {PeerExplanation} */ peer) => !peer.backup && peer.excluded === undefined)
    this.#body.replaceChildren(
      ...answer.peers.map((/** @type {PeerExplanation} */ peer) => peerLine(peer, standby)),
    )
    const { requests, retries, waiting, budgets } = answer.retries
    const asked = answer.kind === 'stream' ? 'session' : 'request'
    const lines = [
      `${counted(retries, 'retry', 'retries')} in ${counted(requests, asked)}, ${count(waiting)} waiting`,
    ]
    for (const budget of budgets) {
      const rule = `at most ${percent(budget.ratio)} of the ${asked}s of ${setting(budget.window)}, plus ${budget.min} a second`
      const now = `${count(budget.recent.retries)} of ${count(budget.recent.requests)} now`
      lines.push(
        `Retries in ${budget.location}: ${rule}; ${now}, ${budget.allows ? 'another may go' : 'the budget is spent'}`,
      )
    }
    lines.push(...splitLines(answer.split))
    setText(this.#title, `If a ${asked} came now`)
    this.#retries.replaceChildren(...lines.map((line) => h('li', {}, line)))
    setText(this.#text, answer.text)
  }
}

/**
 * @param {PeerExplanation} peer
 * @param {boolean} standby whether some primary is ready
 */
function peerLine(peer, standby) {
  const chance = h('td')
  if (peer.excluded !== undefined) {
    chance.append(
      'none: ',
      h('span', { class: 'word', tabindex: '0', 'data-tip': meaning(peer.excluded) ?? '' }, peer.excluded),
    )
  } else if (peer.backup && standby) chance.append('none as long as a primary is ready')
  else chance.append(percent(peer.share))
  const limit = peer.max_conns === undefined ? '' : ` of ${count(peer.max_conns)}`
  return h(
    'tr',
    {},
    h('th', { scope: 'row', class: 'mono' }, peer.peer),
    chance,
    h('td', {}, `${count(peer.in_flight)}${limit}`),
    h('td', {}, duration(peer.expected)),
    h('td', {}, duration(peer.avg)),
    h('td', {}, percent(peer.ok)),
    h('td', {}, remarks(peer).join('; ')),
  )
}

/**
 * How requests are split over the tracks, where they are.
 * @param {any} split
 */
function splitLines(split) {
  if (split === undefined) return []
  const how = split.key === undefined ? 'each by itself' : `by the hash of ${split.key}`
  const first = split.variable === undefined ? '' : `where ${split.variable} names a track there, else `
  const lines = [`Requests are split: ${first}by percentages, ${how}`]
  for (const { track, percent: meant, share, requests, fallbacks } of split.tracks) {
    const gone = fallbacks === 0 ? '' : `, of which ${count(fallbacks)} went elsewhere`
    lines.push(`Track ${track}: ${meant} %, now ${percent(share)}; ${count(requests)} requests${gone}`)
  }
  if (split.left > 0) lines.push(`${percent(split.left)} are left to the backups now`)
  return lines
}

/** @param {PeerExplanation} peer */
function remarks(peer) {
  const notes = []
  if (peer.backup) notes.push('backup')
  if (peer.track !== 'stable') notes.push(`track ${peer.track}`)
  if (peer.fails > 0) notes.push(`${peer.fails} failed`)
  if (peer.fair_share !== undefined && peer.excluded === undefined)
    notes.push(`${percent(peer.fair_share)} by its time alone`)
  if (peer.waiting_age > 0) notes.push(`requests there have waited ${duration(peer.waiting_age)} in all`)
  if (peer.report?.value !== undefined)
    notes.push(`reports ${peer.report.value}${peer.report.counts ? '' : ', which does not count'}`)
  else if (peer.report !== undefined) notes.push('reports nothing')
  if (peer.agent !== undefined)
    notes.push(`its agent says ${peer.agent.state}, ${percent(peer.agent.weight)} of its weight`)
  const { fleet } = peer
  if (fleet?.stuck?.attempts > 0) notes.push(`${count(fleet.stuck.attempts)} stuck there at other instances`)
  if (fleet?.lease !== undefined)
    notes.push(
      `a lease of ${fleet.lease.slots} of max_conns ${fleet.lease.of}${fleet.lease.used_up ? ', used up' : ''}`,
    )
  return notes
}
