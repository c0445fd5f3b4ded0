/*
 * An entry of the list of what happens: an attempt, a peer's change of state, or how many attempts were left out.
 */

import { h, shape } from './dom.js'
import { count, duration, exactTime } from './format.js'
import {
  attemptReasons,
  denialReasons,
  endings,
  grpcFailures,
  grpcStatuses,
  neutral,
  picks,
  stateShapes,
} from './words.js'

/** @typedef {import('./told.js').RecentAttempt} RecentAttempt */

/**
 * @typedef {{ kind: 'attempt', at: number, attempt: RecentAttempt }
 *   | { kind: 'more', at: number, more: number, failed: number }
 *   | { kind: 'change', at: number, upstream: string, peer: string, before: string, after: string }} Entry
 */

/**
 * Whether it is something to look at, as feedback/feed.ts has it.
 * @param {RecentAttempt} attempt
 */
function isTrouble({ reason, ending, status = 0, grpcStatus = 0 }) {
  if (reason !== undefined) return !neutral.has(reason)
  return ending === 'no_live' || status >= 500 || grpcFailures.has(grpcStatus)
}

/** Name of what a call of gRPC ended with. @param {RecentAttempt} attempt @returns {string | undefined} */
function callStatus({ grpcStatus }) {
  return grpcStatus === undefined ? undefined : (grpcStatuses[grpcStatus] ?? String(grpcStatus))
}

/**
 * Whether an entry is one that somebody looks for.
 * @param {Entry} entry
 * @param {string} text lower case
 * @param {boolean} failures whether only those that did not end well
 */
export function fits(entry, text, failures) {
  if (entry.kind === 'more') return text === '' && (!failures || entry.failed > 0)
  if (entry.kind === 'change')
    return text === '' || `${entry.upstream} ${entry.peer} ${entry.after}`.toLowerCase().includes(text)
  const { attempt } = entry
  if (failures && !isTrouble(attempt)) return false
  if (text === '') return true
  const { upstream, peer, track, protocol, method, path, reason, ending, status, pick, traceId } = attempt
  const call = callStatus(attempt)
  return [upstream, peer, track, protocol, method, path, reason, ending, status, call, pick, traceId].some(
    (one) =>
      String(one ?? '')
        .toLowerCase()
        .includes(text),
  )
}

/**
 * @param {Entry} entry
 * @param {boolean} several whether there are several groups to tell apart
 * @param {number} id
 */
export function entryLine(entry, several, id) {
  if (entry.kind === 'more') return moreLine(entry)
  if (entry.kind === 'change') return changeLine(entry, several)
  const { attempt } = entry
  const look = lookOf(attempt)
  const notes = []
  if (attempt.retry > 0) notes.push(`attempt ${attempt.retry + 1}`)
  if (Object.hasOwn(picks, attempt.pick)) notes.push(attempt.pick)
  if (attempt.denial !== undefined) notes.push(`no further one: ${attempt.denial}`)
  return h(
    'li',
    {
      class: 'attempt',
      role: 'option',
      id: `attempt-${id}`,
      'aria-selected': 'false',
      'data-look': look,
    },
    h('time', { class: 'a-time', datetime: new Date(attempt.at).toISOString() }, exactTime(attempt.at)),
    h(
      'span',
      { class: 'a-what', 'data-word': attempt.reason ?? attempt.ending },
      shape(lookShapes[look]),
      h('span', {}, outcome(attempt)),
    ),
    h(
      'span',
      { class: 'a-peer' },
      attempt.peer ?? 'no peer',
      several ? h('small', {}, attempt.upstream) : null,
    ),
    h('span', { class: 'a-ms' }, duration(attempt.ms)),
    h('span', { class: 'a-request' }, requestText(attempt)),
    h(
      'span',
      { class: 'a-notes' },
      ...notes.map((note) => h('span', {}, note)),
      attempt.next ? h('span', { class: 'a-next' }, shape('next'), 'tried again') : null,
    ),
  )
}

/** What was asked for; of a session, where it came in. @param {RecentAttempt} attempt */
function requestText({ protocol, method, path }) {
  return protocol === 'HTTP' ? `${method} ${path}` : `${protocol} ${path}`
}

const lookShapes = { trouble: 'failed', well: 'passed', neutral: 'silent' }

