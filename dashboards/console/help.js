/*
 * The keys, and what the words mean: a dialog behind `?`.
 */

import { byId, h, shape } from './dom.js'
import { choose, chosen } from './settings.js'
import { attemptReasons, denialReasons, stalled, stateOrder, stateShapes, states } from './words.js'

/** @type {readonly (readonly [keys: string[], does: string])[]} */
const keys = [
  [['?'], 'these keys, and what the words mean'],
  [['/'], 'filter groups and peers, or search the configuration'],
  [['g'], 'groups'],
  [['a'], 'attempts'],
  [['c'], 'configuration'],
  [['f'], 'fleet'],
  [['j', 'k'], 'to the first peer, or into the list of attempts, and there on and back, as the arrows do'],
  [['Enter'], 'open what has the focus'],
  [['Esc'], 'close details, or a dialog'],
  [['w'], 'why a request would go where it would go'],
  [['t'], 'trouble alone'],
  [['s'], 'numbers over another span'],
  [['o'], 'open or close all groups'],
  [['p'], 'pause the attempts, or let them go on'],
  [['d'], 'light, dark, or as the system has it'],
]

function dialog() {
  return /** @type {HTMLDialogElement} */ (byId('help'))
}

export function openHelp() {
  const help = dialog()
  if (!help.open) help.replaceChildren(...content())
  if (!help.open) help.showModal()
}

function content() {
  const close = h('button', { type: 'button', autofocus: true, onclick: () => dialog().close() }, 'Close')
  const fleet = !document.querySelector('#views a[href="#fleet"]')?.hasAttribute('hidden')
  const listed = keys.filter(([[key]]) => key !== 'f' || fleet)
  const lines = listed.flatMap(([names, does]) => [
    h('dt', {}, ...names.map((name) => h('kbd', {}, name))),
    h('dd', {}, does),
  ])
  return [
    h('div', { class: 'panel-head' }, h('h2', {}, 'Keys and words'), close),
    h('h3', {}, 'Keys'),
    h('p', {}, keySwitch()),
    h('dl', { class: 'pairs keys' }, ...lines),
    h('h3', {}, 'States of a peer'),
    h(
      'dl',
      { class: 'pairs' },
      ...[...stateOrder]
        .reverse()
        .flatMap((state) => [
          h('dt', { class: 'state', 'data-state': state }, shape(stateShapes[state]), state),
          h('dd', {}, states[state]),
        ]),
      h('dt', { class: 'state', 'data-state': 'waiting' }, shape('waiting'), 'silent or slow'),
      h('dd', {}, stalled),
    ),
    h('h3', {}, 'Why an attempt did not end well'),
    glossary(attemptReasons),
    h('h3', {}, 'Why there was no further attempt'),
    glossary(denialReasons),
  ]
}

function keySwitch() {
  const box = h('input', {
    type: 'checkbox',
    checked: chosen().keys,
    onchange: () => choose({ keys: box.checked }),
  })
  return h('label', { class: 'check' }, box, ' Single keys do something')
}

/** @param {Readonly<Record<string, string>>} words */
function glossary(words) {
  return h(
    'dl',
    { class: 'pairs' },
    ...Object.entries(words).flatMap(([word, text]) => [h('dt', { class: 'mono' }, word), h('dd', {}, text)]),
  )
}

export function startHelp() {
  byId('help-open').addEventListener('click', openHelp)
  dialog().addEventListener('click', (event) => {
    // Outside of it: the dialog itself is hit only beyond its edge.
    if (event.target === dialog()) dialog().close()
  })
}
