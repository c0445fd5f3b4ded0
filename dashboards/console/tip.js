/*
 * What a word means, beside it, for whoever points at it or comes to it with the keyboard: `data-tip` is the text, or
 * `data-word` a word of words.js.
 */

import { byId, setText } from './dom.js'
import { meaning } from './words.js'

/** How far from the word, and from the edges of the window. */
const gap = 6

/** @param {Element} element */
function textOf(element) {
  if (!(element instanceof HTMLElement)) return undefined
  const { tip, word } = element.dataset
  return tip ?? (word === undefined ? undefined : meaning(word))
}

export function explainWords() {
  const box = byId('tip')
  /** @type {Element | undefined} */
  let shown

  /** @param {Element} element @param {string} text */
  const show = (element, text) => {
    shown?.removeAttribute('aria-describedby')
    shown = element
    setText(box, text)
    box.hidden = false
    element.setAttribute('aria-describedby', 'tip')
    const around = element.getBoundingClientRect()
    const { width, height } = box.getBoundingClientRect()
    const left = Math.max(gap, Math.min(around.left, document.documentElement.clientWidth - width - gap))
    const below = around.bottom + gap
    const top = below + height > window.innerHeight ? Math.max(gap, around.top - height - gap) : below
    box.style.setProperty('left', `${left}px`)
    box.style.setProperty('top', `${top}px`)
  }
  const hide = () => {
    shown?.removeAttribute('aria-describedby')
    shown = undefined
    box.hidden = true
  }
  /** @param {Event} event */
  const look = (event) => {
    const at = event.target instanceof Element ? event.target.closest('[data-tip], [data-word]') : null
    const text = at === null ? undefined : textOf(at)
    if (at === null || text === undefined) {
      if (shown !== undefined && event.type === 'pointerover') hide()
    } else if (at !== shown) show(at, text)
  }
  document.addEventListener('pointerover', look)
  document.addEventListener('focusin', look)
  document.addEventListener('focusout', hide)
  document.addEventListener('scroll', hide, { capture: true, passive: true })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hide()
  })
}
