import { type Script, script } from './script.ts'

/*
 * How attempts ended is kept in Redis in a hash for each minute, with a field for each instance and track. An instance
 * writes its own fields anew as long as the minute lasts, so that nothing is ever added up there, and nothing is wrong
 * when some of it is lost: there are fewer samples then.
 */

/** KEYS[1] is the hash; ARGV: 1 for how long it is kept, milliseconds, then fields and values in turn. */
export const tellSamples: Script = script(
  'tell-samples',
  `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`,
)

/**
 * Reads a part of a hash, so that neither Redis nor who asks is held up. KEYS[1] is the hash; ARGV: 1 where to go on, 0
 * at first, 2 the instance whose own fields are left out, then what fields of the wanted tracks begin with. Gives where
 * to go on, 0 at the end, and then fields and values in turn; a field may come twice.
 */
export const hearSamples: Script = script(
  'hear-samples',
  `
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return { '0' } end
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 32)
local answer = { page[1] }
for i = 1, #page[2], 2 do
  local track, id = string.match(page[2][i], '^([^/]*/)(.*)$')
  for n = 3, #ARGV do
    if track == ARGV[n] and id ~= ARGV[2] then
      answer[#answer + 1] = page[2][i]
      answer[#answer + 1] = page[2][i + 1]
    end
  end
end
return answer
`,
)
