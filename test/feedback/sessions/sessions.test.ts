import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionEntries } from '../../../feedback/sessions/entries.ts'
import { type Binding, Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import { seeded } from '../../support/dice.ts'

const timeout = 1000
const rules: Binding = { timeout, create: true, refresh: true }

function table(slots = 4) {
  const sessions = new Sessions('z', slots)
  return {
    sessions,
    bind: (id: string, sid: string, now: number, more: Partial<Binding> = {}) =>
      sessions.bind(sessionKey(id), sid, now, { ...rules, ...more }),
    find: (id: string, now: number) => sessions.find(sessionKey(id), now, timeout),
    news: (most = 100) => sessions.news(most).map(({ sid }) => sid),
  }
}

test('finds the peer that a session was bound to, and nothing of sessions that nobody made', () => {
  const { bind, find } = table()
  bind('one', 'A', 0)
  bind('two', 'B', 0)
  assert.deepEqual([find('one', 1), find('two', 1), find('three', 1)], ['A', 'B', ''])
})

test('an id may be any bytes, of any length, and is told from one that differs in a single bit', () => {
  const { bind, find } = table(8)
  const long = '\xff\x00\r\n;'.repeat(20_000)
  bind(long, 'A', 0)
  bind('\x00', 'B', 0)
  bind('\x00\x00', 'C', 0)
  assert.deepEqual([find(long, 1), find('\x00', 1), find('\x00\x00', 1)], ['A', 'B', 'C'])
  assert.equal(find(`${long.slice(0, -1)}:`, 1), '')
})

test('binds a session to another peer', () => {
  const { bind, find, sessions } = table()
  bind('one', 'A', 0)
  bind('one', 'BB', 1)
  assert.equal(find('one', 2), 'BB')
  assert.deepEqual([sessions.created, sessions.rebound, sessions.size], [1, 1, 1])
})

test('ids of peers have 32 bytes at most, and all of these are kept', () => {
  const { bind, find } = table()
  const sid = '\xe9'.repeat(32)
  bind('one', sid, 0)
  bind('two', `${sid}x`, 0)
  assert.deepEqual([find('one', 1), find('two', 1)], [sid, ''])
})

test('without leave to make one, a session that is not there is not made, and one that is is bound anew', () => {
  const { bind, find, sessions } = table()
  bind('one', 'A', 0, { create: false })
  assert.equal(sessions.size, 0)
  bind('one', 'A', 0)
  bind('one', 'B', 1, { create: false })
  assert.equal(find('one', 2), 'B')
})

test('a session lasts for its time after the last use, to the millisecond', () => {
  const { bind, find } = table()
  bind('one', 'A', 0)
  assert.equal(find('one', 999), 'A')
  // To look is no use of it.
  assert.equal(find('one', 1000), '')
  bind('one', 'A', 999)
  assert.deepEqual([find('one', 1998.5), find('one', 1999)], ['A', ''])
})

test('one that has run out is made anew where that may be, and otherwise is gone', () => {
  const { bind, find, sessions } = table()
  bind('one', 'A', 0)
  bind('one', 'B', 1000, { create: false })
  assert.deepEqual([find('one', 1000), sessions.size], ['', 0])
  bind('one', 'B', 1000)
  assert.equal(find('one', 1999), 'B')
})

test('with norefresh use does not make it last longer, and what was used last is the last to go all the same', () => {
  const { bind, find } = table(2)
  const refresh = false
  bind('one', 'A', 0, { refresh })
  bind('two', 'B', 100, { refresh })
  bind('one', 'A', 200, { refresh })
  bind('three', 'C', 300, { refresh })
  assert.deepEqual([find('one', 300), find('two', 300), find('three', 300)], ['A', '', 'C'])
  assert.deepEqual([find('one', 999), find('one', 1000)], ['A', ''])
})

test('where there is no room the session goes that was left alone longest', () => {
  const { bind, find, sessions } = table(3)
  for (const [i, id] of ['a', 'b', 'c'].entries()) bind(id, id, i)
  bind('a', 'a', 3)
  bind('d', 'd', 4)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((id) => find(id, 5)),
    ['a', '', 'c', 'd'],
  )
  assert.deepEqual([sessions.size, sessions.evicted], [3, 1])
})

