import { monotonic } from '../feedback/clock.ts'
import type { Ending } from '../feedback/outcome.ts'
import type { AttemptReason } from '../feedback/reasons.ts'
import { connectVerdict, lossReason } from '../feedback/socket-error.ts'
import type { Answer, ProbeFailure } from './probe.ts'

/** Why there is no answer, with what a person may want to read of it. */
export interface Mishap {
  readonly failure: ProbeFailure
  readonly detail: string
}

/**
 * An answer of which only what was seen has to be said.
 * @param startedAt monotonic milliseconds; the answer has ended now
 */
export function answer(startedAt: number, seen: Partial<Answer>): Answer {
  return {
    failure: undefined,
    passed: undefined,
    status: undefined,
    headers: [],
    trailers: [],
    body: '',
    connectMs: undefined,
    headerMs: undefined,
    responseMs: monotonic() - startedAt,
    detail: '',
    orders: undefined,
    ...seen,
  }
}

export function mishap(ending: Ending, reason: AttemptReason, detail: string, local = false): Mishap {
  return { failure: local ? { ending, reason, local } : { ending, reason }, detail }
}

/** What came in the way of a connection. */
export function connectMishap(error: NodeJS.ErrnoException): Mishap {
  const { ending, reason, local } = connectVerdict(error)
  return mishap(ending, reason, error.message, local)
}

/** What broke a connection before the answer was there; without an error the peer has closed it. */
export function brokenMishap(error: NodeJS.ErrnoException | undefined): Mishap {
  if (error === undefined) return mishap('error', 'closed', 'connection closed by the peer')
  return mishap('error', lossReason(error), error.message)
}

/** Of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Longest piece of a peer's own text in a detail, characters. */
const longestShown = 200

/** A peer's own text for people: short, and with nothing in it that a terminal or a log would obey. */
export function shown(text: string): string {
  const short = text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
  return short.replace(/[^\x20-\x7e…]/g, (char) => {
    return `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
