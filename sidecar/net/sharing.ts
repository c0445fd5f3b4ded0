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
