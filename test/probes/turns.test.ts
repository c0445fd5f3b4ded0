import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProbeRecord, readRecord, recordField } from '../../probes/record.ts'
import { type Told, type Turn, Turns, type When } from '../../probes/turns.ts'
import { TestBoard } from '../support/board.ts'
import { group } from '../support/peers.ts'
import { type RedisServer, redisServer } from '../support/redis.ts'
import { until } from '../support/until.ts'

const upstream = group([1, 1])
const field = recordField({ name: 'health', definition: 'd' }, 'a')
const probe = { interval: 400, timeout: 100 }

let server: RedisServer
let board: TestBoard
let second: TestBoard
let one: Turns
let other: Turns

before(async () => {
  server = await redisServer()
  board = new TestBoard('one', [server.port], [upstream])
  second = new TestBoard('two', [server.port], [upstream])
  await until(() => board.up && second.up)
  one = new Turns(board, () => 0.1)
  other = new Turns(second, () => 0.2)
})

after(async () => {
  board.close()
  second.close()
  await server.stop()
})

beforeEach(() => server.command('FLUSHALL'))

async function claim(
  turns: Turns,
  job: string,
  asked = probe,
  when: When = 'due',
): Promise<Turn | undefined> {
  const [turn] = (await turns.claim(upstream, [turns.want(field)], job, asked, when)).given
  return turn
}

async function tell(turns: Turns, turn: Turn, passed: boolean | undefined, more: Partial<Told> = {}) {
  const told = { ...turn, passed, tookMs: 3, detail: 'seen', orders: undefined, ...more }
  const { records } = await turns.tell(upstream, probe.interval, [told])
  return readRecord(records[0]!)
}

async function stored(): Promise<ProbeRecord | undefined> {
  return readRecord(String(await server.command('HGET', board.keys(upstream).state, field)))
}

async function marks(): Promise<string[]> {
  const { changed } = board.keys(upstream)
  return (await server.command('ZRANGEBYSCORE', changed, '(0', '+inf')) as string[]
}

const tail = '\n"seen"\nnull'
const garbled: Readonly<Record<string, string>> = {
  'is text': 'some text',
  'has text for numbers': `a b c d e f g h\n- - x x x x -${tail}`,
  'is due at no moment': `1 0 1 0 1 1 by job\n- - nan nan nan nan -${tail}`,
  'is due never': `1 0 1 0 1 1 by job\n- - inf inf inf inf -${tail}`,
  'is due in a thousand years': `1 0 1 0 1 1 by job\n- - 1 1 33000000000000 400 -${tail}`,
  'is taken for ever': `1 0 1 0 1 1 by job\ntoken other 1 33000000000000 1 400 -${tail}`,
  'has counted without end': `1e300 1e300 1e300 -1e300 1e300 1 by job\n- - 1 1 1 400 -${tail}`,
  'has orders that are none': `1 0 1 0 ${Date.now()} 1 by job\n- - 1 1 1 400 -\n"seen"\n{{{`,
}
for (const [what, text] of Object.entries(garbled)) {
  test(`a record that ${what} keeps nobody from asking`, async () => {
    await claim(one, 'first')
    await server.command('HSET', board.keys(upstream).state, field, text)
    const turn = await claim(one, 'x')
    assert.ok(turn)
    const record = await tell(one, turn, true, { orders: { weight: 3 } })
    assert.equal(record?.detail, 'seen')
    assert.equal(record.orders?.weight, 3)
    assert.ok(record.streak > 0 && Math.abs(Date.now() - record.at) < 60_000)
  })
}

