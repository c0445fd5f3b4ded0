import { type Script, script } from './script.ts'

/** Members that are listed at most; more would be no list that anybody reads. */
export const mostListed = 100
/** Who looks at the list gets one that is at most so old, milliseconds. */
export const rosterEvery = 5000

/**
 * Who shares a group, for people: ids of those that have been heard within `ttl`. Reads alone; nothing hangs on it. KEYS
 * has the members, ARGV: 1 ttl.
 */
export const roster: Script = script(
  'roster',
  `
local time = redis.call('TIME')
local since = string.format('(%.3f', time[1] * 1000 + time[2] / 1000 - ARGV[1])
-- The mark that keeps the key from being empty is at the end of all times.
local found = redis.pcall('ZRANGEBYSCORE', KEYS[1], since, '(+inf', 'LIMIT', 0, ${mostListed})
return found.err and {} or found
`,
)

/** Reads the answer: ids in order. */
export function readRoster(answer: unknown): readonly string[] {
  if (!Array.isArray(answer)) throw new TypeError('not a list of members')
  return answer.map(String).sort()
}
