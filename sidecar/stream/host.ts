import type { Call } from '../../feedback/call.ts'
import type { ClientCounts } from '../../feedback/tally.ts'
import type { Session } from './session.ts'

/** What sessions need of whoever has accepted them. */
export interface SessionHost {
  readonly counts: ClientCounts
  /** A line of the error log, at `error`. */
  complain(call: Call, text: string): void
  /** The same at `info`. */
  note(call: Call, text: string): void
  /** How long sessions have with peers that have left, milliseconds. */
  readonly graceMs: number
  /** A session has a deadline that may be the next one of all. @param at monotonic milliseconds */
  expect(at: number): void
  /** The last of a session's sockets has closed. */
  gone(session: Session): void
}
