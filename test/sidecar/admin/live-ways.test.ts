import assert from 'node:assert/strict'
import { test } from 'node:test'
import { switchTo } from '../../../feedback/backup-switch.ts'
import { sessionBucketsMs } from '../../../feedback/fields.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import type { Facts, UpstreamFacts } from '../../../sidecar/admin/facts.ts'
import { peerColumns } from '../../../sidecar/admin/live-numbers.ts'
import { LiveState } from '../../../sidecar/admin/live-state.ts'
import { facts, group, now, resolver, sticky, wall } from './facts.ts'

/** What the page is told of the first group, once and every second. */
function told(groups: readonly UpstreamFacts[], over: Partial<Facts> = {}) {
  const live = new LiveState(facts({ groups, ...over }))
  live.look()
  const layout = JSON.parse(live.layout)
  return { words: layout.words, layout: layout.groups[0], state: JSON.parse(live.state).groups[0] }
}

test('a group that has nothing of it is told nothing of it', () => {
  const { layout, state } = told([group('app', { a: {} })])
  assert.equal(layout.kind, 'http')
  for (const name of ['queue', 'sticky', 'backupSwitch', 'list', 'names'])
    assert.equal(name in layout || name in state, false, name)
})

test('a group of stream is told as one, with the bounds of its times, and nobody waits there for a header', () => {
  const db = group('stream/db', { a: {} }, { kind: 'stream' })
  const { zone } = db.upstream
  // Two open sessions, of which one has had a byte, after three that are over.
  zone.peers.conns[0] = 2
  zone.headerHistogram[0]![0] = 4
  zone.peers.connectTime[0] = 0.25
  const { words, layout, state } = told([db])
  assert.equal(layout.kind, 'stream')
  assert.deepEqual(words.sessionBuckets, [...sessionBucketsMs])
  const [row] = state.peers
  const at = (name: (typeof peerColumns)[number]) => row[peerColumns.indexOf(name)]
  assert.deepEqual([at('inFlight'), at('answering'), at('waited')], [2, 2, null])
  assert.equal(at('connectTime'), 0.25)
  assert.equal(at('headers'), 4)
})

test('a queue is told with its limits and its counts', () => {
  const app = group('app', { a: {} }, { queue: { number: 5, timeout: 2000 } })
  const { zone } = app.upstream
  zone.set('queueWaiting', 2)
  zone.set('queued', 9)
  zone.set('queueDropped', 1)
  zone.set('queueTimedout', 3)
  zone.set('queueOverflows', 4)
  zone.set('queueMs', 1234.5)
  const { layout, state } = told([app])
  assert.deepEqual(layout.queue, { number: 5, timeout: 2000 })
  assert.deepEqual(state.queue, [2, 9, 1, 3, 4, 1235])
})

test('sessions that stay with their peers are told with what became of them, and the table where they are learnt', () => {
  const table = new Sessions('learned', 1)
  for (const id of ['a', 'b'])
    table.bind(sessionKey(id), 'a', now, { timeout: 1000, create: true, refresh: true })
  const rules = { create: [], lookup: [], timeout: 1000, at: 'end', refresh: true } as const
  const learned = group(
    'app',
    { a: {} },
    { sticky: sticky(), sessions: new SessionBook('app', rules, table) },
  )
  learned.upstream.zone.set('stickyHit', 7)
  const { layout, state } = told([learned])
  assert.deepEqual(layout.sticky, {
    mode: 'learn',
    strict: false,
    zone: 'learned',
    capacity: 1,
    timeout: 1000,
  })
  assert.deepEqual(state.sticky, [0, 7, 0, 1, 1])
  const cookie = told([group('app', { a: {} }, { sticky: sticky({ mode: 'cookie', strict: true }) })])
  assert.deepEqual(cookie.layout.sticky, { mode: 'cookie', strict: true })
  assert.deepEqual(cookie.state.sticky, [0, 0, 0, null, null])
})

test('the list that comes first is told, with the time until the primaries are tried again', () => {
  const app = group('app', { a: {}, b: { backup: true } }, { backupSwitch: { after: 60_000 } })
  assert.deepEqual(told([app]).state.list, [0, null, 0, null])
  switchTo(app.upstream.zone, true, now - 10_000)
  app.upstream.zone.set('switchedWallAt', wall)
  assert.deepEqual(told([app]).layout.backupSwitch, { after: 60_000 })
  assert.deepEqual(told([app]).state.list, [1, 50_000, 1, wall])
})

test('names that a group follows are told with their addresses, and why one is not found', () => {
  const app = group(
    'app',
    { a: {} },
    {
      followed: [
        { host: 'app.internal', service: undefined },
        { host: 'db.internal', service: 'pg' },
        { host: 'new.internal', service: undefined },
      ],
    },
  )
  const names = [
    {
      host: 'app.internal',
      service: undefined,
      addresses: ['10.0.0.1', '10.0.0.2'],
      ageMs: 1500.4,
      nextMs: 10,
      error: undefined,
    },
    {
      host: 'db.internal',
      service: 'pg',
      addresses: [],
      ageMs: undefined,
      nextMs: 0,
      error: 'x'.repeat(500),
    },
  ]
  const { layout, state } = told([app], { resolvers: () => [resolver({ names })] })
  assert.deepEqual(layout.names, ['app.internal', '_pg._tcp.db.internal', 'new.internal'])
  assert.deepEqual(state.names, [
    [2, 1500, null],
    [0, null, 'x'.repeat(200)],
    [0, null, null],
  ])
})
