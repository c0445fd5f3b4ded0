import assert from 'node:assert/strict'
import { test } from 'node:test'
import { switchTo } from '../../../feedback/backup-switch.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import { explainUpstream } from '../../../sidecar/admin/explain.ts'
import type { UpstreamFacts } from '../../../sidecar/admin/facts.ts'
import { adminApp } from '../../../sidecar/admin/server.ts'
import { facts, group, now, sticky } from './facts.ts'

/** What is said in lines that begin so, and in those below them. */
function lines(of: UpstreamFacts, beginning: string, session?: string): string[] {
  const all = explainUpstream(of, now, undefined, session).text.split('\n')
  const at = all.findIndex((line) => line.startsWith(`  ${beginning}`))
  if (at < 0) return []
  const end = all.findIndex((line, i) => i > at && !line.startsWith('    '))
  return all.slice(at, end).map((line) => line.slice(2))
}

test('a group of stream is explained by its name with the slash, in sessions', async () => {
  const db = group('stream/db', { a: {} }, { kind: 'stream' })
  db.upstream.zone.set('requests', 7)
  const app = adminApp(facts({ groups: [db] }), {
    readonly: false,
    local: true,
    unix: false,
    report: () => {},
  })
  for (const path of ['/explain/stream/db', '/explain/stream%2Fdb', '/explain/Stream/DB/']) {
    const text = await app.inject(`${path}?format=text`)
    assert.match(text.body, /^upstream stream\/db, round_robin, a single peer\n/, path)
    assert.match(text.body, /\n {2}retries: 0 in 7 sessions, 0 waiting\n/)
  }
  assert.equal((await app.inject('/explain/stream/db')).json().kind, 'stream')
  assert.equal((await app.inject('/canary/stream/db')).json().upstream, 'stream/db')
  assert.equal((await app.inject('/readyz?upstream=stream/db')).statusCode, 200)
  assert.deepEqual((await app.inject('/explain/db')).json(), {
    error: 'no upstream "db"',
    upstreams: ['stream/db'],
  })
  await app.close()
})

test('nothing is said of what a group does not have', () => {
  const { text, queue, sticky: sessions, backup_switch } = explainUpstream(group('app', { a: {} }), now)
  assert.deepEqual([queue, sessions, backup_switch], [undefined, undefined, undefined])
  assert.doesNotMatch(text, /queue|session|lists/)
})

test('sessions are told by what became of them, and where one that is asked about goes', () => {
  const app = group(
    'app',
    { a: {}, b: { drain: true }, c: { down: true } },
    {
      sticky: sticky({
        mode: 'cookie',
        bound: (session) => app.upstream.peers.filter(({ name }) => session.includes(name)),
      }),
    },
  )
  app.upstream.zone.set('stickyNew', 3)
  app.upstream.zone.set('stickyHit', 2)
  const first = 'sessions: by cookie; 3 picks of new ones, 2 hits, 0 misses'
  assert.deepEqual(lines(app, 'sessions'), [first])
  assert.deepEqual(lines(app, 'sessions', 'a'), [first, '  a: goes to a'])
  // A peer that drains takes what is bound to it.
  assert.deepEqual(lines(app, 'sessions', 'b'), [first, '  b: goes to b'])
  assert.deepEqual(lines(app, 'sessions', 'c'), [first, '  c: c is down: as the method has it'])
  assert.deepEqual(lines(app, 'sessions', 'cb'), [first, '  cb: goes to b'])
  assert.deepEqual(lines(app, 'sessions', 'x'), [first, '  x: names nobody: as the method has it'])
  assert.deepEqual(lines(app, 'sessions', 'x\u001b[2J'), [
    first,
    '  x\\x1b[2J: names nobody: as the method has it',
  ])
  const session = explainUpstream(app, now, undefined, 'bc').sticky?.session
  assert.deepEqual(session, {
    session: 'bc',
    bound: [
      { peer: 'b', excluded: undefined },
      { peer: 'c', excluded: 'down' },
    ],
    goes: 'b',
  })
})

