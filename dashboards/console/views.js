/*
 * Which view is shown, by what stands behind # in the address, so that it can be kept and passed on.
 */

import { byId, setAttribute, setHidden } from './dom.js'

export const views = /** @type {const} */ (['groups', 'attempts', 'config', 'fleet'])

/** @typedef {(typeof views)[number]} View */

export class Views {
  /** @type {View} */
  current = 'groups'
  #changed
  #links = /** @type {HTMLAnchorElement[]} */ ([...byId('views').querySelectorAll('a')])

  /** @param {(view: View, rest: string) => void} changed told the view, and what stands behind it in the address */
  constructor(changed) {
    this.#changed = changed
    window.addEventListener('hashchange', () => this.#read())
  }

  start() {
    this.#read()
  }

  /** @param {View} view */
  go(view) {
    location.hash = view
  }

  /** @param {boolean} there */
  showFleet(there) {
    for (const link of this.#links) if (link.hash === '#fleet') setHidden(link, !there)
  }

  #read() {
    const [name = '', ...rest] = location.hash.slice(1).split('/')
    this.current = views.find((view) => view === name) ?? 'groups'
    document.documentElement.dataset['view'] = this.current
    for (const link of this.#links)
      setAttribute(link, 'aria-current', link.hash === `#${this.current}` ? 'page' : undefined)
    let behind = rest.join('/')
    try {
      behind = decodeURIComponent(behind)
    } catch {
      // Then it is the name as it stands.
    }
    this.#changed(this.current, behind)
  }
}