test('what has run out goes first, and counts as no loss', () => {
  const { bind, find, sessions } = table(3)
  for (const [i, id] of ['a', 'b', 'c'].entries()) bind(id, id, 500 * i)
  bind('d', 'd', 1600)
  assert.deepEqual([sessions.size, sessions.evicted], [2, 0])
  assert.equal(find('c', 1600), 'c')
})

test('of sessions that are dropped it is said how many, at once and then once a minute', () => {
  const { bind } = table(1)
  const said = [0, 1, 2, 60_000, 60_002].map((now) => bind(`${now}`, 'A', now, { timeout: 1e9 }))
  assert.deepEqual(said, [0, 1, 0, 0, 3])
})

test('a flood of ids takes no more memory than there is, and the last ones are there', () => {
  const slots = 1000
  const { bind, find, sessions } = table(slots)
  const { byteLength } = sessions.buffer
  for (let i = 0; i < 20 * slots; i++) bind(`id${i}`, `s${i % 7}`, i, { timeout: 1e9 })
  assert.deepEqual([sessions.size, sessions.evicted], [slots, 19 * slots])
  assert.equal(sessions.buffer.byteLength, byteLength)
  for (let i = 19 * slots; i < 20 * slots; i++)
    assert.equal(sessions.find(sessionKey(`id${i}`), 20 * slots, 1e9), `s${i % 7}`)
  assert.equal(find('id0', 20 * slots), '')
})

test('a table takes as many bytes as it was given, and fits a session in about a hundred', () => {
  for (const bytes of [32_768, 65_536, 100_000, 2 ** 20]) {
    const slots = SessionEntries.slotsOf(bytes)
    assert.ok(new Sessions('z', slots).buffer.byteLength <= bytes)
    assert.ok(slots > bytes / 110)
  }
})

test('does what a map in the order of use does, whatever comes', () => {
  const random = seeded(7)
  const { sessions } = table(16)
  const model = new Map<string, { sid: string; usedAt: number }>()
  for (let now = 0; now < 20_000; now++) {
    const id = `id${Math.floor(random() * 40)}`
    const sid = `s${Math.floor(random() * 3)}`
    const create = random() < 0.7
    const refresh = random() < 0.9
    const limit = random() < 0.999 ? 1e9 : 50
    sessions.bind(sessionKey(id), sid, now, { timeout: limit, create, refresh })
    const known = model.get(id)
    const alive = known !== undefined && known.usedAt + limit > now
    if (alive || create) {
      model.delete(id)
      const oldest = () => model.entries().next().value
      if (!alive) {
        for (let i = 0; i < 4 && model.size > 0 && oldest()![1].usedAt + limit <= now; i++)
          model.delete(oldest()![0])
        if (model.size === 16) model.delete(oldest()![0])
      }
      model.set(id, { sid, usedAt: alive && !refresh ? known.usedAt : now })
    } else model.delete(id)
    if (now % 50 === 0) {
      const all = sessions.all().map(({ sid, usedAt }) => `${sid} ${usedAt}`)
      assert.deepEqual(
        all,
        Array.from(model.values(), ({ sid, usedAt }) => `${sid} ${usedAt}`),
      )
      for (const [id, { sid }] of model) assert.equal(sessions.find(sessionKey(id), now, 1e9), sid)
    }
  }
})

test('of what is made, bound anew, or long in use there is something to tell, once', () => {
  const { bind, news } = table()
  bind('one', 'A', 0)
  bind('one', 'A', 1)
  assert.deepEqual(news(), ['A'])
  bind('one', 'A', 2)
  assert.deepEqual(news(), [])
  bind('one', 'B', 3)
  assert.deepEqual(news(), ['B'])
  // A sixteenth of its time after it was told.
  bind('one', 'B', 65)
  assert.deepEqual(news(), [])
  bind('one', 'B', 66)
  assert.deepEqual(news(), ['B'])
})

