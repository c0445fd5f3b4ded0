import assert from 'node:assert/strict'
import { test } from 'node:test'
import { switchTo } from '../../../feedback/backup-switch.ts'
import { sessionBucketsMs } from '../../../feedback/fields.ts'
import { ServerZone } from '../../../feedback/server-zone.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import type { Facts } from '../../../sidecar/admin/facts.ts'
import { scrape } from '../../../sidecar/admin/metrics.ts'
import type { Change } from '../../../sidecar/admin/runtime-facts.ts'
import { read } from './checker.ts'
import { facts, group, now, resolver, runtime, sticky, wall } from './facts.ts'

/** Samples whose name begins so, a line each, the buckets of histograms left out. */
async function told(from: Facts, ...beginnings: readonly string[]): Promise<string[]> {
  const lines: string[] = []
  for (const { samples } of read(await scrape(from, 'text')).values()) {
    for (const [key, value] of samples) {
      const wanted = beginnings.some((beginning) => key.startsWith(`evenkeel_${beginning}`))
      if (wanted && !key.includes('_bucket{')) lines.push(`${key.slice('evenkeel_'.length)} ${value}`)
    }
  }
  return lines
}

test('a group of stream has lengths of sessions, and nothing of what only requests have', async () => {
  const db = group('stream/db', { a: {} }, { kind: 'stream' })
  const { zone, tracks } = db.upstream
  const track = tracks.get('stable')!
  track.answered(200, 90_000, undefined, sessionBucketsMs)
  track.answered(502, 5, undefined, sessionBucketsMs)
  zone.responseHistogram[sessionBucketsMs.indexOf(300_000)]![0] = 1
  zone.responseSum[0] = 90_000
  zone.peers.connectTime[0] = 2
  zone.peers.headerTime[0] = 4
  zone.peers.responseTime[0] = 90_000
  const from = facts({ groups: [db] })
  const group_ = '{upstream="stream/db",track="stable"'
  const peer = '{upstream="stream/db",peer="a",track="stable"}'
  assert.deepEqual(
    await told(
      from,
      'upstream_session_seconds',
      'upstream_request_seconds',
      'upstream_responses',
      'upstream_idle',
    ),
    [
      `upstream_responses_total${group_},code="200"} 1`,
      `upstream_responses_total${group_},code="502"} 1`,
      `upstream_session_seconds_sum${group_}} 90.005`,
      `upstream_session_seconds_count${group_}} 2`,
    ],
  )
  assert.deepEqual(
    await told(
      from,
      'peer_session_',
      'peer_response',
      'peer_reuses',
      'peer_connect_average',
      'peer_header_average',
    ),
    [
      `peer_connect_average_seconds${peer} 0.002`,
      `peer_header_average_seconds${peer} 0.004`,
      `peer_session_average_seconds${peer} 90`,
      `peer_session_seconds_sum${peer} 90`,
      `peer_session_seconds_count${peer} 1`,
    ],
  )
  const { samples } = read(await scrape(from, 'text')).get('evenkeel_peer_session_seconds')!
  const upTo = (le: string) =>
    samples.get(`evenkeel_peer_session_seconds_bucket${peer.replace('}', `,le="${le}"}`)}`)
  assert.deepEqual(['60', '300', '86400', '+Inf'].map(upTo), [0, 1, 1, 1])
})

test('a group of http has no lengths of sessions', async () => {
  const from = facts({ groups: [group('app', { a: {} })] })
  assert.deepEqual(
    await told(from, 'upstream_session', 'peer_session', 'peer_connect_average', 'upstream_queue'),
    [],
  )
})

