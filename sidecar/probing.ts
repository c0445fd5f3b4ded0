import { monotonic } from '../feedback/clock.ts'
import { Prober } from '../probes/timer.ts'
import { errorLog } from './telemetry/error-log.ts'

/** What asks peers in this process. Its timers keep no process alive. */
export function systemProber(): Prober {
  return new Prober({
    now: monotonic,
    wall: () => Date.now(),
    random: Math.random,
    after(ms, run) {
      const timer = setTimeout(run, ms).unref()
      return () => clearTimeout(timer)
    },
    say: (text) => errorLog.log('warn', text),
  })
}
