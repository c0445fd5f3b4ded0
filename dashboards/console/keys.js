/*
 * What keys do, anywhere but where one writes.
 */

import { chosen } from './settings.js'

/**
 * Listens to keys.
 * @param {Readonly<Record<string, () => void>>} actions by key
 */
export function listenToKeys(actions) {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return
    const { target } = event
    if (target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable]')) {
      if (event.key === 'Escape') target.blur()
      return
    }
    if (document.querySelector('dialog[open]') !== null) return
    // Whoever speaks to the machine may press keys without meaning to.
    if (!chosen().keys) return
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined
    if (action === undefined) return
    event.preventDefault()
    action()
  })
}
