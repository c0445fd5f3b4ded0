/*
 * The small print of a peer's line.
 */

import { ago, count, percent, rate, span } from './format.js'
import { meaning } from './words.js'

/** @typedef {import('./peer.js').Peer} Peer */

/**
 * Why attempts did not end well, or when one last did not.
 * @param {Peer} peer
 * @param {number} now
 * @param {number} ms
 */
export function wellNote(peer, now, ms) {
  const [first, ...more] = peer.troubles(ms)
  if (first !== undefined) {
    const others = more.length > 0 ? ` and ${more.length} more` : ''
    return {
      note: `${first.reason} ${rate(first.rate)}/s${others}`,
      about: meaning(first.reason),
      trouble: true,
    }
  }
  const last = peer.lastFailure
  if (last === undefined) return { note: '', about: undefined, trouble: false }
  return { note: `${last.reason} ${ago(now - last.at)}`, about: meaning(last.reason), trouble: false }
}

/**
 * @param {import('./told.js').Probing} probe
 * @param {number} now
 */
export function probeText({ probe, passed, detail, at }, now) {
  if (at === undefined) return `${probe.name} not yet`
  const when = ago(now - at)
  if (passed === false) return `${probe.name} ${when}${detail === '' ? '' : `: ${detail}`}`
  return `${probe.name} ${when}`
}

/** What waits there too long; empty where nothing does. @param {Peer} peer */
export function waitNote({ waits }) {
  if (waits === undefined) return ''
  const what = `${count(waits.count)} ${waits.count === 1 ? 'waits' : 'wait'}`
  return waits.silent ? `${what}, silent for ${span(waits.ms)}` : `${what}, ${span(waits.ms)} on average`
}

/**
 * @param {Peer} peer
 * @param {number} now
 */
export function stateNote(peer, now) {
  const { state, layout } = peer
  const fails = peer.number('fails') ?? 0
  const notes = []
  if (state === 'recovering') notes.push(`at ${percent(peer.number('ramp'))}`)
  if (state === 'unavailable' && peer.excluded === undefined) notes.push('may be tried')
  if (fails > 0 && layout.maxFails > 0) notes.push(`${fails} of ${layout.maxFails} failures`)
  if (peer.stateAt !== undefined) notes.push(`for ${span(now - peer.stateAt)}`)
  return notes.join(', ')
}
