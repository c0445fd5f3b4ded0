/*
 * Asking the program to change something. Where it wants a token, the user is asked for it; it is kept for as long as
 * the page is open, and nowhere else.
 */

import { askToken } from './dialogs.js'

/** How long an answer may take: every thread has to serve by the change before it is given. */
const patienceMs = 20_000

/** @type {string | undefined} */
let token

/**
 * @typedef {{ ok: true } | { ok: false, error: string }} Answered
 */

/**
 * Asks for a change.
 * @param {'PATCH' | 'POST' | 'DELETE'} method
 * @param {string} path of this server
 * @param {object} [body]
 * @returns {Promise<Answered | undefined>} undefined: the user has no token, and lets it be
 */
export async function request(method, path, body) {
  for (;;) {
    const { status, error } = await once(method, path, body)
    if (status === 200) return { ok: true }
    if (status !== 401) return { ok: false, error }
    const given = await askToken(token !== undefined)
    token = undefined
    if (given === undefined) return undefined
    token = given
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<{ status: number, error: string }>} status 0: no answer
 */
async function once(method, path, body) {
  try {
    const response = await fetch(path, {
      method,
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store',
      signal: AbortSignal.timeout(patienceMs),
    })
    const answer = await response.json().catch(() => undefined)
    const { error } = answer ?? {}
    return { status: response.status, error: typeof error === 'string' ? error : `status ${response.status}` }
  } catch {
    return { status: 0, error: 'no answer' }
  }
}

/**
 * Where a group's changes are asked for.
 * @param {string} group
 * @param {string} [address] of a peer, or the text of a `server` line
 */
export function pathOf(group, address) {
  const own = `upstreams/${encodeURIComponent(group)}`
  return address === undefined ? own : `${own}/peers/${encodeURIComponent(address)}`
}
