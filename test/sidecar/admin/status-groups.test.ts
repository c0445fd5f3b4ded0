import assert from 'node:assert/strict'
import { test } from 'node:test'
import { switchTo } from '../../../feedback/backup-switch.ts'
import { Call } from '../../../feedback/call.ts'
import { ServerZone } from '../../../feedback/server-zone.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import type { ResolverFacts } from '../../../sidecar/admin/resolver-facts.ts'
import { keysAt, statusAt } from './asked.ts'
import { facts, group, now, resolver, sticky, wall } from './facts.ts'

test('groups of http and of stream stand in their places, each under its name as written', () => {
  const from = facts({
    groups: [group('app', { a: {} }), group('stream/app', { b: {} }, { kind: 'stream' })],
  })
  assert.equal(keysAt(from, '/status/http/upstreams'), 'app')
  assert.equal(keysAt(from, '/status/stream/upstreams'), 'app')
  assert.equal(keysAt(from, '/status/http/upstreams/app/peers'), 'a')
  assert.equal(keysAt(from, '/status/stream/upstreams/app/peers'), 'b')
})

test('a group of stream has neither statuses nor kept connections, and the times of sessions', () => {
  const db = group('stream/db', { a: { max_conns: 9 } }, { kind: 'stream' })
  const { zone } = db.upstream
  zone.peers.connectTime[0] = 0.3
  zone.peers.headerTime[0] = 2.25
  zone.peers.responseTime[0] = 61_000
  zone.set('requests', 4)
  const from = facts({ groups: [db] })
  const at = '/status/stream/upstreams/db'
  assert.equal(keysAt(from, at), 'peers evenkeel')
  assert.equal(
    keysAt(from, `${at}/peers/a`),
    'server backup weight state selected max_conns data health sid evenkeel',
  )
  assert.deepEqual(statusAt(from, `${at}/peers/a/health`), {
    fails: 0,
    unavailable: 0,
    downtime: 0,
    connect_time: 1,
    first_byte_time: 2,
    last_byte_time: 61_000,
  })
  const own = statusAt(from, `${at}/peers/a/evenkeel`) as Record<string, unknown>
  assert.deepEqual(
    [own['connect_time'], own['first_byte_time'], own['last_byte_time'], 'header_time' in own],
    [0.3, 2.25, 61_000, false],
  )
  assert.equal(keysAt(from, `${at}/evenkeel`), 'method sessions tries retries retries_waiting denials')
  assert.equal(statusAt(from, `${at}/evenkeel/sessions`), 4)
})

test('a peer of a service names it, after the server as DNS knows it', () => {
  const app = group('app', { 'b1.internal': {} }, { service: () => 'http' })
  const from = facts({ groups: [app] })
  assert.match(keysAt(from, '/status/http/upstreams/app/peers/b1.internal'), /^server service backup /)
  assert.equal(statusAt(from, '/status/http/upstreams/app/peers/b1.internal/service'), 'http')
})

test('a queue tells who came, waits, left, waited too long and found it full', () => {
  const app = group('app', { a: {} }, { queue: { number: 10, timeout: 2000 } })
  const { zone } = app.upstream
  const counts = { queued: 9, queueWaiting: 2, queueDropped: 1, queueTimedout: 3, queueOverflows: 4 } as const
  for (const [field, count] of Object.entries(counts) as [keyof typeof counts, number][])
    zone.set(field, count)
  zone.set('queueMs', 1234.5678)
  const from = facts({ groups: [app, group('other', { a: {} })] })
  const at = '/status/http/upstreams/app'
  assert.equal(keysAt(from, at), 'peers keepalive queue evenkeel')
  assert.deepEqual(statusAt(from, `${at}/queue`), {
    queued: 9,
    waiting: 2,
    dropped: 1,
    timedout: 3,
    overflows: 4,
  })
  assert.deepEqual(statusAt(from, `${at}/evenkeel/queue`), {
    limit: 10,
    threads: 1,
    timeout: 2000,
    waited: 1234.57,
  })
  assert.equal(keysAt(from, '/status/http/upstreams/other'), 'peers keepalive evenkeel')
})

test('a backup switch tells which list is active, and when the primaries are tried again', () => {
  const timed = group('timed', { a: {} }, { backupSwitch: { after: 120_000 } })
  const lasting = group('stream/lasting', { a: {} }, { kind: 'stream', backupSwitch: { after: undefined } })
  const from = facts({ groups: [timed, lasting] })
  const at = '/status/http/upstreams/timed'
  assert.deepEqual(statusAt(from, `${at}/backup_switch`), { active: 0 })
  assert.deepEqual(statusAt(from, `${at}/evenkeel/backup_switch`), { list: 'primaries', switches: 0 })
  for (const { upstream } of [timed, lasting]) {
    switchTo(upstream.zone, true, now - 20_000.4)
    upstream.zone.set('switchedWallAt', wall)
  }
  assert.deepEqual(statusAt(from, `${at}/backup_switch`), { active: 1, timeout: 100_000 })
  assert.deepEqual(statusAt(from, `${at}/evenkeel/backup_switch`), {
    list: 'backups',
    switches: 1,
    last: '2026-11-30T01:54:49.728Z',
  })
  assert.deepEqual(statusAt(from, '/status/stream/upstreams/lasting/backup_switch'), { active: 1 })
  // The time has run out, and no request has come since.
  timed.upstream.zone.set('backSince', now - 120_001)
  assert.deepEqual(statusAt(from, `${at}/backup_switch`), { active: 1, timeout: 0 })
})

