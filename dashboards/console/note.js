/*
 * A line of a group that says one thing of it, with its title.
 */

import { h } from './dom.js'

/** @param {string} title */
export function note(title) {
  const body = h('span', { class: 'note-body' })
  return { element: h('p', { class: 'note' }, h('b', {}, title), ' ', body), body }
}
