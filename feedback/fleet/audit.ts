import { opening, type Script, script } from './script.ts'
import { partFormat, recordFormat } from './wire.ts'

/** So many parts are looked at in one go: some milliseconds of the server's time. */
const most = 4096
/** So many peers of one group. */
const mostPeers = 64

/**
 * Looks whether what is kept of peers is the sum of what the members have told, and whether all members can be there:
 * an exchange only takes a difference from it, so what is wrong would stay wrong. Where it is, a new epoch begins. ARGV:
 * 2 what the keys of `told` begin with, then the fields of peers.
 */
export const audit: Script = script(
  'audit',
  `${opening}
local function numbers(packed, first, all)
  if not packed then return { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } end
  local more, length = string.byte(packed), #packed
  if more == 0 and length == first then packed = packed .. string.rep('\\0', all - first)
  elseif more ~= 1 or length ~= all then return end
  return { struct.unpack('<' .. string.rep('d', (all - 1) / 8), packed, 2) }
end
local function near(one, other)
  return math.abs(one - other) <= 1 + 1e-6 * math.max(math.abs(one), math.abs(other))
end
local function right()
  -- Beside the mark nobody has been heard at a time to come.
  if redis.call('ZCOUNT', members, now + 1000, '+inf') > 1 then return false end
  local names = {}
  for i = 3, #ARGV do names[i - 2] = ARGV[i] end
  if #names == 0 then return true end
  local sums = {}
  for i = 1, #names do sums[i] = { 0, 0, 0, 0, 0, 0, 0 } end
  for _, id in ipairs(redis.call('ZRANGE', members, 0, -1)) do
    if id ~= '' then
      local parts = ask('HMGET', ARGV[2] .. id, '', unpack(names))
      if not parts or parts[1] ~= epoch then return false end
      for i, sum in ipairs(sums) do
        local p = numbers(parts[i + 1], ${partFormat.firstBytes}, ${partFormat.allBytes})
        if not p then return false end
        if parts[i + 1] then sum[7] = sum[7] + 1 end
        for n = 1, 6 do sum[n] = sum[n] + p[n] end
      end
    end
  end
  for i, packed in ipairs(redis.call('HMGET', state, unpack(names))) do
    local r = numbers(packed, ${recordFormat.firstBytes}, ${recordFormat.allBytes})
    local s = sums[i]
    if not (r and r[1] == s[7] and near(r[4], s[1]) and near(r[5], s[2]) and r[6] == s[3]
      and r[12] == s[4] and near(r[13], s[5]) and r[14] == s[6]) then return false end
  end
  return true
end
if right() then return 1 end
begin()
version()
return 0
`,
)

/**
 * The next of a group's peers to look at.
 * @param names of all of them in the fleet
 * @param from how many have been looked at before
 * @param members instances that share the group
 * @returns fields of their records
 */
export function auditFields(names: readonly string[], from: number, members: number): readonly string[] {
  const count = Math.min(names.length, mostPeers, Math.max(1, Math.floor(most / Math.max(1, members))))
  return Array.from({ length: count }, (_, i) => `p${names[(from + i) % names.length]}`)
}