test('sticky sessions tell what became of attempts, and learnt ones how full their table is', () => {
  const table = new Sessions('learned', 2)
  const rules = { create: [], lookup: [], timeout: 60_000, at: 'end', refresh: true } as const
  const binding = { timeout: 60_000, create: true, refresh: true }
  for (const id of ['one', 'two', 'three']) table.bind(sessionKey(id), 'a', now, binding)
  table.bind(sessionKey('three'), 'b', now, binding)
  const app = group(
    'app',
    { a: {} },
    { sticky: sticky({ strict: true }), sessions: new SessionBook('app', rules, table) },
  )
  const { zone } = app.upstream
  zone.set('stickyNew', 3)
  zone.set('stickyHit', 2)
  zone.set('stickyMiss', 1)
  const cookie = group('cookie', { a: {} }, { sticky: sticky({ mode: 'cookie' }) })
  const from = facts({ groups: [app, cookie] })
  assert.deepEqual(statusAt(from, '/status/http/upstreams/app/evenkeel/sticky'), {
    mode: 'learn',
    strict: true,
    new: 3,
    hit: 2,
    miss: 1,
    sessions: {
      zone: 'learned',
      known: 2,
      capacity: 2,
      timeout: 60_000,
      created: 3,
      rebound: 1,
      evicted: 1,
    },
  })
  assert.deepEqual(statusAt(from, '/status/http/upstreams/cookie/evenkeel/sticky'), {
    mode: 'cookie',
    strict: false,
    new: 0,
    hit: 0,
    miss: 0,
  })
})

test('zones of stream servers tell how sessions ended, in words', () => {
  const zone = new ServerZone('db')
  const call = new Call()
  for (const status of [200, 200, 502, 400]) {
    zone.begin()
    Object.assign(call, { status, bytesSent: status === 200 ? 50 : 0, requestLength: 10 })
    zone.endSession(call)
  }
  zone.begin()
  const from = facts({ streamZones: () => new Map([['db', zone]]) })
  assert.deepEqual(statusAt(from, '/status/stream/server_zones'), {
    db: {
      connections: { total: 5, processing: 1, discarded: 0, passed: 0 },
      sessions: {
        success: 2,
        invalid: 1,
        forbidden: 0,
        internal_error: 0,
        bad_gateway: 1,
        service_unavailable: 0,
      },
      data: { received: 40, sent: 100 },
    },
  })
})

test('a resolver tells what it asked, how that ended, and the names that it follows', () => {
  const names: ResolverFacts['names'] = [
    {
      host: 'app.internal',
      service: undefined,
      addresses: ['10.0.0.1', '10.0.0.2'],
      ageMs: 1500.4,
      nextMs: 28_499.6,
      error: undefined,
    },
    { host: 'db.internal', service: 'pg', addresses: [], ageMs: undefined, nextMs: 0, error: 'timed out' },
  ]
  const from = facts({ resolvers: () => [resolver({ zone: 'dns', names })] })
  assert.deepEqual(statusAt(from, '/status/resolvers'), {
    dns: {
      queries: { name: 7, srv: 2, addr: 0 },
      sent: { a: 7, aaaa: 6, srv: 2, ptr: 0 },
      responses: {
        success: 9,
        timedout: 1,
        format_error: 0,
        server_failure: 3,
        not_found: 2,
        unimplemented: 0,
        refused: 0,
        other: 0,
      },
      evenkeel: {
        servers: '10.0.0.53:53',
        names: {
          'app.internal': { addresses: '10.0.0.1 10.0.0.2', age: 1500, next: 28_500 },
          '_pg._tcp.db.internal': { addresses: '', next: 0, error: 'timed out' },
        },
      },
    },
  })
})

test('resolvers of one zone are one, and one without a zone goes by the servers that it asks', () => {
  const from = facts({
    resolvers: () => [
      resolver({ zone: 'dns' }),
      resolver({ zone: 'dns', servers: ['10.0.0.54:53'] }),
      resolver({ servers: ['10.0.0.1:53', '10.0.0.2:53'] }),
      resolver({ servers: [] }),
    ],
  })
  assert.equal(keysAt(from, '/status/resolvers'), 'dns 10.0.0.1:53 10.0.0.2:53 none')
  assert.deepEqual(statusAt(from, '/status/resolvers/dns/queries'), { name: 14, srv: 4, addr: 0 })
  assert.equal(statusAt(from, '/status/resolvers/dns/responses/server_failure'), 6)
  assert.equal(statusAt(from, '/status/resolvers/dns/evenkeel/servers'), '10.0.0.53:53 10.0.0.54:53')
})