test('of two that claim a turn one gets it, and its result is entered for all', async () => {
  const turns = [await claim(one, 'x'), await claim(other, 'y')]
  assert.equal(turns[1], undefined)
  assert.deepEqual(await marks(), [], 'a claim is told to nobody')
  const record = await tell(one, turns[0]!, false, { detail: 'status 503' })
  const { at, ...rest } = record!
  assert.ok(Math.abs(at - Date.now()) < 5000)
  assert.deepEqual(rest, {
    seq: 1,
    fails: 1,
    streak: -1,
    before: 0,
    tookMs: 3,
    by: 'one',
    job: 'x',
    detail: 'status 503',
    orders: undefined,
  })
  assert.deepEqual(await stored(), record)
  assert.deepEqual(await marks(), [field])
})

test('a job that is repeated after its answer gets no turn, and one that has stalled takes it over', async () => {
  const first = (await claim(one, 'x'))!
  const second = (await claim(other, 'x'))!
  assert.notEqual(first.token, second.token)
  assert.equal(await tell(one, first, false), undefined, 'the older token is worth nothing')
  assert.equal((await tell(other, second, false))?.streak, -1)
  assert.equal(await tell(other, second, false), undefined, 'nor is one that was used')
  await sleep(probe.interval)
  assert.equal(await claim(one, 'x'), undefined)
  assert.equal((await stored())?.seq, 1)
})

test('a question is due an interval after the one before, and at most half an interval early', async () => {
  const slow = { interval: 800, timeout: 100 }
  await tell(one, (await claim(one, 'a', slow))!, true)
  assert.equal(await claim(other, 'b', slow), undefined)
  await sleep(500)
  const early = (await claim(other, 'c', slow))!
  await tell(other, early, true)
  await sleep(500)
  assert.equal(await claim(one, 'd', slow), undefined, 'what was gained is owed')
  await sleep(300)
  assert.ok(await claim(one, 'e', slow))
})

test('many schedules out of step ask once an interval between them', async () => {
  const asked = { interval: 100, timeout: 50 }
  let turns = 0
  const startedAt = performance.now()
  for (let i = 0; performance.now() - startedAt < 1500; i++) {
    const turn = await claim(i % 2 === 0 ? one : other, `j${i}`, asked)
    if (turn) {
      turns += 1
      await tell(one, turn, true)
    }
    await sleep(7)
  }
  assert.ok(turns >= 10 && turns <= 16, `${turns} in 15 intervals`)
})

test('a shorter interval holds at once', async () => {
  await tell(one, (await claim(one, 'a', { interval: 60_000, timeout: 50 }))!, true)
  await sleep(60)
  assert.ok(await claim(one, 'b', { interval: 50, timeout: 50 }))
})

test('a turn that nobody answers goes to another after its time, and a result that says nothing frees it at once', async () => {
  const short = { interval: 50, timeout: -700 }
  assert.ok(await claim(one, 'a', short))
  await sleep(60)
  assert.equal(await claim(other, 'b', short), undefined)
  await sleep(300)
  const turn = (await claim(other, 'c', short))!
  assert.ok(turn)
  assert.equal(await tell(other, turn, undefined), undefined)
  assert.ok(await claim(one, 'd'))
  assert.equal(await stored(), undefined)
})

test('streaks count on over instances, with what the one before had come to', async () => {
  const fast = { interval: 1, timeout: 50 }
  const streaks: [number, number][] = []
  for (const [i, passed] of [true, false, false, true, true, false].entries()) {
    const turns = i % 2 === 0 ? one : other
    await sleep(3)
    const record = await tell(turns, (await claim(turns, `j${i}`, fast))!, passed)
    streaks.push([record!.streak, record!.before])
  }
  assert.deepEqual(streaks, [
    [1, 0],
    [-1, 1],
    [-2, 1],
    [1, -2],
    [2, -2],
    [-1, 2],
  ])
})

