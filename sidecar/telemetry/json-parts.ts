import type { Call } from '../../feedback/call.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import { utcTime } from '../../feedback/variables/clock.ts'
import { drawRequestId } from '../../feedback/variables/request.ts'
import { escapeJson } from './log-format.ts'

/** How a record of a request or a session begins. */
export function recordHead(call: Call): string {
  return `{"time":"${utcTime(Date.now())}","request_id":"${call.requestId(drawRequestId)}"`
}

/** And how it ends: its attempts, and the brace. */
export function recordTail(call: Call, record: (attempt: Attempt, from: number) => string): string {
  const { attempts } = call
  let line = ',"attempts":['
  for (let i = 0; i < attempts.length; i++)
    line += (i === 0 ? '' : ',') + record(attempts[i]!, call.startedAt)
  return `${line}]}`
}

/**
 * How the record of an attempt begins.
 * @param from when the request or session began: what lies between two attempts was waiting
 */
export function attemptHead(attempt: Attempt, from: number): string {
  const { peer, pick, ending, reason } = attempt
  let line = `{"peer":${text(attempt.address)},"track":${word(peer?.options.track)}`
  line += `,"pick":${word(pick)},"at_ms":${ms(attempt.startedAt - from)}`
  return `${line},"ending":${word(ending)},"reason":${word(reason)}`
}

/** One of our own words, or a track, whose name has nothing in it to escape either. */
export const word = (value: string | undefined): string => (value ? `"${value}"` : 'null')
export const text = (value: string): string => `"${escapeJson(value)}"`
export const textOrNull = (value: string): string => (value === '' ? 'null' : text(value))

/** Microseconds are as far as the clock is worth anything. */
export function ms(value: number | undefined): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}
