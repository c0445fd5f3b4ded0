import type { Tally } from '../../feedback/tally.ts'

/** What several threads that listen on the same addresses have to know of each other. */
export interface Sharing {
  /** How many listen. */
  readonly threads: number
  /** Which of them this is, from 0. */
  readonly thread: number
  readonly tally: Tally
}

/**
 * Serial number of the connection that was accepted last in this thread. They are the process's, those of streams
 * included: each thread has every so manieth.
 */
export function serialOf({ threads, thread, tally }: Sharing): number {
  return thread + 1 + (tally.own.accepted - 1) * threads
}

/** Connections and sessions of clients that are open now, in all threads. */
export function openNow({ threads, tally }: Sharing): number {
  // With one thread nothing has to be summed.
  return threads > 1 ? tally.all().open : tally.own.open
}
