import { monotonic } from '../feedback/clock.ts'
import { askServer } from './resolve/exchange.ts'
import { Followers } from './resolve/followers.ts'
import { systemFiles } from './resolve/system.ts'
import { errorLog } from './telemetry/error-log.ts'

/**
 * What follows names in this process. Its timers keep no process alive.
 * @param changed told when a name has other addresses than before
 */
export function systemFollowers(changed: () => void): Followers {
  return new Followers(
    {
      now: monotonic,
      random: Math.random,
      after(ms, run) {
        const timer = setTimeout(run, ms).unref()
        return () => clearTimeout(timer)
      },
      say: (level, text) => errorLog.log(level, text),
      ask: askServer,
      system: systemFiles(),
    },
    changed,
  )
}
