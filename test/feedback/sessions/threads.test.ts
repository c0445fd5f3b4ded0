import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import { finished, thread } from '../../support/thread.ts'

const prelude = `
  const { Sessions, sessionKey } = await load('feedback/sessions/sessions.ts')
  const table = Sessions.attach(data.shared)
  const keys = Array.from({ length: data.ids }, (_, i) => sessionKey('id' + i))
  const rules = { timeout: 1e9, create: true, refresh: true }
  parentPort.postMessage('ready')
`

/** A table in the order that its links say, with all that must hold of it. */
function check(table: Sessions, now: number): void {
  const all = table.all()
  assert.equal(all.length, table.size)
  assert.ok(all.length <= table.slots)
  assert.equal(new Set(all.map(({ key }) => key.join())).size, all.length, 'each session once')
  for (const { key, sid } of all) assert.equal(table.find(key, now, 1e9), sid)
}

test('threads that share a table find what the others have bound, and lose nothing', async () => {
  const table = new Sessions('z', 3000, 3)
  const body = `${prelude}
    for (let round = 0; round < 20; round++) {
      for (let i = data.row; i < keys.length; i += 3) table.bind(keys[i], 's' + (i + round) % 10, round, rules)
    }`
  const shared = table.share()
  await finished(...[0, 1, 2].map((row) => thread(body, { shared, row, ids: 3000 })))
  assert.equal(table.size, 3000)
  assert.equal(table.created, 3000)
  for (let i = 0; i < 3000; i++) assert.equal(table.find(sessionKey(`id${i}`), 30, 1e9), `s${(i + 19) % 10}`)
  check(table, 30)
})

test('what other threads bind and drop all the time is whole whenever it is found', async () => {
  const table = new Sessions('z', 50, 3)
  const body = `${prelude}
    const sids = ['A'.repeat(32), 'B'.repeat(7)]
    for (let now = 0; now < 30_000; now++) {
      const i = Math.floor(Math.random() * keys.length)
      table.bind(keys[i], sids[(now + data.row) % 2], now, rules)
      const found = table.find(keys[i], now, 1e9)
      if (found !== '' && !sids.includes(found)) throw new Error('half of a session: ' + found)
    }`
  const shared = table.share()
  await finished(...[0, 1].map((row) => thread(body, { shared, row, ids: 200 })))
  assert.equal(table.size, 50)
  check(table, 30_000)
})

test('a thread that is ended at any moment leaves a table that works', async () => {
  const table = new Sessions('z', 400, 2)
  const shared = table.share()
  const body = `${prelude}
    for (let now = 0; ; now++) {
      const key = keys[Math.floor(Math.random() * keys.length)]
      table.bind(key, 's' + now % 100, now, rules)
      if (now % 7 === 0) table.news(3)
    }`
  for (let round = 0; round < 12; round++) {
    const worker = thread(body, { shared, row: 0, ids: 1000 })
    await once(worker, 'message')
    await new Promise((resolve) => setTimeout(resolve, 3 + 3 * round))
    await worker.terminate()
    check(table, 1e8)
    table.bind(sessionKey('mine'), 'A', 1e8, { timeout: 1e9, create: true, refresh: true })
    assert.equal(table.find(sessionKey('mine'), 1e8, 1e9), 'A')
    check(table, 1e8)
  }
})

test('a change that was left half done is made good by whoever comes next', () => {
  const table = new Sessions('z', 8, 2)
  const rules = { timeout: 1e9, create: true, refresh: true }
  for (let i = 0; i < 6; i++) table.bind(sessionKey(`id${i}`), `s${i}`, i, rules)
  // Of the first words the third one says that a change is under way; whatever links there are may be wrong.
  const words = new Int32Array(table.buffer, 0, 16)
  words[2] = 1
  words[4] = 3
  words[5] = 3
  check(table, 10)
  assert.deepEqual(
    table.all().map(({ sid }) => sid),
    ['s0', 's1', 's2', 's3', 's4', 's5'],
  )
  for (let i = 6; i < 9; i++) table.bind(sessionKey(`id${i}`), `s${i}`, i, rules)
  assert.deepEqual(
    table.all().map(({ sid }) => sid),
    ['s1', 's2', 's3', 's4', 's5', 's6', 's7', 's8'],
  )
})
