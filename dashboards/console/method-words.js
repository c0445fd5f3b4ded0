/*
 * The methods of the groups in the configuration's words: `least_time last_byte best`.
 */

import { ask } from './poll.js'

/** Methods as the configuration names them; all other keys of a group are no method. */
const methods = ['hash', 'ip_hash', 'least_conn', 'random', 'least_time', 'feedback']
/** Arguments whose value says it all. */
const bare = new Set(['mode', 'by', 'key', 'variable'])

/** @returns {Promise<Map<string, string>>} by the group's name in lower case; empty where nothing is known */
export async function methodWords() {
  /** @type {Map<string, string>} */
  const found = new Map()
  try {
    const model = await ask('config?format=json')
    take(found, '', model.http?.upstreams)
    take(found, 'stream/', model.stream?.upstreams)
  } catch {
    // Their names alone will do.
  }
  return found
}

/**
 * @param {Map<string, string>} found
 * @param {string} prefix of the groups' names
 * @param {Record<string, any> | undefined} upstreams
 */
function take(found, prefix, upstreams) {
  for (const [name, block] of Object.entries(upstreams ?? {})) {
    for (const method of methods) {
      if (block?.[method] === undefined) continue
      found.set(`${prefix}${name}`.toLowerCase(), [method, ...argumentWords(block[method])].join(' '))
    }
  }
}

/**
 * @param {unknown} args
 * @returns {string[]}
 */
function argumentWords(args) {
  if (typeof args === 'string') return [args]
  if (typeof args !== 'object' || args === null) return []
  return Object.entries(args).flatMap(([key, value]) => {
    if (value === true) return [key]
    if (typeof value === 'object' && value !== null) return [key, ...argumentWords(value)]
    if (value === false || value === undefined) return []
    return [bare.has(key) ? String(value) : `${key}=${value}`]
  })
}
