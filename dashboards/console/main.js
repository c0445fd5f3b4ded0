/*
 * The live page: takes in what the program tells, and shows it.
 */

import { Attempts } from './attempts.js'
import { byId, setHidden, setText } from './dom.js'
import { FleetView } from './fleet-view.js'
import { counted, span } from './format.js'
import { GroupList } from './group-list.js'
import { Header } from './header.js'
import { openHelp, startHelp } from './help.js'
import { listenToKeys } from './keys.js'
import { Link } from './link.js'
import { setLinked } from './poll.js'
import { RunningConfig } from './running-config.js'
import { startScheme, switchScheme } from './scheme.js'
import { chosen } from './settings.js'
import { Store } from './store.js'
import { explainWords } from './tip.js'
import { Views } from './views.js'

/** More changes at once than this are told as a number. */
const mostTold = 3

const store = new Store()
const attempts = new Attempts(store)
const groups = new GroupList(store, show, searchAttempts)
const config = new RunningConfig()
const fleet = new FleetView(store)
const header = new Header(store)

/** @type {import('./header.js').LinkState} */
const linkState = { up: false, since: Date.now(), why: '', next: undefined, waits: false }
/** The page that the program had when this one was loaded, and whether it has another by now. */
let edition = ''
let outdated = false
let due = false
/** When anything was heard last. */
let heardAt = Date.now()

const views = new Views((view, rest) => {
  for (const one of [groups, config, fleet]) setHidden(one.element, one.element.id !== `view-${view}`)
  show()
  if (view === 'groups' && rest !== '') requestAnimationFrame(() => groups.reveal(rest))
})

/** Shows what is, once, before the next picture. */
function show() {
  if (due || document.hidden) return
  due = true
  requestAnimationFrame(() => {
    due = false
    linkState.next = link.nextTry
    header.update(linkState, outdated)
    views.showFleet(fleet.there)
    if (views.current === 'groups') groups.update()
    if (views.current === 'config' && linkState.up)
      void config.update(store.state?.program.generation ?? 0, changesText())
    fleet.update()
    attempts.update()
    title()
  })
}

/** What was changed while the program runs. */
function changesText() {
  return JSON.stringify(store.layout?.groups.map(({ name, changes }) => (changes ? [name, changes] : 0)))
}

/** The tab says how it is, too. */
function title() {
  const ms = chosen().span
  let troubles = 0
  for (const { peers, canaryFails } of store.groups) {
    troubles += Number(canaryFails)
    for (const peer of peers) if (peer.inTrouble(ms)) troubles += 1
  }
  const lost = !linkState.up && linkState.why !== ''
  const prefix = lost ? '(no link) ' : troubles > 0 ? `(${troubles}) ` : ''
  const text = `${prefix}evenkeel`
  if (document.title !== text) document.title = text
}

/** Says something to who does not see it. @param {string} text */
function announce(text) {
  setText(byId('announcer'), text)
}

/** @param {string} text */
function searchAttempts(text) {
  attempts.search(text)
  if (byId('rail').offsetParent === null) views.go('attempts')
}

function takeChanges() {
  const changes = store.takeChanges()
  if (changes.length === 0) return
  attempts.takeChanges(changes, store.now)
  const told = changes
    .slice(0, mostTold)
    .map(({ peer, before }) => `${peer.group.name}: ${peer.name} is ${peer.state}, was ${before}`)
  if (changes.length > mostTold) told.push(`${counted(changes.length - mostTold, 'more peer')} changed`)
  announce(told.join('. '))
}

const link = new Link({
  event(name, data) {
    // Described in told.js.
    const told = /** @type {any} */ (data)
    heardAt = Date.now()
    if (name === 'layout') {
      if (store.takeLayout(told)) attempts.clear()
      if (edition === '') edition = told.page
      outdated = told.page !== edition
    } else if (name === 'state') store.takeState(told)
    else if (name === 'probes') store.takeProbes(told)
    else if (name === 'attempts') attempts.take(told)
    takeChanges()
    // Between a layout and its numbers there is nothing to show.
    if (name === 'state') show()
  },
  up() {
    if (linkState.why !== '') announce(`The link is back after ${span(Date.now() - linkState.since)}.`)
    Object.assign(linkState, { up: true, since: Date.now(), why: '' })
    document.documentElement.dataset['link'] = 'up'
    setLinked(true)
    show()
  },
  down(why) {
    if (linkState.up || linkState.why === '') {
      // It may have been lost at any time since something was last heard.
      Object.assign(linkState, { up: false, since: heardAt })
      announce(`No link: ${why}.`)
    }
    linkState.why = why
    document.documentElement.dataset['link'] = 'down'
    setLinked(false)
    show()
  },
})

byId('main').append(groups.element, config.element, fleet.element)
byId('rail').append(attempts.element)
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return
  link.hurry()
  show()
})
// While there is no link nothing else moves the seconds on.
setInterval(() => {
  if (!linkState.up) show()
}, 500)

/** Puts the cursor where one searches. */
function search() {
  if (views.current === 'config') config.focusSearch()
  else {
    views.go('groups')
    // The view is changed by the time of the next picture.
    requestAnimationFrame(() => groups.toolbar.focusFilter())
  }
}

/** Goes into what one moves about in, where the focus is elsewhere. */
function enter() {
  if (views.current === 'groups') groups.focusPeer()
  if (views.current === 'attempts') attempts.focusList()
}

/** @param {import('./views.js').View} view */
const go = (view) => () => views.go(view)
listenToKeys({
  '?': openHelp,
  '/': search,
  g: go('groups'),
  a: go('attempts'),
  c: go('config'),
  f: () => (fleet.there ? views.go('fleet') : announce('There is no fleet.')),
  j: enter,
  k: enter,
  w: () => groups.current?.explain(),
  t: () => groups.toolbar.troubleOnly(),
  s: () => groups.toolbar.nextSpan(),
  o: () => groups.foldAll(),
  p: () => attempts.pause(),
  d: () => {
    switchScheme()
    show()
  },
})
startScheme(show)
startHelp()
explainWords()
views.start()
link.start()
