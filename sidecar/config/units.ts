/** Times and sizes as nginx writes them. */

/** From the greatest to the least, which is the order of a composed time: `1h30m` is one, `30m1h` is not. */
const timeUnits: readonly (readonly [string, number])[] = [
  ['y', 365 * 86_400_000],
  ['M', 30 * 86_400_000],
  ['w', 7 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
]

/** A century: longer ones are slips of the pen. */
const longestMs = 100 * 365 * 86_400_000

/**
 * Milliseconds of `10s`, `1m30s`, `500ms` or `10` (seconds).
 * @returns undefined when the text is no time
 */
export function timeMs(text: string): number | undefined {
  const part = /(\d+)([a-zA-Z]*) */y
  let total = 0
  let last = -1
  do {
    const [, digits, unit] = part.exec(text) ?? []
    if (digits === undefined) return undefined
    const rank = timeUnits.findIndex(([name]) => name === (unit || 's'))
    if (rank <= last) return undefined
    // Seconds without their letter end a time.
    last = unit === '' ? timeUnits.length : rank
    total += Number(digits) * timeUnits[rank]![1]
  } while (part.lastIndex < text.length)
  return total < longestMs ? total : undefined
}

/**
 * Milliseconds of a time that nginx keeps in whole seconds, such as `fail_timeout`.
 * @returns undefined when the text is no time, or has milliseconds in it
 */
export function secondsMs(text: string): number | undefined {
  return text.endsWith('ms') ? undefined : timeMs(text)
}

/**
 * Bytes of `64k`, `1m`, `2g` or `512`.
 * @returns undefined when the text is no size
 */
export function sizeBytes(text: string): number | undefined {
  const [, digits, unit] = /^(\d+)([kKmMgG]?)$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const shift = ['', 'k', 'm', 'g'].indexOf(unit!.toLowerCase())
  const bytes = Number(digits) * 1024 ** shift
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** The canonical text of a time: the largest unit but the minute that it is a whole number of. */
export function formatTime(ms: number): string {
  if (ms === 0) return '0s'
  const [unit, length] = timeUnits.find(([, whole]) => whole !== 60_000 && ms % whole === 0) ?? ['ms', 1]
  return `${ms / length}${unit}`
}

/** The canonical text of a size: the larger of `m` and `k` that it is a whole number of, else plain bytes. */
export function formatSize(bytes: number): string {
  if (bytes > 0 && bytes % 1024 ** 2 === 0) return `${bytes / 1024 ** 2}m`
  if (bytes > 0 && bytes % 1024 === 0) return `${bytes / 1024}k`
  return String(bytes)
}
