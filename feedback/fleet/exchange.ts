import { opening, type Script, script } from './script.ts'

/*
 * The one round trip in which an instance tells what it has seen of a group's peers since the last time, as sums, and
 * hears what all of them have seen together.
 *
 * Two kinds of numbers are told. Counts only ever grow: they are added to the group's. Levels, such as what is stuck
 * now, are an instance's part of a sum: it tells what its part is, the script remembers that, and adds the difference.
 * An instance that has not been heard for `ttl` is taken out by whoever comes next, and its parts with it.
 *
 * Times in records are milliseconds of the server's clock since the epoch began.
 */

/** What an instance tells of one peer. Times in milliseconds. */
export interface Update {
  /** Whether it has the peer no more: then nothing else is told of it. */
  leaves: boolean
  /** Counts since the last time: answers, successes among them, ejections by `max_fails`, values reported. */
  answers: number
  good: number
  ejections: number
  values: number
  /** Sum of those values. */
  valueSum: number
  /** How old the latest of them is. */
  valueAge: number
  /** Attempts stuck now, and their age added up. */
  stuck: number
  stuckAge: number
  /** The average, and how many answers it stands for; 0: there is none. */
  weight: number
  average: number
  /** Requests in progress now. */
  conns: number
  /** `max_conns` where it is the fleet's; 0: it is not. */
  limit: number
  /** What this instance may have by its lease now, and what it would like to. */
  have: number
  want: number
}

/** What all instances have told of a peer. Times in milliseconds since the epoch. */
export interface PeerRecord {
  /** Instances that have the peer. */
  members: number
  answers: number
  good: number
  ejections: number
  /** When the last of them was told. */
  ejectedAt: number
  values: number
  valueSum: number
  valueAt: number
  stuck: number
  /** Sum of the starts of what is stuck. */
  stuckStart: number
  /** Sum of the weights of averages, and of the averages by their weights. */
  weight: number
  weighted: number
  conns: number
  /** Requests in progress that instances may have by their leases, in all. */
  leased: number
  /** When some instance last got less than it would have liked. */
  shortAt: number
}

/** The answer to an exchange. */
export interface Heard {
  /** Names the life of the shared state; another one means that what was known of it is void. */
  readonly epoch: string
  readonly version: number
  /** The server's time, milliseconds since the epoch began. */
  readonly at: number
  /** Instances that were heard within `ttl`, this one among them. */
  readonly members: number
  /** Whether this instance was not known any more, or knew another state: then nothing before counts. */
  readonly fresh: boolean
  /** Requests and retries of the group, ever. */
  readonly requests: number
  readonly retries: number
  /** For each update, what this instance may have in progress by its lease. */
  readonly leases: readonly number[]
  /** By name, what has changed since the version that this instance knew. */
  readonly peers: ReadonlyMap<string, PeerRecord>
  /** By field, records of probes that have changed; see board.ts. */
  readonly probes: ReadonlyMap<string, Buffer>
}

const updateFields = [
  'leaves',
  'answers',
  'good',
  'ejections',
  'values',
  'valueSum',
  'valueAge',
  'stuck',
  'stuckAge',
  'weight',
  'average',
  'conns',
  'limit',
  'have',
  'want',
] as const satisfies readonly (keyof Update)[]

const recordFields = [
  'members',
  'answers',
  'good',
  'ejections',
  'ejectedAt',
  'values',
  'valueSum',
  'valueAt',
  'stuck',
  'stuckStart',
  'weight',
  'weighted',
  'conns',
  'leased',
  'shortAt',
] as const satisfies readonly (keyof PeerRecord)[]

/** A double a field, low byte first. */
const format = (fields: readonly string[]) => `<${'d'.repeat(fields.length)}`

/**
 * KEYS[4] is what this instance has told; ARGV: 1 keep, 2 id, 3 ttl, 4 and 5 the epoch and version it knows, 6
 * and 7 its requests and retries since the last time, 8 how many members it has known in this epoch or the one before, 9 what the keys of `told` begin
 * with; then of each update the peer's name and the numbers.
 */