test('a streak begins anew where the last result is too old to be trusted', async () => {
  await tell(one, (await claim(one, 'a'))!, false, { orders: { administrative: 'drain' } })
  const { state } = board.keys(upstream)
  const text = String(await server.command('HGET', state, field))
  const { at } = readRecord(text)!
  await server.command('HSET', state, field, text.replace(at.toFixed(3), (at - 11_000).toFixed(3)))
  await sleep(probe.interval)
  const record = await tell(one, (await claim(one, 'b'))!, false)
  assert.equal(record?.streak, -1)
  assert.equal(record?.seq, 2)
  assert.equal(record?.orders, undefined)
})

test('a failure has one second opinion, by another instance, and the next question comes when it would have', async () => {
  const slow = { interval: 800, timeout: 100 }
  const second = (turns: Turns, job: string) => claim(turns, job, slow, 'second')
  assert.ok(await tell(one, (await second(one, 'a'))!, true), 'what is due may be asked on any occasion')
  assert.equal(await second(other, 'b'), undefined, 'a pass has none')
  await sleep(810)
  const began = performance.now()
  await tell(one, (await claim(one, 'c', slow))!, false)
  assert.equal(await second(one, 'd'), undefined, 'nor has a failure by the same')
  assert.equal(await claim(other, 'e', slow), undefined)
  const turn = (await second(other, 'f'))!
  assert.equal(await second(one, 'g'), undefined, 'one asks')
  assert.equal((await tell(other, turn, false))?.streak, -2)
  assert.equal(await second(one, 'h'), undefined, 'there is one for all failures in a row')
  await sleep(400 - (performance.now() - began) - 50)
  assert.equal(await claim(one, 'i', slow), undefined)
  await sleep(460)
  await tell(one, (await claim(one, 'j', slow))!, true)
  await sleep(810)
  await tell(other, (await claim(other, 'k', slow))!, false)
  assert.equal((await tell(one, (await second(one, 'l'))!, true))?.streak, 1, 'the next ones have theirs')
})

test('one that is to ask only if nobody else does gets its turn after two intervals without a result', async () => {
  const slow = { interval: 300, timeout: 100 }
  await tell(other, (await claim(other, 'a', slow))!, true)
  await sleep(400)
  assert.equal(await claim(one, 'b', slow, 'alone'), undefined)
  await sleep(250)
  assert.ok(await claim(one, 'c', slow, 'alone'))
})

test('orders add up as an agent gives them', async () => {
  const fast = { interval: 1, timeout: 50 }
  let record: ProbeRecord | undefined
  for (const orders of [{ weightFactor: 0.75 }, { maxConns: 30 }, undefined, { weight: 7 }]) {
    await sleep(3)
    record = await tell(one, (await claim(one, one.job(), fast))!, true, { orders })
  }
  assert.deepEqual(JSON.parse(JSON.stringify(record?.orders)), { weight: 7, maxConns: 30 })
})

test('what a peer has written comes through as it was, and no longer than it may be', async () => {
  const fast = { interval: 1, timeout: 50 }
  const detail = 'a "b"\n\\u0000\0 é \ud800 c'
  const record = await tell(one, (await claim(one, 'a', fast))!, false, { detail })
  assert.equal(record?.detail, detail)
  await sleep(3)
  const long = await tell(one, (await claim(one, 'b', fast))!, false, { detail: 'x'.repeat(100_000) })
  assert.equal(long?.detail.length, 500)
})

test('a record that is broken is begun anew', async () => {
  await tell(one, (await claim(one, 'a'))!, false)
  await server.command('HSET', board.keys(upstream).state, field, 'x y\nz')
  assert.equal(await stored(), undefined)
  assert.equal((await tell(one, (await claim(one, 'b'))!, false))?.seq, 1)
})

test('records of which nobody has asked for long are forgotten', async () => {
  await tell(one, (await claim(one, 'a', { interval: 1, timeout: 1 }))!, false)
  await one.clear(upstream, 60_000)
  assert.ok(await stored())
  await sleep(60)
  await one.clear(upstream, 10)
  assert.equal(await stored(), undefined)
  assert.deepEqual(await marks(), [])
})
