/*
 * Light or dark: as the system has it, unless chosen otherwise here.
 */

import { forgetInks } from './chart.js'
import { byId, setText } from './dom.js'
import { choose, chosen } from './settings.js'

const next = /** @type {const} */ ({ auto: 'light', light: 'dark', dark: 'auto' })
const names = { auto: 'Auto', light: 'Light', dark: 'Dark' }

function apply() {
  const { scheme } = chosen()
  if (scheme === 'auto') delete document.documentElement.dataset['scheme']
  else document.documentElement.dataset['scheme'] = scheme
  setText(byId('scheme-name'), names[scheme])
  forgetInks()
}

/** Goes on to the next one. */
export function switchScheme() {
  choose({ scheme: next[chosen().scheme] })
  apply()
}

/** @param {() => void} changed what has to be drawn anew is */
export function startScheme(changed) {
  byId('scheme').addEventListener('click', () => {
    switchScheme()
    changed()
  })
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    forgetInks()
    changed()
  })
  apply()
}
