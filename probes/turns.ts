import type { Board } from '../feedback/fleet/board.ts'
import { opening, type Script, script } from '../feedback/fleet/script.ts'
import type { Upstream } from '../feedback/upstream.ts'
import type { Orders } from './probe.ts'
import { trustedFor } from './record.ts'

/*
 * Whose turn it is to ask a peer. Whoever wants to ask claims the turn first, and tells what came of it by the token
 * that it got; both are scripts over one record, so that of all who ask at once one alone is heard, and a question
 * that is asked twice counts once.
 *
 * A record is four lines: the result (see record.ts) with the job that it is of; the turn that is taken, `-` where
 * none is: its token and job, when it was taken, until when it holds, when the next one is due, the interval, and
 * whether the failures have had a second opinion; the detail and the orders, both as JSON.
 */

/** How much longer than its time-out a question may take before another instance asks in its place, milliseconds. */
const graceMs = 1000

const lines = `
local function number(text) return string.format('%.3f', text) end
-- What another program has written may be no number, or more than any moment or count.
local function read(text)
  local value = tonumber(text or '')
  return value and value > -2 ^ 52 and value < 2 ^ 52 and value or 0
end
local function tableOf(json)
  local right, value = pcall(cjson.decode, json)
  return right and type(value) == 'table' and value or {}
end
local function load(field)
  local text = redis.call('HGET', state, field) or ''
  local seq, fails, streak, before, at, took, by, job, token, claimer, asked, lapses, due, every, second,
    detail, orders = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)\\n'
    .. '(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)\\n([^\\n]*)\\n([^\\n]*)$')
  return {
    field = field, seq = read(seq), fails = read(fails), streak = read(streak),
    before = read(before), at = read(at), took = took or '0', by = by or '-', job = job or '-',
    token = token or '-', claimer = claimer or '-', asked = read(asked), lapses = read(lapses),
    due = read(due), every = read(every), second = second or '-', detail = detail or '""', orders = orders or 'null',
  }
end
local function save(r)
  local text = table.concat({ string.format('%.0f', r.seq), string.format('%.0f', r.fails),
    string.format('%.0f', r.streak), string.format('%.0f', r.before), number(r.at), r.took, r.by, r.job }, ' ')
    .. '\\n' .. table.concat({ r.token, r.claimer, number(r.asked), number(r.lapses), number(r.due),
    number(r.every), r.second }, ' ') .. '\\n' .. r.detail .. '\\n' .. r.orders
  redis.call('HSET', state, r.field, text)
  return text
end
`

/**
 * ARGV: 2 the job, 3 interval, 4 for how long the claim holds, 5 the instance, 6 when (see `When`), then field and
 * token in turn. A question is due when an interval has passed since the one before was; half an interval early is
 * early enough, as long as the next one is not early, too: so nobody is asked more than once an interval for long,
 * however many schedules there are. A second opinion is one question more, by another than who asked last, and there is
 * one as long as the failures go on.
 */
const claiming: Script = script(
  'claim',
  `${opening}${lines}
local job, interval, holds = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local by, second, alone = ARGV[5], ARGV[6] == 'second', ARGV[6] == 'alone'
local granted = {}
for i = 7, #ARGV, 2 do
  local r = load(ARGV[i])
  local again = r.token ~= '-' and r.claimer == job
  local taken = r.token ~= '-' and not again and now < r.lapses and r.asked <= now
  -- Others may have a longer time-out, but not that long.
  if r.lapses - r.asked > holds + 600000 then taken = false end
  -- A clock that was set back, or a shorter interval than before, must not put the next question off.
  if r.due > r.asked + 1.5 * interval then r.due = r.asked + interval end
  if r.asked > now then r.due = now end
  granted[#granted + 1] = 0
  local isDue = again or now >= r.due - interval / 2
  if alone and now >= r.at and now - r.at < 2 * interval then isDue = false end
  local extra = second and not isDue and r.streak < 0 and r.by ~= by and r.second ~= '+'
  if r.job ~= job and not taken and (isDue or extra) then
    if second then r.second = '+' end
    if not again and not extra then r.due = math.max(now, r.due) + interval end
    r.token, r.claimer, r.asked, r.lapses, r.every = ARGV[i + 1], job, now, now + holds, interval
    save(r)
    -- Known to whoever clears up, and told to nobody: there is no result yet.
    redis.call('ZADD', changed, 'NX', 0, r.field)
    granted[#granted] = 1
  end
end
return { number(now), granted }
`,
)

/** ARGV: 2 the instance, 3 for how long a result is trusted; then of each: field, token, `+`, `-` or `?`, time taken, detail, orders. */
const telling: Script = script(
  'tell',
  `${opening}${lines}
local by, trusted = ARGV[2], tonumber(ARGV[3])
local records, v = {}, nil
for i = 4, #ARGV, 6 do
  local r = load(ARGV[i])
  local said, orders = ARGV[i + 2], ARGV[i + 5]
  records[#records + 1] = ''
  if r.token == ARGV[i + 1] then
    r.token = '-'
    if said == '?' then
      -- As if nobody had asked: somebody else may be able to.
      r.due = math.min(r.due, now)
      save(r)
    else
      local step = said == '+' and 1 or -1
      if now - r.at > trusted or r.at > now then r.streak, r.before, r.orders = 0, 0, 'null' end
      if r.streak * step < 0 then r.before, r.streak = r.streak, 0 end
      r.streak = r.streak + step
      if r.streak == -1 then r.second = '-' end
      r.seq = r.seq + 1
      if step < 0 then r.fails = r.fails + 1 end
      r.job, r.at, r.took, r.by, r.detail = r.claimer, now, ARGV[i + 3], by, ARGV[i + 4]
      if orders ~= 'null' then
        local all, given = tableOf(r.orders), cjson.decode(orders)
        if given.weight or given.weightFactor then all.weight, all.weightFactor = nil, nil end
        for name, value in pairs(given) do all[name] = value end
        r.orders = cjson.encode(all)
      end
      records[#records] = save(r)
      v = v or version()
      redis.call('ZADD', changed, v, r.field)
    end
  end
end
return { number(now), records }
`,
)

