/*
 * The live page: takes in what the program tells and shows it.
 */

import { forgetInks } from './chart.js'
import { byId, setText } from './dom.js'
import { GroupList } from './groups.js'
import { Link } from './link.js'
import { Store } from './store.js'

const store = new Store()
const groups = new GroupList(store)
byId('main').append(groups.element)

let due = false

/** Shows what is, once, before the next picture. */
function show() {
  if (due || document.hidden) return
  due = true
  requestAnimationFrame(() => {
    due = false
    setText(byId('version'), store.layout?.version ?? '')
    groups.update()
  })
}

const link = new Link({
  event(name, data) {
    // What is told is described in sidecar/admin/live-state.ts.
    const told = /** @type {any} */ (data)
    if (name === 'layout') store.takeLayout(told)
    else if (name === 'state') store.takeState(told)
    else if (name === 'probes') store.takeProbes(told)
    show()
  },
  up() {
    document.documentElement.dataset['link'] = 'up'
  },
  down() {
    document.documentElement.dataset['link'] = 'down'
  },
})

document.addEventListener('visibilitychange', show)
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  forgetInks()
  show()
})
link.start()