export const exchange: Script = script(
  'exchange',
  `${opening}
local id, ttl, since = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local mine = KEYS[4]
local UPDATE, RECORD, PART = '${format(updateFields)}', '${format(recordFields)}', '<dddddd'
local NONE = struct.pack(RECORD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

-- Lua passes some thousands of arguments at most.
local function each(list, run)
  for first = 1, #list, 2000 do run(unpack(list, first, math.min(first + 1999, #list))) end
end
local function read(key, fields)
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
-- Puts another part of an instance into the sums. They begin afresh where there is nothing left of them, so that
-- rounding errors never add up.
local function shift(r, from, to)
  for i = 1, 6 do r[8 + i] = r[8 + i] + to[i] - from[i] end
  if r[9] <= 0 then r[10] = 0 end
  if r[11] < 1e-6 then r[11], r[12] = 0, 0 end
end

-- Takes an instance's parts out of the sums. Nothing fits any more where what it told is lost.
local function bury(one, v)
  local key = ARGV[9] .. one
  if redis.call('HGET', key, '') ~= epoch then return false end
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
    local r, p = { struct.unpack(RECORD, records[i] or NONE) }, { struct.unpack(PART, parts[i]) }
    if r[1] <= 1 then gone[#gone + 1] = name
    else
      shift(r, p, { 0, 0, 0, 0, 0, 0 })
      r[1] = r[1] - 1
      sets[#sets + 1] = name
      sets[#sets + 1] = struct.pack(RECORD, unpack(r))
      marks[#marks + 1] = v
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

local v = version()
for _, one in ipairs(redis.call('ZRANGEBYSCORE', members, '-inf', now - ttl, 'LIMIT', 0, 8)) do
  if one ~= id and not bury(one, v) then
    begin()
    v = version()
    break
  end
end
local listed = redis.call('ZSCORE', members, id)
if listed and redis.call('HGET', mine, '') ~= epoch then
  begin()
  v = version()
  listed = false
end
local fresh = 0
if ARGV[4] ~= epoch or since >= v then fresh, since = 1, 0 end
if not listed then
  fresh = 1
  redis.call('DEL', mine)
  redis.call('HSET', mine, '', epoch)
end
redis.call('ZADD', members, string.format('%.3f', now), id)
redis.call('PEXPIRE', mine, ARGV[1])
local count = redis.call('ZCARD', members) - 1
local t = now - born

local names = {}
for i = 10, #ARGV, 2 do names[#names + 1] = 'p' .. ARGV[i] end
local records, parts = read(state, names), read(mine, names)
local sets, marks, told, left, gone, leases = {}, {}, {}, {}, {}, {}
for i, name in ipairs(names) do
  local leaves, answers, good, ejections, values, valueSum, valueAge, stuck, stuckAge, weight, average, conns,
    limit, have, want = struct.unpack(UPDATE, ARGV[9 + 2 * i])
  local r = { struct.unpack(RECORD, records[i] or NONE) }
  local p = parts[i] and { struct.unpack(PART, parts[i]) } or { 0, 0, 0, 0, 0, 0 }
  local stuckStart, lease = stuck * t - stuckAge, 0
  if leaves == 1 then
    stuck, stuckStart, weight, average, conns = 0, 0, 0, 0, 0
    if parts[i] then r[1] = r[1] - 1 end
    left[#left + 1] = name
  else
    if not parts[i] then r[1] = r[1] + 1 end
    if limit > 0 then
      local share = math.max(1, math.floor(limit / math.max(count, t < ttl and tonumber(ARGV[8]) or 0)))
      local most = math.min(want, limit - (r[14] - p[6]))
      -- Others that hold a lease may not have been heard yet.
      if t < ttl then most = math.min(most, math.max(have, share)) end
      lease = math.max(conns, most)
      if lease < want then r[15] = t end
    end
    told[#told + 1] = name
    told[#told + 1] = struct.pack(PART, stuck, stuckStart, weight, weight * average, conns, lease)
  end
  leases[i] = struct.pack('<d', lease)
  r[2], r[3], r[4] = r[2] + answers, r[3] + good, r[4] + ejections
  if ejections > 0 then r[5] = t end
  r[6], r[7] = r[6] + values, r[7] + valueSum
  if values > 0 then r[8] = math.max(r[8], t - valueAge) end
  shift(r, p, { stuck, stuckStart, weight, weight * average, conns, lease })
  if r[1] <= 0 then gone[#gone + 1] = name
  else
    sets[#sets + 1] = name
    sets[#sets + 1] = struct.pack(RECORD, unpack(r))
    marks[#marks + 1] = v
    marks[#marks + 1] = name
  end
end
write('HSET', state, sets)
write('ZADD', changed, marks)
write('HSET', mine, told)
write('HDEL', mine, left)
forget(gone)
local totals = { redis.call('HINCRBY', state, 'requests', ARGV[6]), redis.call('HINCRBY', state, 'retries', ARGV[7]) }
local news = redis.call('ZRANGEBYSCORE', changed, '(' .. since, '+inf')
return { epoch, v, string.format('%.3f', t), count, fresh, totals[1], totals[2],
  table.concat(leases), news, read(state, news) }
`,
)

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

export function packUpdate(update: Update): Buffer {
  const numbers = Buffer.allocUnsafe(8 * updateFields.length)
  for (const [i, field] of updateFields.entries()) numbers.writeDoubleLE(Number(update[field]), 8 * i)
  return numbers
}

/** @throws TypeError, RangeError when that is no answer of the script */
export function readHeard(answer: unknown): Heard {
  if (!Array.isArray(answer) || answer.length !== 10) throw new TypeError('not an answer to an exchange')
  const [epoch, version, at, members, fresh, requests, retries, leases, names, records] = answer
  const peers = new Map<string, PeerRecord>()
  const probes = new Map<string, Buffer>()
  for (const [i, name] of names.entries()) {
    const value = records[i]
    if (!Buffer.isBuffer(value)) continue
    const text = String(name)
    if (text.startsWith('p')) peers.set(text.slice(1), readRecord(value))
    else if (text.startsWith('r')) probes.set(text, value)
  }
  return {
    epoch: String(epoch),
    version: Number(version),
    at: Number(at),
    members: Number(members),
    fresh: Number(fresh) === 1,
    requests: Number(requests),
    retries: Number(retries),
    leases: Array.from({ length: leases.length / 8 }, (_, i) => leases.readDoubleLE(8 * i)),
    peers,
    probes,
  }
}

function readRecord(bytes: Buffer): PeerRecord {
  // The list of fields and the type's keys are the same list.
  return Object.fromEntries(
    recordFields.map((field, i) => [field, bytes.readDoubleLE(8 * i)]),
  ) as unknown as PeerRecord
}
