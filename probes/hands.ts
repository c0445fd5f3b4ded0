import type { Timers } from './due-queue.ts'
import type { Entry, Landing } from './patient.ts'
import type { News, ProbeRecord } from './record.ts'

/** What whoever holds the entries does with them. */
export interface Hands {
  /** Asks; `landed` hears once, also when nobody wants to know any more. */
  ask(entry: Entry, landed: (landing: Landing) => void): void
  /** Judges by what this instance alone has seen. */
  judge(entry: Entry, landing: Landing): void
  /**
   * Judges by what all instances have seen.
   * @param ago how long ago the result came, milliseconds
   * @param own the landing, where this instance has asked
   */
  hear(entry: Entry, record: ProbeRecord, news: News, ago: number, own: Landing | undefined): void
  /** Has an entry come up at another moment. @param dueAt monotonic milliseconds */
  put(entry: Entry, dueAt: number): void
}

/** Time and dice. */
export interface SharedEnv extends Timers {
  /** Uniform in [0, 1). */
  random(): number
  /** Something that a person should read. */
  say(text: string): void
}
