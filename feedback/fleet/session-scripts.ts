import { type Script, script } from './script.ts'

/*
 * Sessions that instances have learnt, of one group and table. They are kept in a hash, by their keys: when each was bound
 * and used last, milliseconds of the server's clock, and the id of its peer. A sorted set has the keys in the order of
 * their changes, by a number that counts up, so that whoever comes back hears what has changed since.
 *
 * Redis may have lost one of the two, or somebody may have put something else in its place: then both are begun anew, in
 * a new epoch, and every instance tells all it knows. Entries of their own, the epoch's, are longer than keys.
 */

/** Bytes of a key, and of the two moments before the id. */
export const keyBytes = 16
export const momentBytes = 16
/** So many of those that were changed longest ago are looked at in each exchange, whether they have run out. */
const looked = 32

/**
 * KEYS are the hash and the set. ARGV: 1 the epoch and 2 the change that are known, 3 how long a session lasts that nobody
 * uses, milliseconds, 4 how many there may be, 5 how many are heard at a time, 6 how many are told, 7 of each its key, its
 * two ages, length of the id and the id. The answer: epoch, change up to which all has been heard, whether there is more,
 * the time, keys and values of what has changed, and of what was told and is not the newest, which is it, and its value.
 */
export const shareSessions: Script = script(
  'share-sessions',
  `
local all, changed = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local timeout, most, page = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function is(key, kind)
  return redis.call('TYPE', key).ok == kind
end
local epoch = is(all, 'hash') and redis.call('HGET', all, 'epoch')
local version = epoch and tonumber(redis.call('HGET', all, 'version') or '')
if not (version and version >= 0 and version < 2 ^ 52 and is(changed, 'zset') and redis.call('ZSCORE', changed, epoch)) then
  redis.call('DEL', all, changed)
  epoch, version = string.format('%s.%06d', time[1], time[2]) .. string.rep('0', 16), 0
  redis.call('HSET', all, 'epoch', epoch)
  redis.call('ZADD', changed, 0, epoch)
end
local since = tonumber(ARGV[2])
if ARGV[1] ~= epoch or not (since <= version) then since = 0 end

-- Lua passes some thousands of arguments at most.
local function write(command, key, list)
  for first = 1, #list, 2000 do
    redis.call(command, key, unpack(list, first, math.min(first + 1999, #list)))
  end
end
local function read(keys)
  local values = {}
  for first = 1, #keys, 2000 do
    local some = redis.call('HMGET', all, unpack(keys, first, math.min(first + 1999, #keys)))
    for _, value in ipairs(some) do values[#values + 1] = value end
  end
  return values
end
local function forget(keys)
  write('HDEL', all, keys)
  write('ZREM', changed, keys)
end
-- What is to come has not been: a clock was set back, or somebody made it up.
local function moments(value)
  if value and #value > ${momentBytes} then
    local bound, used = struct.unpack('<dd', value)
    if bound <= now + 1000 and used <= now + 1000 then return bound, used end
  end
  return -1, -1
end

-- What was changed before this exchange, and is heard in it.
local upTo = string.format('%.0f', version)
local keys, told, at = {}, {}, 1
for i = 1, tonumber(ARGV[6]) do
  local key, boundAge, usedAge, sid
  key, boundAge, usedAge, sid, at = struct.unpack('<c${keyBytes}ddBc0', ARGV[7], at)
  keys[i], told[i] = key, { now - boundAge, now - usedAge, sid }
end
local values, sets, marks, lost = read(keys), {}, {}, {}
for i, key in ipairs(keys) do
  local bound, used, sid = told[i][1], told[i][2], told[i][3]
  local boundOf, usedOf = moments(values[i])
  if boundOf > bound then
    bound = boundOf
    local sidOf = string.sub(values[i], ${momentBytes + 1})
    if sidOf ~= sid then
      sid = sidOf
      lost[#lost + 1], lost[#lost + 2] = i - 1, values[i]
    end
  end
  if usedOf > used then used = usedOf end
  if bound ~= boundOf or used ~= usedOf then
    version = version + 1
    sets[#sets + 1], sets[#sets + 2] = key, struct.pack('<dd', bound, used) .. sid
    marks[#marks + 1], marks[#marks + 2] = string.format('%.0f', version), key
  end
end
write('HSET', all, sets)
write('ZADD', changed, marks)

-- Those that have run out, and those that are too many.
local gone = {}
local first = redis.call('ZRANGEBYSCORE', changed, '(0', '+inf', 'LIMIT', 0, ${looked})
for i, value in ipairs(read(first)) do
  local _, used = moments(value)
  if used + timeout > now then break end
  gone[#gone + 1] = first[i]
end
local over = redis.call('ZCARD', changed) - 1 - most
if over > #gone then gone = redis.call('ZRANGEBYSCORE', changed, '(0', '+inf', 'LIMIT', 0, math.min(over, 1000)) end
forget(gone)

local heard = redis.call('ZRANGEBYSCORE', changed, '(' .. string.format('%.0f', since), upTo, 'LIMIT', 0, page)
local more = #heard == page
local last = string.format('%.0f', version)
if more then last = redis.call('ZSCORE', changed, heard[#heard]) end
redis.call('HSET', all, 'version', string.format('%.0f', version))
for i = 1, 2 do redis.call('PEXPIRE', KEYS[i], string.format('%.0f', timeout + 60000)) end
local answers = read(heard)
for i = 1, #heard do answers[i] = answers[i] or '' end
return { epoch, last, more and 1 or 0, string.format('%.3f', now), heard, answers, lost }
`,
)
