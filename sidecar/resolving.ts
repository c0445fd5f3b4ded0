import { monotonic } from '../feedback/clock.ts'
import type { ResolverSpec } from './membership.ts'
import { Answers, mostLooking } from './resolve/answers.ts'
import { askServer } from './resolve/exchange.ts'
import { Followers, type FollowersEnv } from './resolve/followers.ts'
import { Resolver } from './resolve/resolver.ts'
import { systemFiles } from './resolve/system.ts'
import { errorLog } from './telemetry/error-log.ts'

/** This thread's clock, dice, files and sockets. Its timers keep no process alive. */
const env: FollowersEnv = {
  now: monotonic,
  random: Math.random,
  after(ms, run) {
    const timer = setTimeout(run, ms).unref()
    return () => clearTimeout(timer)
  },
  say: (level, text) => errorLog.log(level, text),
  ask: askServer,
  system: systemFiles(),
}

/**
 * What follows names in this process.
 * @param changed told when a name has other addresses than before
 */
export function systemFollowers(changed: () => void): Followers {
  return new Followers(env, changed)
}

/** What looks up names that requests of this thread bring along; each asks for both families at once. */
export function systemAnswers(spec: ResolverSpec): Answers {
  return new Answers(new Resolver(spec, env, 2 * mostLooking), env)
}