test('is told in pieces, the oldest first, as it is then, and again where that came to nothing', () => {
  const { bind, news, sessions } = table()
  for (const id of ['A', 'B', 'C']) bind(id, id, 0)
  bind('B', 'BB', 1)
  assert.deepEqual([news(2), news(2)], [['A', 'BB'], ['C']])
  bind('A', 'AA', 2)
  const records = sessions.news(10)
  sessions.untold(records)
  assert.deepEqual(news(), ['AA'])
  sessions.tellAll()
  assert.deepEqual(news(), ['C', 'BB', 'AA'])
})

test('there is nothing to tell of a session that is gone, and of the one in its place once', () => {
  const { bind, news } = table(1)
  bind('one', 'A', 0)
  bind('two', 'B', 1)
  bind('three', 'C', 2)
  assert.deepEqual([news(), news()], [['C'], []])
})

test('of two bindings of one session the newest holds, in whatever order they come', () => {
  const record = (sid: string, boundAt: number, usedAt = boundAt) => ({
    key: sessionKey('one'),
    sid,
    boundAt,
    usedAt,
  })
  for (const records of [
    [record('A', 10), record('B', 20)],
    [record('B', 20), record('A', 10)],
    // Its use is not what binds it.
    [record('B', 20), record('A', 10, 500)],
  ]) {
    const { sessions, find } = table()
    for (const one of records) sessions.merge([one])
    assert.equal(find('one', 600), 'B')
  }
  const { sessions, bind, find, news } = table()
  bind('one', 'A', 10)
  news()
  sessions.merge([record('B', 5, 900)])
  assert.deepEqual([find('one', 1500), find('one', 1900)], ['A', ''])
  assert.deepEqual(news(), ['A'], 'whoever says otherwise is told')
  sessions.merge([record('A', 5, 950)])
  assert.deepEqual(news(), [], 'what was heard is no news')
})

test('what is heard takes no place of a session that was used later', () => {
  const { sessions, bind, find } = table(2)
  bind('one', 'A', 100)
  bind('two', 'B', 200)
  const heard = (id: string, usedAt: number) => ({ key: sessionKey(id), sid: 'C', boundAt: 0, usedAt })
  sessions.merge([heard('three', 50), heard('three', 100), heard('four', 150)])
  assert.deepEqual(
    ['one', 'two', 'three', 'four'].map((id) => find(id, 300)),
    ['', 'B', '', 'C'],
  )
})

test('ids of peers that cannot be right are not taken in', () => {
  const { sessions } = table()
  const key = sessionKey('one')
  sessions.merge([
    { key, sid: '', boundAt: 0, usedAt: 0 },
    { key, sid: 'x'.repeat(33), boundAt: 0, usedAt: 0 },
  ])
  assert.equal(sessions.size, 0)
})

test('another table takes over what fits, and in the same order', () => {
  const { bind, sessions } = table(8)
  for (let i = 0; i < 8; i++) bind(`${i}`, `${i}`, i)
  bind('3', '3', 8)
  const smaller = new Sessions('z', 4)
  smaller.merge(sessions.all())
  const larger = new Sessions('z', 32)
  larger.merge(sessions.all())
  const sids = (one: Sessions) => one.all().map(({ sid }) => sid)
  assert.deepEqual(sids(smaller), ['5', '6', '7', '3'])
  assert.deepEqual(sids(larger), sids(sessions))
})

test('those that have run out can be removed by a number at a time', () => {
  const { bind, sessions } = table(8)
  for (let i = 0; i < 8; i++) bind(`${i}`, 'A', i)
  sessions.expire(1003, timeout, 3)
  assert.equal(sessions.size, 5)
  sessions.expire(1004, timeout)
  assert.equal(sessions.size, 3)
})
