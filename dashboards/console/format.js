/*
 * Numbers, spans and moments as people read them. A dash stands for what is not known, and a number never for it.
 */

export const unknown = '–'

/** By digits after the point. */
const formats = [0, 1, 2].map(
  (digits) => new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits }),
)

/**
 * @param {number} value
 * @param {number} digits after the point
 */
function fixed(value, digits) {
  return formats[digits].format(value)
}

/**
 * A whole number with its thousands apart.
 * @param {number} value
 */
export function count(value) {
  return fixed(Math.round(value), 0)
}

/**
 * Something a second: 0, 0.04, 3.2, 41, 1,204.
 * @param {number | undefined} value
 */
export function rate(value) {
  if (value === undefined) return unknown
  if (value === 0) return '0'
  if (value < 0.01) return '<0.01'
  if (value < 1) return fixed(value, 2)
  if (value < 10) return fixed(value, 1)
  return count(value)
}

/**
 * A share: 0 %, 0.4 %, 33.3 %, 100 %.
 * @param {number | undefined} part 0 to 1
 */
export function percent(part) {
  if (part === undefined) return unknown
  if (part === 0) return '0 %'
  if (part < 0.001) return '<0.1 %'
  // What is not all is never rounded up to it.
  if (part < 1 && part >= 0.9995) return '99.9 %'
  return part === 1 ? '100 %' : `${fixed(100 * part, 1)} %`
}

/**
 * Milliseconds, in the unit that leaves two or three digits.
 * @param {number | undefined} ms
 */
export function duration(ms) {
  if (ms === undefined) return unknown
  if (ms >= 10_000) return span(ms)
  if (ms >= 1000) return `${fixed(ms / 1000, 2)} s`
  if (ms >= 100) return `${fixed(ms, 0)} ms`
  if (ms >= 1 || ms === 0) return `${fixed(ms, ms === 0 ? 0 : 1)} ms`
  return ms >= 0.01 ? `${fixed(ms, 2)} ms` : '<0.01 ms'
}

/**
 * A span as somebody has set it: 250 ms, 1.5 s, 5 min.
 * @param {number} ms
 */
export function setting(ms) {
  if (ms >= 60_000 && ms % 60_000 === 0) return `${ms / 60_000} min`
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`
}

/**
 * How long something has been so: 4 s, 3 min, 2 h 5 min, 6 d 3 h.
 * @param {number | undefined} ms
 */
export function span(ms) {
  if (ms === undefined) return unknown
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return `${minutes} min ${seconds % 60} s`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** @param {number | undefined} ms */
export function ago(ms) {
  return ms === undefined ? unknown : `${span(ms)} ago`
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/**
 * A time of day: 10:31:22; with the day where it is not today's.
 * @param {number} at wall clock milliseconds
 * @param {number} [now]
 */
export function time(at, now = Date.now()) {
  const text = clock.format(at)
  return Math.abs(now - at) < 12 * 3_600_000 ? text : `${day.format(at)} ${text}`
}

/**
 * The same to the millisecond.
 * @param {number} at
 */
export function exactTime(at) {
  return `${clock.format(at)}.${String(Math.floor(at) % 1000).padStart(3, '0')}`
}

/**
 * 1 peer, 2 peers.
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`
}

/**
 * A size: 900 B, 4.8 kB, 12.6 MB.
 * @param {number} size
 */
export function bytes(size) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let at = 0
  let value = size
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000
    at += 1
  }
  return `${at === 0 ? count(value) : value.toFixed(1)} ${units[at]}`
}
