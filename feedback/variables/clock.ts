/** Moments and spans as nginx writes them. Formatted once a second, since every log line asks for the same text. */

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

interface Second {
  /** Whole seconds since the epoch. */
  readonly second: number
  readonly local: string
  readonly iso: string
  readonly log: string
  /** In UTC, up to the seconds. */
  readonly utc: string
}

let last: Second = { second: Number.NaN, local: '', iso: '', log: '', utc: '' }

const three = (value: number): string => (value < 10 ? `00${value}` : value < 100 ? `0${value}` : `${value}`)
const two = (value: number): string => (value < 10 ? `0${value}` : `${value}`)

function at(wallMs: number): Second {
  const second = Math.floor(wallMs / 1000)
  if (last.second === second) return last
  const date = new Date(second * 1000)
  const [year, month, day] = [date.getFullYear(), date.getMonth(), two(date.getDate())]
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  const offset = -date.getTimezoneOffset()
  const sign = offset < 0 ? '-' : '+'
  const hours = two(Math.floor(Math.abs(offset) / 60))
  const minutes = two(Math.abs(offset) % 60)
  last = {
    second,
    local: `${day}/${months[month]}/${year}:${time} ${sign}${hours}${minutes}`,
    iso: `${year}-${two(month + 1)}-${day}T${time}${sign}${hours}:${minutes}`,
    log: `${year}/${two(month + 1)}/${day} ${time}`,
    utc: date.toISOString().slice(0, 19),
  }
  return last
}

/**
 * `30/Nov/2026:10:00:00 +0000`, in the machine's time zone. `$time_local`.
 * @param wallMs milliseconds since the epoch
 */
export const localTime = (wallMs: number): string => at(wallMs).local

/** `2026-11-30T10:00:00+00:00`. `$time_iso8601`. */
export const isoTime = (wallMs: number): string => at(wallMs).iso

/** `2026/11/30 10:00:00`: how lines of an error log begin. */
export const logTime = (wallMs: number): string => at(wallMs).log

/** `2026-11-30T10:00:00.123Z`: as `toISOString` writes it, but most of it only once a second. */
export const utcTime = (wallMs: number): string => `${at(wallMs).utc}.${three(Math.floor(wallMs) % 1000)}Z`

/**
 * A span, or a moment since the epoch, in seconds with three decimals. Cut and not rounded, as nginx does with its
 * whole milliseconds; never negative.
 * @param ms milliseconds
 */
export function seconds(ms: number): string {
  const whole = ms > 0 ? Math.floor(ms) : 0
  const rest = whole % 1000
  return `${(whole - rest) / 1000}.${three(rest)}`
}
