import { type Script, script } from './script.ts'

/**
 * An instance ends: whoever comes next takes its parts out at once. ARGV: 1 keep, 2 id. Where there is nothing to take
 * leave of, nothing is begun: what nobody comes back to would never expire.
 */
export const departure: Script = script(
  'departure',
  `
local members, id = KEYS[3], ARGV[2]
if redis.call('ZSCORE', members, id) then redis.call('ZADD', members, 0, id) end
return 1
`,
)