test('a queue tells how long it is and how requests left it', async () => {
  const app = group('app', { a: {} }, { queue: { number: 10, timeout: 1000 } })
  const { zone } = app.upstream
  const counts = { queued: 9, queueWaiting: 2, queueDropped: 1, queueTimedout: 3, queueOverflows: 4 } as const
  for (const [field, count] of Object.entries(counts) as [keyof typeof counts, number][])
    zone.set(field, count)
  zone.set('queueMs', 1500)
  const labels = '{upstream="app"}'
  assert.deepEqual(await told(facts({ groups: [app, group('other', { a: {} })] }), 'upstream_queue'), [
    `upstream_queue_waiting${labels} 2`,
    `upstream_queue_entered_total${labels} 9`,
    `upstream_queue_dropped_total${labels} 1`,
    `upstream_queue_timedout_total${labels} 3`,
    `upstream_queue_overflows_total${labels} 4`,
    `upstream_queue_wait_seconds_total${labels} 1.5`,
  ])
})

test('a queue that a reload has taken away is told as long as somebody waits in it', async () => {
  const app = group('app', { a: {} })
  const from = facts({ groups: [app] })
  app.upstream.zone.set('queueWaiting', 1)
  assert.deepEqual(await told(from, 'upstream_queue_waiting'), ['upstream_queue_waiting{upstream="app"} 1'])
  app.upstream.zone.set('queueWaiting', 0)
  assert.deepEqual(await told(from, 'upstream_queue_waiting'), [])
})

test('sticky sessions are told by what became of them, and how full the table of learnt ones is', async () => {
  const table = new Sessions('learned', 2)
  const binding = { timeout: 60_000, create: true, refresh: true }
  for (const id of ['one', 'two', 'three']) table.bind(sessionKey(id), 'a', now, binding)
  table.bind(sessionKey('three'), 'b', now, binding)
  const rules = { create: [], lookup: [], timeout: 60_000, at: 'end', refresh: true } as const
  const app = group('app', { a: {} }, { sticky: sticky(), sessions: new SessionBook('app', rules, table) })
  app.upstream.zone.set('stickyHit', 5)
  const cookie = group('cookie', { a: {} }, { sticky: sticky({ mode: 'cookie' }) })
  assert.deepEqual(await told(facts({ groups: [app, cookie] }), 'upstream_sticky'), [
    'upstream_sticky_picks_total{upstream="app",status="new"} 0',
    'upstream_sticky_picks_total{upstream="app",status="hit"} 5',
    'upstream_sticky_picks_total{upstream="app",status="miss"} 0',
    'upstream_sticky_picks_total{upstream="cookie",status="new"} 0',
    'upstream_sticky_picks_total{upstream="cookie",status="hit"} 0',
    'upstream_sticky_picks_total{upstream="cookie",status="miss"} 0',
    'upstream_sticky_sessions{upstream="app"} 2',
    'upstream_sticky_sessions_max{upstream="app"} 2',
    'upstream_sticky_sessions_created_total{upstream="app"} 3',
    'upstream_sticky_sessions_rebound_total{upstream="app"} 1',
    'upstream_sticky_sessions_evicted_total{upstream="app"} 1',
  ])
})

test('a backup switch tells which list requests go to first, and how often that changed', async () => {
  const app = group('app', { a: {} }, { backupSwitch: { after: undefined } })
  const from = facts({ groups: [app, group('other', { a: {} })] })
  const labels = '{upstream="app"}'
  assert.deepEqual(await told(from, 'upstream_on_backups', 'upstream_backup'), [
    `upstream_on_backups${labels} 0`,
    `upstream_backup_switches_total${labels} 0`,
  ])
  switchTo(app.upstream.zone, true, now)
  assert.deepEqual(await told(from, 'upstream_on_backups', 'upstream_backup'), [
    `upstream_on_backups${labels} 1`,
    `upstream_backup_switches_total${labels} 1`,
  ])
})

