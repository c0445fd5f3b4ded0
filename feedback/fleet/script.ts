import { createHash } from 'node:crypto'

/** A Lua program that runs inside Redis, all or nothing. */
export interface Script {
  readonly name: string
  readonly text: string
  /** What `EVALSHA` knows it by: the lower-case hexadecimal SHA-1 of the text. */
  readonly sha: string
}

export function script(name: string, text: string): Script {
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}

/**
 * Begins every script that works on a group's state. KEYS are the hash, the changes and the members (see keys.ts), and
 * ARGV[1] is for how long an unused key is kept, milliseconds.
 *
 * Redis may have lost any of the keys, by a restart, an eviction or a flush. What is left is then not to be trusted,
 * since sums and what they are sums of would no longer fit: everything is forgotten, and a new epoch begins. It is the
 * same where what is there cannot be right. So that two of the keys never come to be empty, and thereby vanish, each
 * has an entry of its own: the epoch and no name.
 *
 * What is short and not many Redis keeps in a list that it searches from one end to the other, for each entry anew. An
 * epoch is therefore longer than the 64 bytes at which it gives that up, and is an entry of what grows with the peers.
 *
 * Gives: `now` (milliseconds of the server's clock, with a fraction), `state`, `changed`, `members`, `epoch`, `born`
 * (when the epoch began, by the same clock), `ask()`, which takes another kind of key for nothing, `score()` of an entry of the latter two, `begin()`, which begins a new
 * epoch, and `version()`, which counts one up, once a script.
 */
export const opening = `
local state, changed, members = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local epoch, born
local function begin()
  redis.call('DEL', state, changed, members)
  epoch, born = string.format('%s.%06d', time[1], time[2]) .. string.rep('0', 48), now
  redis.call('HSET', state, 'epoch', epoch, 'born', string.format('%.3f', now))
  redis.call('ZADD', changed, 0, epoch)
  redis.call('ZADD', members, '+inf', '')
end
-- Nothing, where another program has put another kind of key, or of value, in its place. Whatever else is refused is
-- for whoever asked: what is there may be right, and is not to be thrown away for want of memory, or of a right.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  for _, word in ipairs({ 'WRONGTYPE', 'not an integer', 'overflow' }) do
    if string.find(answer.err, word, 1, true) then return nil end
  end
  return redis.call(...)
end
local function score(key, name)
  local found = ask('ZSCORE', key, name)
  return found and tonumber(found)
end
local function open()
  local known = ask('HMGET', state, 'epoch', 'born') or {}
  epoch, born = known[1], tonumber(known[2] or '')
  -- A clock that was set back tells neither what is new nor who is there.
  local right = epoch and born and born >= 0 and born < now + 1000
  if not (right and score(changed, epoch) and score(members, '')) then begin() end
end
local function version()
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
  local counted = ask('HINCRBY', state, 'version', 1)
  -- Beyond that Lua does not tell one from the next.
  if counted and counted > 0 and counted < 2 ^ 52 then return counted end
  begin()
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
  return redis.call('HINCRBY', state, 'version', 1)
end
open()
`
