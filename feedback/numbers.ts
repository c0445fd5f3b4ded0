import type { SignalReason } from './reasons.ts'

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
const infinity = /^[+-]?inf(?:inity)?$/i

/**
 * Reads a number as a peer writes it.
 * @param text without blanks around it
 * @returns a finite number, or why it is none
 */
export function readNumber(text: string): number | Extract<SignalReason, 'not_a_number' | 'infinite'> {
  if (infinity.test(text)) return 'infinite'
  if (!decimal.test(text)) return 'not_a_number'
  const value = Number(text)
  return Number.isFinite(value) ? value : 'infinite'
}
