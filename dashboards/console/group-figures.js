/*
 * How a group does as a whole: the figures in its head.
 */

import { count, duration, rate, setting } from './format.js'

/** @typedef {import('./group.js').Group} Group */
/** @typedef {{ name: string, title: string, about: string, read: (group: Group, ms: number) => string, more?: (group: Group, ms: number) => string, trouble?: (group: Group, ms: number) => boolean }} Figure */

/** @type {readonly Figure[]} */
const ofRequests = [
  {
    name: 'requests',
    title: 'requests/s',
    about: 'Requests that asked the group for a peer',
    read: (group, ms) => rate(group.rate('requests', ms)),
  },
  {
    name: 'errors',
    title: 'errors/s',
    about: 'Requests that ended with 5xx for their clients',
    read: (group, ms) => rate(group.rate('serverErrors', ms)),
    trouble: (group, ms) => (group.rate('serverErrors', ms) ?? 0) > 0,
  },
  {
    name: 'retries',
    title: 'retries/s',
    about: 'Attempts after the first of a request: failures that clients did not see',
    read: (group, ms) => rate(group.rate('retries', ms)),
  },
  {
    name: 'median',
    title: 'p50',
    about: 'Half of the requests took no longer',
    read: (group, ms) => quantileText(group, 0.5, ms),
    more: (group, ms) => bucketText(group, 0.5, ms),
  },
  {
    name: 'tail',
    title: 'p99',
    about: '99 of 100 requests took no longer',
    read: (group, ms) => quantileText(group, 0.99, ms),
    more: (group, ms) => bucketText(group, 0.99, ms),
  },
]

/** How long a session lasts is up to its client, so it is not among them. @type {readonly Figure[]} */
const ofSessions = [
  {
    name: 'requests',
    title: 'sessions/s',
    about: 'Sessions that asked the group for a peer',
    read: (group, ms) => rate(group.rate('requests', ms)),
  },
  {
    name: 'open',
    title: 'open',
    about: 'Sessions in progress',
    read: (group) => count(group.inFlight),
  },
  {
    name: 'errors',
    title: 'errors/s',
    about: 'Sessions that ended with 502: there was no peer or, over UDP, no answer',
    read: (group, ms) => rate(group.rate('serverErrors', ms)),
    trouble: (group, ms) => (group.rate('serverErrors', ms) ?? 0) > 0,
  },
  {
    name: 'connect',
    title: 'connect',
    about: 'Mean time until the connection to a peer was there',
    read: (group, ms) => duration(meanOf(group, 'connectMs', 'connects', ms)),
  },
  {
    name: 'firstByte',
    title: 'first byte',
    about: 'Mean time until a peer sent something, for which it may have waited for its client',
    read: (group, ms) => duration(meanOf(group, 'headerMs', 'headers', ms)),
  },
]

/**
 * Over all peers of a group; undefined where there was nothing.
 * @param {Group} group
 * @param {string} total
 * @param {string} number
 * @param {number} ms
 */
function meanOf(group, total, number, ms) {
  const all = group.peersGrown(number, ms)
  return all > 0 ? group.peersGrown(total, ms) / all : undefined
}

/**
 * A bound where only that is known: none took longer. Else a guess, between the two bounds of the bucket.
 * @param {Group} group
 * @param {number} part
 * @param {number} ms
 */
function quantileText(group, part, ms) {
  const found = group.bucketOf(part, ms)
  if (found === undefined) return duration(undefined)
  if (found.high === Number.POSITIVE_INFINITY) return `>${setting(found.low)}`
  return found.top ? `≤${setting(found.high)}` : `~${duration(group.quantile(part, ms))}`
}

/**
 * @param {Group} group
 * @param {number} part
 * @param {number} ms
 */
function bucketText(group, part, ms) {
  const found = group.bucketOf(part, ms)
  if (found === undefined) return ''
  const { low, high, top } = found
  if (high === Number.POSITIVE_INFINITY)
    return `. The histogram tells only that it is more than ${setting(low)}.`
  const bounds = `. The histogram tells that it is between ${setting(low)} and ${setting(high)}`
  return top
    ? `${bounds}, and that no request took longer than that.`
    : `${bounds}; in between it is a guess.`
}

/** What is told of a group, in order. @param {boolean} isStream @returns {readonly Figure[]} */
export function figuresOf(isStream) {
  return isStream ? ofSessions : ofRequests
}
