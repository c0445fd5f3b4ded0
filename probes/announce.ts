import type { Board } from '../feedback/fleet/board.ts'
import { script } from '../feedback/fleet/script.ts'

/**
 * KEYS: the announcements, then the queue's own keys, the schedulers first. ARGV: 1 for how long keys are kept, 2 after
 * which time of silence a schedule is an orphan (0: nobody looks), then the ids.
 */
const announcing = script(
  'announce',
  `
local announced, schedulers = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Where the announcements were lost, everybody has time to make them again.
redis.call('ZADD', announced, 'NX', now, '')
local born = redis.call('ZSCORE', announced, '')
for i = 3, #ARGV do
  redis.call('ZADD', announced, now, ARGV[i])
  local at = redis.call('ZSCORE', schedulers, ARGV[i])
  if at then
    local key = schedulers .. ':' .. ARGV[i]
    redis.call('PEXPIRE', key, ARGV[1])
    redis.call('PEXPIRE', key .. ':' .. at, ARGV[1])
  end
end
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
local orphans, silence = {}, tonumber(ARGV[2])
if silence > 0 then
  for _, id in ipairs(redis.call('ZRANGE', schedulers, 0, -1)) do
    if now - (redis.call('ZSCORE', announced, id) or born) > silence then orphans[#orphans + 1] = id end
  end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', announced, '-inf', now - 2 * silence)) do
    if id ~= '' then redis.call('ZREM', announced, id) end
  end
end
return { now, orphans }
`,
)

/** KEYS: the schedulers, then other keys of the queue. ARGV: 1 for how long keys are kept, then ids of schedules. */
const keeping = script(
  'keep',
  `
local schedulers = KEYS[1]
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[1]) end
for i = 2, #ARGV do
  local key = schedulers .. ':' .. ARGV[i]
  redis.call('PEXPIRE', key, ARGV[1])
  local at = redis.call('ZSCORE', schedulers, ARGV[i])
  if at then redis.call('PEXPIRE', key .. ':' .. at, ARGV[1]) end
end
return 1
`,
)

/** For how long what belongs to a queue is kept when no instance is left, milliseconds. BullMQ would keep it forever. */
const keptFor = 3_600_000

/** What BullMQ keeps a queue in, beside the jobs, and never lets expire; the schedulers first. */
const queueKeys = ['repeat', 'meta', 'id', 'wait', 'active', 'delayed', 'marker', 'events', 'stalled', 'pc']
/** Those of them that are gone whenever no job is in them, and new with the next one: then they expire no more. */
const passingKeys = ['repeat', 'wait', 'active', 'delayed', 'marker', 'stalled']

/**
 * Has what belongs to a queue expire once no instance is left.
 * @param ids schedules that were entered, or whose jobs have come up
 * @param all whether that goes for what stays between jobs, too
 */
export async function keep(board: Board, queue: string, ids: readonly string[], all: boolean): Promise<void> {
  const keys = (all ? queueKeys : passingKeys).map((key) => `${queue}:${key}`)
  await board.run(keeping, keys, [keptFor, ...ids])
}

/**
 * Says which schedules this instance has, and finds those that no instance says it has.
 * @param queue what all keys of the queue begin with
 * @param silence after how long a schedule of which nothing was said is an orphan, milliseconds; 0: nobody looks
 * @returns the server's time, milliseconds, and the orphans; rejects where Redis does not answer
 */
export async function announce(
  board: Board,
  queue: string,
  ids: readonly string[],
  silence: number,
): Promise<{ readonly now: number; readonly orphans: readonly string[] }> {
  const keys = ['announced', ...queueKeys].map((key) => `${queue}:${key}`)
  const answer = await board.run(announcing, keys, [keptFor, silence, ...ids])
  if (!Array.isArray(answer) || !Array.isArray(answer[1])) throw new TypeError('not an answer of the script')
  return { now: Number(answer[0]), orphans: answer[1].map(String) }
}