test('a strict group refuses a session whose peer is not there, and a secret of the request keeps it untold', () => {
  const strict = group('app', { a: { down: true } }, { sticky: sticky({ mode: 'route', strict: true }) })
  assert.equal(lines(strict, 'sessions', 'a').at(-1), '  a: names nobody: refused')
  const secret = group('app', { a: {} }, { sticky: sticky({ mode: 'cookie', bound: () => undefined }) })
  assert.equal(
    lines(secret, 'sessions', 'a').at(-1),
    '  a: cannot be told, since the secret depends on the request',
  )
})

test('learnt sessions are told with the room that there is for them', () => {
  const table = new Sessions('learned', 4)
  table.bind(sessionKey('one'), 'a', now, { timeout: 1000, create: true, refresh: true })
  const rules = { create: [], lookup: [], timeout: 1000, at: 'end', refresh: true } as const
  const app = group('app', { a: {} }, { sticky: sticky(), sessions: new SessionBook('app', rules, table) })
  assert.deepEqual(lines(app, 'sessions', 'two'), [
    'sessions: learnt, 1 of at most 4 known; 0 picks of new ones, 0 hits, 0 misses',
    '  two: is not known: as the method has it',
  ])
})

test('the list that comes first is told, and when the primaries are tried again', () => {
  const app = (after: number | undefined) =>
    group('app', { a: {}, b: { backup: true } }, { backupSwitch: { after } })
  const timed = app(60_000)
  assert.deepEqual(lines(timed, 'lists'), ['lists: the primaries first; 0 switches so far'])
  switchTo(timed.upstream.zone, true, now - 1500)
  assert.deepEqual(lines(timed, 'lists'), [
    'lists: the backups first, the primaries are tried again in 59 s; 1 switch so far',
  ])
  assert.deepEqual(explainUpstream(timed, now).backup_switch, {
    list: 'backups',
    returns: 58_500,
    switches: 1,
  })
  timed.upstream.zone.set('backSince', now - 90_000)
  assert.match(lines(timed, 'lists')[0]!, /tried again with the next request/)
  const lasting = app(undefined)
  switchTo(lasting.upstream.zone, true, now)
  assert.deepEqual(lines(lasting, 'lists'), [
    'lists: the backups first, until nobody is ready there; 1 switch so far',
  ])
})

test('while the backups come first, primaries that are ready are not said to be away', () => {
  const split = { variable: undefined, percents: new Map([['stable', 100]]), key: undefined }
  const app = group('app', { a: {}, b: { backup: true } }, { backupSwitch: { after: undefined }, split })
  switchTo(app.upstream.zone, true, now)
  const away = { ...app, shares: () => ({ primary: [0], backup: [1] }) }
  const { text } = explainUpstream(away, now)
  assert.match(text, /\n {2}a: 0\.0 %; 0 in flight\n {2}b: 100\.0 % \(backup\); 0 in flight\n/)
  assert.match(text, /\n {4}stable: 100 %, now 0 %; 0 requests\n/)
  assert.doesNotMatch(text, /nobody is ready, |nobody is ready;/)
})

test('a queue is told with its limits, and with what became of those who waited', () => {
  const app = group('app', { a: {} }, { queue: { number: 5, timeout: 1500 } })
  assert.deepEqual(lines(app, 'queue'), [
    'queue: 0 waiting now, at most 5 in each thread, for 1.5 s; 0 have waited, 0 left, 0 waited too long, 0 found it full',
  ])
  const { zone } = app.upstream
  zone.set('queued', 12)
  zone.set('queueWaiting', 2)
  zone.set('queueMs', 2500)
  zone.set('queueDropped', 1)
  zone.set('queueTimedout', 3)
  zone.set('queueOverflows', 4)
  assert.deepEqual(lines(app, 'queue'), [
    'queue: 2 waiting now, at most 5 in each thread, for 1.5 s; 12 have waited, 250 ms on average, 1 left, 3 waited too long, 4 found it full',
  ])
})