test('a resolver tells what it asks and how that ends, and of each name whether it has addresses', async () => {
  const names = [
    {
      host: 'app.internal',
      service: undefined,
      addresses: ['10.0.0.1', '10.0.0.2'],
      ageMs: 1500,
      nextMs: 1000,
      error: undefined,
    },
    { host: 'db.internal', service: 'pg', addresses: [], ageMs: undefined, nextMs: 0, error: 'timed out' },
  ]
  // Both look it up, and one finds it.
  const second = [{ ...names[1]!, addresses: ['10.0.0.9:5432'], error: undefined }]
  const from = facts({
    resolvers: () => [resolver({ zone: 'dns', names }), resolver({ zone: 'dns', names: second })],
  })
  const db = '{resolver="dns",name="_pg._tcp.db.internal"}'
  assert.deepEqual(await told(from, 'resolver_name'), [
    'resolver_name_addresses{resolver="dns",name="app.internal"} 2',
    `resolver_name_addresses${db} 0`,
    'resolver_name_failing{resolver="dns",name="app.internal"} 0',
    `resolver_name_failing${db} 1`,
    'resolver_name_age_seconds{resolver="dns",name="app.internal"} 1.5',
  ])
  assert.deepEqual(await told(from, 'resolver_queries', 'resolver_sent'), [
    'resolver_queries_total{resolver="dns",type="name"} 14',
    'resolver_queries_total{resolver="dns",type="srv"} 4',
    'resolver_queries_total{resolver="dns",type="addr"} 0',
    'resolver_sent_total{resolver="dns",type="a"} 14',
    'resolver_sent_total{resolver="dns",type="aaaa"} 12',
    'resolver_sent_total{resolver="dns",type="srv"} 4',
    'resolver_sent_total{resolver="dns",type="ptr"} 0',
  ])
  const responses = await told(from, 'resolver_responses')
  assert.equal(responses.length, 8)
  assert.ok(responses.includes('resolver_responses_total{resolver="dns",status="server_failure"} 6'))
})

test('changes while the program runs are counted by what they were, and as long as they hold', async () => {
  const change: Change = {
    upstream: 'app',
    kind: 'state',
    target: 'a',
    whole: false,
    value: 'down',
    file: 'up',
    at: wall,
    by: '127.0.0.1',
  }
  const changed = runtime({
    list: () => [change, { ...change, upstream: 'other' }],
    counts: () => [
      { upstream: 'app', deed: 'state', count: 3 },
      { upstream: 'app', deed: 'reset', count: 1 },
      { upstream: 'gone', deed: 'state', count: 7 },
    ],
  })
  const from = facts({ groups: [group('app', { a: {} })], runtime: () => changed })
  assert.deepEqual(await told(from, 'upstream_changes'), [
    'upstream_changes_in_force{upstream="app"} 1',
    'upstream_changes_total{upstream="app",change="state"} 3',
    'upstream_changes_total{upstream="app",change="weight"} 0',
    'upstream_changes_total{upstream="app",change="max_conns"} 0',
    'upstream_changes_total{upstream="app",change="add"} 0',
    'upstream_changes_total{upstream="app",change="remove"} 0',
    'upstream_changes_total{upstream="app",change="reset"} 1',
    'upstream_changes_total{upstream="app",change="dropped"} 0',
  ])
})

test('handshakes are told of zones that speak TLS, as all threads have counted them', async () => {
  const one = new ServerZone('shop', 2, 0)
  const other = new ServerZone('shop', 2, 1, one.share())
  const db = new ServerZone('shop')
  one.secure = true
  db.secure = true
  one.handshake('handshaked')
  other.handshake('handshaked')
  other.handshake('reuses')
  other.handshake('failed')
  db.handshake('timedout')
  const from = facts({
    serverZones: () =>
      new Map([
        ['shop', one],
        ['plain', new ServerZone('plain')],
      ]),
    streamZones: () => new Map([['shop', db]]),
  })
  assert.deepEqual(await told(from, 'tls_'), [
    'tls_handshakes_total{zone="shop"} 2',
    'tls_handshakes_total{zone="stream/shop"} 0',
    'tls_handshakes_reused_total{zone="shop"} 1',
    'tls_handshakes_reused_total{zone="stream/shop"} 0',
    'tls_handshakes_timedout_total{zone="shop"} 0',
    'tls_handshakes_timedout_total{zone="stream/shop"} 1',
    'tls_handshakes_failed_total{zone="shop"} 1',
    'tls_handshakes_failed_total{zone="stream/shop"} 0',
  ])
})
