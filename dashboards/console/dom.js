/*
 * Making and changing elements. Text goes in as text, never as markup, wherever it comes from; and what has not
 * changed is left alone, so that a page of hundreds of rows can be brought up to date every second.
 */

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * Makes an element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [props] `class`, listeners (`onclick`), and attributes; undefined and false are left out
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue
    if (name.startsWith('on') && typeof value === 'function') {
      // The caller knows what it listens to.
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value))
    } else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.flat().filter(isChild))
  return element
}

/**
 * @param {Child} child
 * @returns {child is Node | string}
 */
function isChild(child) {
  return child !== null && child !== undefined && child !== false
}

const svgSpace = 'http://www.w3.org/2000/svg'

/**
 * A shape of the page's own set (see index.html). It says nothing to a screen reader: the word stands beside it.
 * @param {string} name
 * @returns {SVGSVGElement}
 */
export function shape(name) {
  const svg = document.createElementNS(svgSpace, 'svg')
  svg.setAttribute('class', 'shape')
  svg.setAttribute('aria-hidden', 'true')
  svg.setAttribute('viewBox', '0 0 16 16')
  const use = document.createElementNS(svgSpace, 'use')
  use.setAttribute('href', `#shape-${name}`)
  svg.append(use)
  return svg
}

/**
 * Shows another of the shapes.
 * @param {SVGSVGElement} svg
 * @param {string} name
 */
export function setShape(svg, name) {
  setAttribute(/** @type {Element} */ (svg.firstChild), 'href', `#shape-${name}`)
}

/**
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

/**
 * @param {Element} element
 * @param {string} name
 * @param {string | undefined} value undefined takes it away
 */
export function setAttribute(element, name, value) {
  if (value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name)
  } else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

/**
 * @param {HTMLElement} element
 * @param {boolean} hidden
 */
export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden
}

/**
 * A custom property, as the style sheet reads it.
 * @param {HTMLElement} element
 * @param {string} name
 * @param {string} value
 */
export function setStyle(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value)
}

/**
 * Brings the children of an element into an order, moving as few of them as can be.
 * @param {Element} parent
 * @param {readonly Element[]} children all that it is to have
 */
export function arrange(parent, children) {
  const wanted = new Set(children)
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove()
  let at = parent.firstElementChild
  for (const child of children) {
    if (child === at) at = at.nextElementSibling
    else parent.insertBefore(child, at)
  }
}

/**
 * The element of the page that has that id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element
}
