/*
 * Questions to a page that are asked inside of it: the functions are sent to the browser as they are, so each has to
 * stand by itself.
 */

/** Text that has too little contrast to what is behind it: 4.5, or 3 where it is large. @returns {string[]} */
export function faint() {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  /** Red, green, blue and opacity of a colour in whatever notation. @param {string} colour */
  const parts = (colour) => {
    pen.clearRect(0, 0, 1, 1)
    pen.fillStyle = colour
    pen.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data
    return { rgb: [r, g, b], alpha: a / 255 }
  }
  /** @param {number[]} rgb */
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((one) =>
      one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4,
    )
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  /** @param {Element} element */
  const ground = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const { rgb, alpha } = parts(getComputedStyle(at).backgroundColor)
      if (alpha > 0.99) return rgb
    }
    return parts(getComputedStyle(document.documentElement).backgroundColor).rgb
  }
  const found = new Set()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement
    if (
      !node.textContent.trim() ||
      !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    )
      continue
    if (element.closest('script, style, .unseen, svg')) continue
    const style = getComputedStyle(element)
    const light = luminance(parts(style.color).rgb)
    const behind = luminance(ground(element))
    const ratio = (Math.max(light, behind) + 0.05) / (Math.min(light, behind) + 0.05)
    const size = Number.parseFloat(style.fontSize)
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
    if (ratio < (large ? 3 : 4.5))
      found.add(
        `${element.tagName}.${element.className} ${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`,
      )
  }
  return [...found]
}

/** Things to work with that have no name. @returns {string[]} */
export function nameless() {
  const found = []
  for (const element of document.querySelectorAll(
    'a[href], button, input, select, summary, [tabindex="0"], [role="dialog"], dialog',
  )) {
    const by = (element.getAttribute('aria-labelledby') ?? '')
      .split(' ')
      .map((id) => document.getElementById(id)?.textContent ?? '')
    const labels = [...(element.labels ?? [])].map((label) => label.textContent)
    const name =
      element.getAttribute('aria-label') ??
      (by.join('').trim() || labels.join('').trim() || element.textContent)
    if (!name?.trim()) found.push(element.outerHTML.slice(0, 120))
  }
  return found
}

/** Ids that stand twice, and references to ids that are not there. @returns {string[]} */
export function misreferred() {
  const found = []
  const ids = new Set()
  for (const { id } of document.querySelectorAll('[id]')) {
    if (ids.has(id)) found.push(`twice: ${id}`)
    ids.add(id)
  }
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-activedescendant']) {
    for (const element of document.querySelectorAll(`[${name}]`)) {
      for (const id of element.getAttribute(name).split(' ')) if (!ids.has(id)) found.push(`${name}: ${id}`)
    }
  }
  return found
}

/** By how many pixels the page is wider than its window. @returns {number} */
export function excess() {
  return document.documentElement.scrollWidth - document.documentElement.clientWidth
}

/** What has the focus, and whether that can be seen. @returns {{ name: string, seen: boolean }} */
export function focused() {
  const element = document.activeElement ?? document.body
  const { outlineStyle, outlineWidth } = getComputedStyle(element)
  const name = element.getAttribute('aria-label') ?? element.textContent.trim().slice(0, 40)
  const box = element.getBoundingClientRect()
  const inWindow = box.bottom > 0 && box.top < window.innerHeight && box.width > 0
  return {
    name: `${element.tagName} ${name}`,
    seen: inWindow && outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0,
  }
}
