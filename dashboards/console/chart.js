/*
 * Small lines over the last minute. They are drawn on a canvas, since hundreds of them change every second.
 */

import { gapMs } from './history.js'

/**
 * @typedef {object} Line
 * @property {{ at: number, value: number }[]} points value NaN where there is none
 * @property {'line' | 'trouble' | 'calm'} ink
 * @property {boolean} [area] whether what is below it is filled
 */

/** Colours as the style sheet has them; read anew when the scheme changes. @type {Map<string, string>} */
let inks = new Map()

/** Colours are read from the style sheet when a line is next drawn. */
export function forgetInks() {
  inks = new Map()
}

/** @param {string} name */
function ink(name) {
  let colour = inks.get(name)
  if (colour === undefined) {
    colour = getComputedStyle(document.documentElement).getPropertyValue(`--ink-${name}`).trim()
    // `light-dark()` is resolved where it is used as a colour, and not in a custom property.
    const probe = document.createElement('span')
    probe.style.color = colour
    document.body.append(probe)
    colour = getComputedStyle(probe).color
    probe.remove()
    inks.set(name, colour)
  }
  return colour
}

/**
 * How large each canvas is shown: asking for it while other things change would have the whole page laid out anew each
 * time.
 * @type {WeakMap<Element, { width: number, height: number }>}
 */
const sizes = new WeakMap()
/** What each canvas shows, so that it can be drawn again in another size. @type {WeakMap<Element, () => void>} */
const shown = new WeakMap()

const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const { width, height } = contentRect
    sizes.set(target, { width, height })
    shown.get(target)?.()
  }
})

/**
 * Draws lines into a canvas of the size that the style sheet gives it. All have one scale, from 0 to the greatest value.
 * @param {HTMLCanvasElement} canvas
 * @param {Line[]} lines
 * @param {number} now the right edge, wall clock milliseconds
 * @param {number} ms how much the width is
 */
export function draw(canvas, lines, now, ms) {
  if (!shown.has(canvas)) observer.observe(canvas)
  shown.set(canvas, () => paint(canvas, lines, now, ms))
  paint(canvas, lines, now, ms)
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Line[]} lines
 * @param {number} now
 * @param {number} ms
 */
function paint(canvas, lines, now, ms) {
  const { width, height } = sizes.get(canvas) ?? { width: 0, height: 0 }
  if (width === 0 || height === 0) return
  const scale = Math.min(3, window.devicePixelRatio || 1)
  const wide = Math.round(width * scale)
  const high = Math.round(height * scale)
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide
    canvas.height = high
  }
  const pen = canvas.getContext('2d')
  if (pen === null) return
  pen.setTransform(scale, 0, 0, scale, 0, 0)
  pen.clearRect(0, 0, width, height)
  let most = 0
  for (const { points } of lines) for (const { value } of points) if (value > most) most = value
  const x = (/** @type {number} */ at) => width - ((now - at) / ms) * width
  const y = (/** @type {number} */ value) => height - 1.5 - (most === 0 ? 0 : (value / most) * (height - 3))
  pen.strokeStyle = ink('rule')
  pen.lineWidth = 1
  pen.beginPath()
  pen.moveTo(0, height - 0.5)
  pen.lineTo(width, height - 0.5)
  pen.stroke()
  for (const { points, ink: name, area } of lines) {
    pen.strokeStyle = ink(name)
    pen.fillStyle = ink(`${name}-area`)
    pen.lineWidth = 1.25
    pen.lineJoin = 'round'
    // Where there is no trouble there is no line of it.
    for (const run of runs(name === 'trouble' ? raised(points) : points)) {
      pen.beginPath()
      for (const [i, { at, value }] of run.entries()) {
        if (i === 0) pen.moveTo(x(at), y(value))
        else pen.lineTo(x(at), y(value))
      }
      // A value by itself has to be seen too.
      if (run.length === 1) pen.lineTo(x(run[0].at) - 1.5, y(run[0].value))
      pen.stroke()
      if (!area) continue
      pen.lineTo(x(run[run.length - 1].at), height)
      pen.lineTo(x(run[0].at), height)
      pen.closePath()
      pen.fill()
    }
  }
}

/**
 * A line without the stretches in which it is 0, but for the ends of what rises above.
 * @param {{ at: number, value: number }[]} points
 */
function raised(points) {
  return points.map(({ at, value }, i) => {
    const flat = value === 0 && !(points[i - 1]?.value > 0) && !(points[i + 1]?.value > 0)
    return { at, value: flat ? Number.NaN : value }
  })
}

/**
 * Stretches of a line without a gap.
 * @param {{ at: number, value: number }[]} points
 */
function runs(points) {
  const found = []
  /** @type {{ at: number, value: number }[]} */
  let run = []
  for (const point of points) {
    const last = run[run.length - 1]
    if (Number.isNaN(point.value) || (last !== undefined && point.at - last.at > gapMs)) {
      if (run.length > 0) found.push(run)
      run = []
    }
    if (!Number.isNaN(point.value)) run.push(point)
  }
  if (run.length > 0) found.push(run)
  return found
}