/** @param {RecentAttempt} attempt */
function lookOf(attempt) {
  if (isTrouble(attempt)) return 'trouble'
  return attempt.reason === undefined ? 'well' : 'neutral'
}

/** The status of HTTP says nothing of a call of gRPC. @param {RecentAttempt} attempt */
function outcome(attempt) {
  const { status, reason, ending } = attempt
  if (ending === 'no_live') return 'no_live'
  return reason ?? callStatus(attempt) ?? (status === undefined ? (ending ?? '') : String(status))
}

/** @param {{ more: number, failed: number }} entry */
function moreLine({ more, failed }) {
  const text = `and ${count(more)} more${failed > 0 ? `, ${count(failed)} of them failed` : ''}`
  return h('li', { class: 'more', role: 'presentation' }, text)
}

/**
 * @param {Entry & { kind: 'change' }} entry
 * @param {boolean} several
 */
function changeLine({ at, upstream, peer, before, after }, several) {
  return h(
    'li',
    { class: 'change', role: 'presentation', 'data-state': after },
    h('time', { class: 'a-time', datetime: new Date(at).toISOString() }, exactTime(at)),
    h('span', { class: 'state' }, shape(stateShapes[after] ?? 'checking'), h('span', {}, after)),
    h('span', { class: 'a-peer' }, peer, several ? h('small', {}, upstream) : null),
    h('span', { class: 'a-notes' }, h('span', {}, `was ${before}`)),
  )
}

/**
 * All that is known of an attempt, for people.
 * @param {RecentAttempt} attempt
 */
export function attemptDetail(attempt) {
  const { reason, ending, denial, detail, peer } = attempt
  const isSession = attempt.protocol !== 'HTTP'
  const call = callStatus(attempt)
  const facts = [
    [isSession ? 'Session' : 'Request', requestText(attempt)],
    ['Ended', exactTime(attempt.at)],
    ['Group', attempt.upstream],
    [
      'Peer',
      peer === undefined ? 'none' : `${peer}${attempt.track === undefined ? '' : `, track ${attempt.track}`}`,
    ],
    ['Chosen', chosenText(attempt)],
    ['Status', attempt.status === undefined ? undefined : String(attempt.status)],
    ['Status of gRPC', call === undefined ? undefined : `${attempt.grpcStatus} ${call}`],
    [
      isSession ? 'First byte' : 'Header',
      attempt.headerMs === undefined ? undefined : `after ${duration(attempt.headerMs)}`,
    ],
    ['End', attempt.ms === undefined ? undefined : `after ${duration(attempt.ms)}`],
    ['Connection', peer === undefined || isSession ? undefined : attempt.reused ? 'a kept one' : 'a new one'],
    ['Detail', detail],
    ['Trace', attempt.traceId || undefined],
  ]
  const word = reason ?? ending ?? ''
  const meaning = reason === undefined ? endingOf(word, isSession) : attemptReasons[reason]
  return [
    h(
      'p',
      { class: 'verdict', 'data-look': lookOf(attempt) },
      shape(lookShapes[lookOf(attempt)]),
      h('span', {}, h('b', {}, word), ` ${meaning ?? ''}`),
    ),
    attempt.next ? h('p', {}, `The ${isSession ? 'session' : 'request'} went on to another attempt.`) : null,
    denial === undefined || denial === word
      ? null
      : h('p', {}, h('b', {}, denial), ` ${denialReasons[denial] ?? ''}`),
    h(
      'dl',
      { class: 'pairs' },
      ...facts.flatMap(([title, text]) =>
        text === undefined ? [] : [h('dt', {}, title), h('dd', {}, text)],
      ),
    ),
  ]
}

/** @param {string} word @param {boolean} isSession */
function endingOf(word, isSession) {
  return isSession && word === 'ok' ? 'The session ended in order.' : endings[word]
}

/** @param {RecentAttempt} attempt */
function chosenText({ pick, retry, protocol }) {
  const how = Object.hasOwn(picks, pick) ? picks[pick] : pick === '' ? undefined : `by ${pick}`
  const which =
    retry === 0
      ? 'first attempt'
      : `attempt ${retry + 1} of the ${protocol === 'HTTP' ? 'request' : 'session'}`
  return how === undefined ? which : `${how}; ${which}`
}
