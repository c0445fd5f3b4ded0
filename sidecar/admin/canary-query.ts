import { reservoirMinutes } from '../../feedback/reservoir.ts'
import type { Demands } from '../../feedback/verdict.ts'
import { formatTime, timeMs } from '../config/units.ts'

/** What `/canary/UPSTREAM` is asked for. */
export interface CanaryQuery extends Demands {
  /** Labels of the tracks that are compared. */
  readonly baseline: string
  readonly canary: string
  /** How far is looked back, milliseconds. */
  readonly window: number
  /** Whether all instances are asked, where there are others. */
  readonly scope: 'fleet' | 'instance'
  readonly format: 'json' | 'text'
}

/** A query that cannot be answered; the message is for people and names the parameter. */
export class BadQuery extends Error {}

/** Text of each parameter where it is not given. */
const defaults = {
  baseline: 'stable',
  canary: 'canary',
  window: '10m',
  min_samples: '100',
  max_slowdown: '10',
  max_errors: '1',
  scope: 'fleet',
  format: 'json',
} as const

type Name = keyof typeof defaults
const minute = 60_000
const longest = reservoirMinutes * minute

/**
 * Reads the parameters of a request.
 * @throws BadQuery
 */
export function readQuery(given: Readonly<Record<string, unknown>>): CanaryQuery {
  const texts: Record<Name, string> = { ...defaults }
  for (const [name, value] of Object.entries(given)) {
    if (!isName(name)) {
      throw new BadQuery(`unknown parameter "${name}": there are ${Object.keys(defaults).join(', ')}`)
    }
    if (typeof value !== 'string') throw new BadQuery(`parameter "${name}" stands twice`)
    texts[name] = value
  }
  for (const name of ['baseline', 'canary'] as const) {
    if (texts[name] === '') throw new BadQuery(`parameter "${name}" is empty: it is the label of a track`)
  }
  if (texts.baseline === texts.canary) {
    throw new BadQuery(`parameters "baseline" and "canary" are both "${texts.canary}"`)
  }
  return {
    baseline: texts.baseline,
    canary: texts.canary,
    window: readWindow(texts.window),
    minSamples: readNumber('min_samples', texts.min_samples, /^\d+$/, 1, 1_000_000),
    maxSlowdown: readNumber('max_slowdown', texts.max_slowdown, percentage, 0, 10_000) / 100,
    maxErrors: readNumber('max_errors', texts.max_errors, percentage, 0, 100) / 100,
    scope: readWord('scope', texts.scope, ['fleet', 'instance']),
    format: readWord('format', texts.format, ['json', 'text']),
  }
}

const percentage = /^\d+(?:\.\d+)?%?$/

function isName(name: string): name is Name {
  return Object.hasOwn(defaults, name)
}

function readWindow(text: string): number {
  const ms = timeMs(text)
  if (ms !== undefined && ms >= minute && ms <= longest) return ms
  throw new BadQuery(`invalid "window" "${text}": it is a time from 1m to ${formatTime(longest)}`)
}

function readNumber(name: Name, text: string, form: RegExp, least: number, most: number): number {
  const value = Number(text.replace(/%$/, ''))
  if (form.test(text) && value >= least && value <= most) return value
  const kind = form === percentage ? 'number' : 'whole number'
  throw new BadQuery(`invalid "${name}" "${text}": it is a ${kind} from ${least} to ${most}`)
}

function readWord<W extends string>(name: Name, text: string, words: readonly W[]): W {
  const word = words.find((one) => one === text)
  if (word !== undefined) return word
  throw new BadQuery(`invalid "${name}" "${text}": it is "${words.join('" or "')}"`)
}
