import { opening, type Script, script } from './script.ts'
import { gone, partFormat, recordFormat, updateFormat } from './wire.ts'

/*
 * The one round trip in which an instance tells what it has seen, and hears what all have; see told.ts.
 */

/**
 * KEYS[4] is what this instance has told; ARGV: 1 keep, 2 id, 3 ttl, 4 and 5 the epoch and version it knows, 6 and 7 its
 * requests and retries since the last time, 8 how many members it has known in this epoch or the one before, 9 what the
 * keys of `told` begin with, 10 the server's time, in the epoch, of the last answer that it had, 11 the numbers of all
 * updates, one after the other (see wire.ts), and then of each the field of its peer. The answer has the records of these peers first, in their order, and then what else has changed.
 *
 * Redis has nothing to do as often as this: so few commands are given, and few tables and texts are made for each peer.
 */
export const exchange: Script = script(
  'exchange',
  `${opening}
local id, ttl, since, updates = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[11]
local mine = KEYS[4]
local pack, unpackStruct, sub, byte = struct.pack, struct.unpack, string.sub, string.byte
local UPDATE, UPDATE2 = '${updateFormat.first}', '${updateFormat.second}'
local RECORD, RECORD2, RECORD_END = '${recordFormat.first}', '${recordFormat.second}', ${recordFormat.firstBytes + 1}
local PART, PART2, PART_END = '${partFormat.first}', '${partFormat.second}', ${partFormat.firstBytes + 1}
local RECORD_BYTES, RECORD_ALL = ${recordFormat.firstBytes}, ${recordFormat.allBytes}
local PART_BYTES, PART_ALL = ${partFormat.firstBytes}, ${partFormat.allBytes}
local NOBODY, NO_PART = pack(RECORD, 0, 0, 0, 0, 0, 0, 0), pack(PART, 0, 0, 0, 0)
-- Beyond that one more makes no difference, and of what is no number all comparisons are false.
local MOST = 2 ^ 53
local GONE, NO_LEASE = string.char(${gone}), pack('<d', 0)

-- Lua passes some thousands of arguments at most.
local function each(list, run)
  for first = 1, #list, 2000 do run(unpack(list, first, math.min(first + 1999, #list))) end
end
local function read(key, fields)
  if #fields > 0 and #fields <= 2000 then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  each(fields, function(...)
    for _, value in ipairs(redis.call('HMGET', key, ...)) do values[#values + 1] = value end
  end)
  return values
end
local function write(command, key, list)
  each(list, function(...) redis.call(command, key, ...) end)
end

-- Nobody has these any more.
local function forget(gone)
  write('HDEL', state, gone)
  write('ZREM', changed, gone)
end
-- Whether it can be a record: nothing, or as many bytes as there are numbers.
local function whole(packed, first, all)
  if not packed then return true end
  local kind, length = byte(packed), #packed
  return kind == 0 and length == first or kind == 1 and length == all
end
local function wholeRecord(packed) return whole(packed, RECORD_BYTES, RECORD_ALL) end
local function wholePart(packed) return whole(packed, PART_BYTES, PART_ALL) end
-- All numbers of a record, and of a part.
local function openRecord(packed)
  local more, a, b, c, d, e, f = unpackStruct(RECORD, packed)
  if more == 0 then return { a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } end
  return { a, b, c, d, e, f, unpackStruct(RECORD2, packed, RECORD_END) }
end
local function openPart(packed)
  local more, a, b, c = unpackStruct(PART, packed)
  if more == 0 then return { a, b, c, 0, 0, 0 } end
  return { a, b, c, unpackStruct(PART2, packed, PART_END) }
end
local function closeRecord(r)
  for i = 7, 16 do
    if r[i] ~= 0 then
      return pack(RECORD, 1, r[1], r[2], r[3], r[4], r[5], r[6]) .. pack(RECORD2, unpack(r, 7, 16))
    end
  end
  return pack(RECORD, 0, r[1], r[2], r[3], r[4], r[5], r[6])
end
local function closePart(p)
  local more = p[4] ~= 0 or p[5] ~= 0 or p[6] ~= 0
  local first = pack(PART, more and 1 or 0, p[1], p[2], p[3])
  return more and first .. pack(PART2, p[4], p[5], p[6]) or first
end
-- Puts another part of an instance into the sums. They begin afresh where there is nothing left of them, so that
-- rounding errors never add up.
local function shift(r, from, to)
  for i = 1, 3 do
    r[3 + i] = r[3 + i] + to[i] - from[i]
    r[11 + i] = r[11 + i] + to[3 + i] - from[3 + i]
  end
  if r[12] <= 0 then r[13] = 0 end
  if r[4] < 1e-6 then r[4], r[5] = 0, 0 end
end

-- Takes an instance's parts out of the sums. Nothing fits any more where what it told is lost.
local function bury(one, mark)
  local key = ARGV[9] .. one
  if ask('HGET', key, '') ~= epoch then return false end
  local all = redis.call('HGETALL', key)
  local names, parts = {}, {}
  for i = 1, #all, 2 do
    if all[i] ~= '' then
      names[#names + 1] = all[i]
      parts[#parts + 1] = all[i + 1]
    end
  end
  local records, sets, marks, gone = read(state, names), {}, {}, {}
  for i, name in ipairs(names) do
    if not (records[i] and wholeRecord(records[i]) and wholePart(parts[i])) then return false end
    local r = openRecord(records[i])
    if r[1] <= 1 then gone[#gone + 1] = name
    else
      shift(r, openPart(parts[i]), { 0, 0, 0, 0, 0, 0 })
      r[1] = r[1] - 1
      sets[#sets + 1] = name
      sets[#sets + 1] = closeRecord(r)
      marks[#marks + 1] = mark
      marks[#marks + 1] = name
    end
  end
  write('HSET', state, sets)
  write('ZADD', changed, marks)
  -- At once: who comes now may be the next to have them.
  forget(gone)
  redis.call('ZREM', members, one)
  redis.call('DEL', key)
  return true
end

-- A version is turned into text once, and not for every peer.
local v = version()
local mark = string.format('%.0f', v)
local function restart()
  begin()
  v = version()
  mark = string.format('%.0f', v)
end
-- What is changed in the name of others is news even where it was changed just now.
local upTo
for _, one in ipairs(redis.call('ZRANGEBYSCORE', members, '-inf', now - ttl, 'LIMIT', 0, 8)) do
  if one ~= id then
    upTo = '+inf'
    if not bury(one, mark) then
      restart()
      break
    end
  end
end
local listed = score(members, id)
-- A clock that was set back makes the dead live on.
if listed and (ask('HGET', mine, '') ~= epoch or listed > now + 1000) then
  restart()
  listed = false
end
-- Who begins anew knows nothing of the parts that it has from before.
if listed and ARGV[4] ~= epoch then
  upTo = '+inf'
  if not bury(id, mark) then restart() end
  listed = false
end
-- It was sent after the last answer that its sender knew. Where that is long ago it may have been on its way all the
-- time, whatever else has come from there meanwhile: it counts, and is no news.
local prompt
if ARGV[4] ~= epoch then prompt = not listed or now - listed < 2000
else prompt = listed and now - born - tonumber(ARGV[10]) < 2000 end
local fresh = 0
if ARGV[4] ~= epoch or since >= v then fresh, since = 1, 0 end
local count, t
local function join()
  if not listed then
    fresh = 1
    redis.call('DEL', mine)
    redis.call('HSET', mine, '', epoch)
  end
  redis.call('ZADD', members, string.format('%.3f', now), id)
  redis.call('PEXPIRE', mine, ARGV[1])
  count = redis.call('ZCARD', members) - 1
  t = now - born
end
join()

local names = {}
for i = 12, #ARGV do names[i - 11] = ARGV[i] end
-- What becomes of it all; nothing is written yet. Where a record, or a part, cannot be right, nothing does.
local function take(records, parts)
  local sets, marks, told, left, gone, leases, answers = {}, {}, {}, {}, {}, {}, {}
  local at, limited, setsEnd, toldEnd = 1, false, 0, 0
  for i, name in ipairs(names) do
    local more, answered, good, weight, average, conns
    more, answered, good, weight, average, conns, at = unpackStruct(UPDATE, updates, at)
    local record, part = records[i] or NOBODY, parts[i]
    local length = #record
    if length ~= RECORD_BYTES and length ~= RECORD_ALL or not wholePart(part) then return false end
    local moreOf, members, answersOf, goodOf, weightOf, weightedOf, connsOf = unpackStruct(RECORD, record)
    local moreBefore, weightBefore, weightedBefore, connsBefore = unpackStruct(PART, part or NO_PART)
    -- As many as there are have it, and what others have of it is not less than nothing.
    local all = members + answersOf + goodOf + weightOf + weightedOf + weightBefore + weightedBefore
    if moreOf ~= (length == RECORD_ALL and 1 or 0) or members > count or members < (part and 1 or 0)
      or not (connsOf >= connsBefore and all > -MOST and all < MOST)
      or records[i] and members < 1 then return false end
    local lease, packed = NO_LEASE, nil
    if more == 0 and moreBefore == 0 then
      -- What openRecord, shift and closeRecord do, for the numbers that may have changed.
      local weighted = weight * average
      if not part then members = members + 1 end
      weightOf, weightedOf = weightOf + weight - weightBefore, weightedOf + weighted - weightedBefore
      if weightOf < 1e-6 then weightOf, weightedOf = 0, 0 end
      packed = pack(RECORD, moreOf, members, answersOf + answered, goodOf + good, weightOf, weightedOf,
        connsOf + conns - connsBefore)
      if moreOf == 1 then packed = packed .. sub(record, RECORD_END) end
      told[toldEnd + 1], told[toldEnd + 2] = name, pack(PART, 0, weight, weighted, conns)
      toldEnd = toldEnd + 2
    else
      local leaves, ejections, values, valueSum, valueAge, stuck, stuckAge, limit, have, want, need =
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
      if more == 1 then
        leaves, ejections, values, valueSum, valueAge, stuck, stuckAge, limit, have, want, need, at =
          unpackStruct(UPDATE2, updates, at)
      end
      local r, p, after = openRecord(record), openPart(part or NO_PART), { 0, 0, 0, 0, 0, 0 }
      all = r[7] + r[8] + r[9] + r[10] + r[11] + r[13] + r[15] + r[16] + p[5]
      if not (all > -MOST and all < MOST and r[12] >= p[4] and r[14] >= p[6]) then return false end
      if leaves == 1 then
        if part then r[1] = r[1] - 1 end
        left[#left + 1] = name
      else
        if not part then r[1] = r[1] + 1 end
        local leased = 0
        if limit > 0 then
          local share = math.max(1, math.floor(limit / math.max(count, t < ttl and tonumber(ARGV[8]) or 0)))
          local most = math.min(want, limit - (r[14] - p[6]))
          -- Others that hold a lease may not have been heard yet.
          if t < ttl then most = math.min(most, math.max(have, share)) end
          leased = math.max(conns, most)
          if leased < math.min(need, share) then r[15] = t end
          if leased < math.min(need, limit) then r[16] = t end
          limited, lease = true, pack('<d', leased)
        end
        after = { weight, weight * average, conns, stuck, stuck * t - stuckAge, leased }
        told[toldEnd + 1], told[toldEnd + 2] = name, closePart(after)
        toldEnd = toldEnd + 2
      end
      r[2], r[3], r[7] = r[2] + answered, r[3] + good, r[7] + ejections
      if ejections > 0 and prompt then r[8] = t end
      r[9], r[10] = r[9] + values, r[10] + valueSum
      if values > 0 and prompt then r[11] = math.max(r[11], t - valueAge) end
      shift(r, p, after)
      if r[1] > 0 then packed = closeRecord(r) end
    end
    leases[i] = lease
    if packed then
      answers[i] = packed
      sets[setsEnd + 1], sets[setsEnd + 2] = name, packed
      marks[setsEnd + 1], marks[setsEnd + 2] = mark, name
      setsEnd = setsEnd + 2
    else
      answers[i] = GONE
      gone[#gone + 1] = name
    end
  end
  return sets, marks, told, left, gone, leases, answers, limited
end
local function total(field, more)
  return ask('HINCRBY', state, field, more)
end
local requests, retries = total('requests', ARGV[6]), total('retries', ARGV[7])
local sets, marks, told, left, gone, leases, answers, limited = take(read(state, names), read(mine, names))
if not (requests and retries and sets) then
  restart()
  listed, since = false, 0
  join()
  requests, retries = total('requests', ARGV[6]), total('retries', ARGV[7])
  sets, marks, told, left, gone, leases, answers, limited = take({}, {})
end
write('HSET', state, sets)
write('ZADD', changed, marks)
write('HSET', mine, told)
write('HDEL', mine, left)
forget(gone)
local news = redis.call('ZRANGEBYSCORE', changed, '(' .. since, upTo or '(' .. mark)
local others, othersRecords, notes = {}, {}, {}
for i, value in ipairs(read(state, news)) do
  if value then
    if sub(news[i], 1, 1) == 'p' then
      if wholeRecord(value) then
        others[#others + 1] = news[i]
        othersRecords[#others] = value
      end
    else
      notes[#notes + 1] = news[i]
      notes[#notes + 1] = value
    end
  end
end
return { epoch, v, string.format('%.3f', t), count, fresh, requests, retries,
  limited and table.concat(leases) or '', table.concat(answers), others, table.concat(othersRecords), notes }
`,
)