/** Forgets records of which nobody has asked for long. ARGV: 2 for how long beside twenty intervals. */
const clearing: Script = script(
  'clear',
  `${opening}${lines}
local gone = 0
for _, field in ipairs(redis.call('ZRANGE', changed, 0, -1)) do
  if string.sub(field, 1, 1) == 'r' then
    local r = load(field)
    if now - math.max(r.at, r.asked) > tonumber(ARGV[2]) + 20 * r.every then
      redis.call('HDEL', state, field)
      redis.call('ZREM', changed, field)
      gone = gone + 1
    end
  end
end
return gone
`,
)

/** A turn to ask. */
export interface Turn {
  readonly field: string
  readonly token: string
}

/**
 * When a turn is to be given: when the question is due; when it is due and no result has come for two intervals; or
 * also before, as the second opinion on a failure.
 */
export type When = 'due' | 'alone' | 'second'

/** What came of a turn. */
export interface Told extends Turn {
  /** Undefined: nothing can be said of the peer, and somebody else may ask. */
  readonly passed: boolean | undefined
  readonly tookMs: number
  readonly detail: string
  readonly orders: Orders | undefined
}

/** Longest detail that is shared, characters. */
const longestDetail = 500

/** Claims turns and tells what came of them, in the shared state of groups. */
export class Turns {
  readonly #board: Board
  readonly #by: string
  /** Begins every token: no two processes have the same, whatever their ids are. */
  readonly #token: string
  #count = 0

  /** @param random uniform in [0, 1) */
  constructor(board: Board, random: () => number) {
    this.#board = board
    this.#by = encodeURIComponent(board.id) || '-'
    this.#token = Math.floor(random() * 2 ** 52).toString(36)
  }

  /** Names this instance in records. */
  get by(): string {
    return this.#by
  }

  /** A job of this instance alone, with a name that no other has. */
  job(): string {
    return `${this.#token}.${this.#count++}`
  }

  /** What a turn will be, where it is given. @param field of the peer's record */
  want(field: string): Turn {
    return { field, token: this.job() }
  }

  /**
   * Claims turns to ask peers. Where Redis does not answer it rejects; they may have been given all the same.
   * @param job names the occasion: claimed again it takes the turn over from itself, and nothing once it is answered
   * @param probe milliseconds
   * @returns those that were given, and the server's time
   */
  async claim(
    upstream: Upstream,
    wanted: readonly Turn[],
    job: string,
    probe: { readonly interval: number; readonly timeout: number },
    when: When = 'due',
  ): Promise<{ readonly now: number; readonly given: ReadonlySet<Turn> }> {
    const args = wanted.flatMap(({ field, token }) => [field, token])
    const holds = probe.timeout + graceMs
    const answer = await this.#run(claiming, upstream, [
      word(job),
      probe.interval,
      holds,
      this.#by,
      when,
      ...args,
    ])
    const [now, granted] = pair(answer)
    return { now, given: new Set(wanted.filter((_, i) => Number(granted[i]) === 1)) }
  }

  /**
   * Tells what came of turns.
   * @returns for each the record as it is now, empty where somebody else has taken the turn over or nothing came of it
   */
  async tell(
    upstream: Upstream,
    interval: number,
    results: readonly Told[],
  ): Promise<{ readonly now: number; readonly records: readonly string[] }> {
    const args = results.flatMap(({ field, token, passed, tookMs, detail, orders }) => [
      field,
      token,
      passed === undefined ? '?' : passed ? '+' : '-',
      Math.round(tookMs * 1000) / 1000,
      JSON.stringify(detail.slice(0, longestDetail)),
      JSON.stringify(orders ?? null),
    ])
    const answer = await this.#run(telling, upstream, [this.#by, trustedFor(interval), ...args])
    const [now, records] = pair(answer)
    return { now, records: records.map(String) }
  }

  /** Forgets records of probes and peers that are nobody's now. @param idle milliseconds */
  async clear(upstream: Upstream, idle: number): Promise<void> {
    await this.#run(clearing, upstream, [idle])
  }

  async #run(
    script: Script,
    upstream: Upstream,
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown> {
    const keys = this.#board.keys(upstream)
    if (keys === undefined) throw new Error(`upstream "${upstream.name}" is not shared`)
    return this.#board.run(script, [keys.state, keys.changed, keys.members], [this.#board.keep, ...args])
  }
}

/** Records have blanks between their words. */
function word(text: string): string {
  return text.replaceAll(/\s/g, '_') || '-'
}

function pair(answer: unknown): [number, unknown[]] {
  if (!Array.isArray(answer) || !Array.isArray(answer[1])) throw new TypeError('not an answer of the script')
  return [Number(answer[0]), answer[1]]
}
