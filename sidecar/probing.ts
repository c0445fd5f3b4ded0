import { monotonic } from '../feedback/clock.ts'
import { Prober } from '../probes/timer.ts'
import { errorLog } from './telemetry/error-log.ts'

/**
 * A timer that is late by so much says that the process could not run, as when it was stopped: answers that have come
 * meanwhile are read first, which takes this long at most. Milliseconds.
 */
const lateMs = 50
const readingMs = 50

/** What asks peers in this process. Its timers keep no process alive. */
export function systemProber(): Prober {
  return new Prober({
    now: monotonic,
    wall: () => Date.now(),
    random: Math.random,
    after(ms, run) {
      const dueAt = monotonic() + ms
      let timer = setTimeout(() => {
        if (monotonic() - dueAt < lateMs) run()
        else timer = setTimeout(run, readingMs).unref()
      }, ms).unref()
      return () => clearTimeout(timer)
    },
    say: (text) => errorLog.log('warn', text),
  })
}
