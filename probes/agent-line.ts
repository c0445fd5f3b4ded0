import type { Orders } from './probe.ts'

/** What an agent's line says. */
export interface AgentLine {
  /** Undefined when no word of it orders anything. */
  readonly orders: Orders | undefined
  /** Words that are none of the protocol's, or ask for what cannot be; in order. */
  readonly ignored: readonly string[]
}

type Order = { -readonly [Name in keyof Orders]: Orders[Name] }

/** Words that stand for one order each. */
const words: ReadonlyMap<string, Orders> = new Map<string, Orders>([
  ['ready', { administrative: 'ready' }],
  ['drain', { administrative: 'drain' }],
  ['maint', { administrative: 'maint' }],
  ['up', { operational: 'up' }],
  ['down', { operational: 'down' }],
  ['fail', { operational: 'down' }],
  ['failed', { operational: 'down' }],
  ['stopped', { operational: 'down' }],
])

/**
 * Reads the line of HAProxy's agent-check (its manual, `agent-check`): words between blanks, tabs and commas, in any
 * order and case; what begins with a sharp is a reason for people. Of several words for one thing the last holds, and
 * a word that does not fit is left out without spoiling the others.
 */
export function readAgentLine(line: string): AgentLine {
  const order: Order = {}
  const ignored: string[] = []
  const said = line.replace(/#.*/s, '')
  for (const word of said.split(/[ \t,]+/)) {
    if (word !== '' && !obey(word.toLowerCase(), order)) ignored.push(word)
  }
  return { orders: Object.keys(order).length > 0 ? order : undefined, ignored }
}

/** @returns false for a word that orders nothing */
function obey(word: string, order: Order): boolean {
  const fixed = words.get(word)
  if (fixed) {
    Object.assign(order, fixed)
    return true
  }
  const [, name, digits = '', percent] = /^(weight:|maxconn:)?(\d{1,9})(%)?$/.exec(word) ?? []
  if (digits === '') return false
  const number = Number(digits)
  if (percent && name !== 'maxconn:') {
    order.weightFactor = Math.min(number, largestPercent) / 100
    // The two say the same thing: the later word holds.
    delete order.weight
  } else if (!percent && name === 'maxconn:') {
    order.maxConns = number
  } else if (!percent && name === 'weight:' && number <= largestWeight) {
    order.weight = number
    delete order.weightFactor
  } else return false
  return true
}

/** HAProxy's. A larger percentage it takes for this one. */
const largestWeight = 256
const largestPercent = 25_600
