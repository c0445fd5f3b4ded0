import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FleetFacts } from '../../../feedback/fleet/facts.ts'
import { explainUpstream } from '../../../sidecar/admin/explain.ts'
import type { Facts } from '../../../sidecar/admin/facts.ts'
import { scrape } from '../../../sidecar/admin/metrics.ts'
import { adminApp } from '../../../sidecar/admin/server.ts'
import { statusResponse } from '../../../sidecar/admin/status.ts'
import { read } from './checker.ts'
import { facts, fleet, group, groupOf, now, peer } from './facts.ts'

const learning = { mode: 'header', factor: 0.9, errors: 3, decay: 10_000, account: undefined } as const

/** A fleet that shares one group, and has heard of one peer of it. */
function partly(over: Partial<FleetFacts> = {}): FleetFacts {
  const whole = fleet(over)
  return {
    ...whole,
    upstream: (upstream) => (upstream.name === 'shared' ? whole.upstream(upstream) : undefined),
    peer: (upstream, peer) =>
      upstream.name === 'shared' && peer.name === 'a' ? whole.peer(upstream, peer) : undefined,
  }
}

const groups = () => [group('shared', { a: {}, b: {} }), group('own', { a: {} })]

/** Every sample whose name speaks of the fleet. */
async function samples(from: Facts): Promise<Record<string, number>> {
  const page = read(await scrape(from, 'text'))
  const all = [...page.values()].flatMap(({ samples }) => [...samples])
  return Object.fromEntries(all.filter(([key]) => /^evenkeel_\w*fleet_/.test(key)))
}

test('/metrics tells of the fleet, of each shared group, and of each peer that was heard of', async () => {
  const a = '{upstream="shared",peer="a",track="stable"}'
  assert.deepEqual(await samples(facts({ groups: groups(), fleet: () => partly() })), {
    evenkeel_fleet_up: 1,
    evenkeel_fleet_exchanges_total: 25,
    evenkeel_fleet_exchange_failures_total: 2,
    evenkeel_fleet_losses_total: 1,
    evenkeel_fleet_round_trip_seconds: 0.00125,
    'evenkeel_upstream_fleet_members{upstream="shared"}': 3,
    'evenkeel_upstream_fleet_resets_total{upstream="shared"}': 1,
    'evenkeel_upstream_fleet_sessions_told_total{upstream="shared"}': 5,
    'evenkeel_upstream_fleet_sessions_heard_total{upstream="shared"}': 9,
    'evenkeel_upstream_fleet_age_seconds{upstream="shared"}': 0.12,
    [`evenkeel_peer_fleet_in_flight${a}`]: 6,
    [`evenkeel_peer_fleet_answers${a}`]: 40,
    [`evenkeel_peer_fleet_failures${a}`]: 2,
    [`evenkeel_peer_fleet_average_seconds${a}`]: 0.0125,
    [`evenkeel_peer_fleet_stuck${a}`]: 2,
    [`evenkeel_peer_fleet_stuck_age_seconds${a}`]: 1.5,
    [`evenkeel_peer_fleet_lease${a}`]: 3,
  })
})

test('/metrics has no sample of the fleet where there is none', async () => {
  assert.deepEqual(await samples(facts({ groups: groups() })), {})
})

test('/metrics leaves out what is not known instead of calling it 0', async () => {
  const unknown = fleet(
    {
      up: false,
      roundTripMs: undefined,
      exchanges: 0,
      upstream: () => ({ members: 0, age: undefined, resets: 0 }),
    },
    { average: undefined, lease: undefined, stuck: 0, stuckAge: 0 },
  )
  const told = await samples(facts({ groups: [group('u', { a: {} })], fleet: () => unknown }))
  const a = '{upstream="u",peer="a",track="stable"}'
  assert.deepEqual(told, {
    evenkeel_fleet_up: 0,
    evenkeel_fleet_exchanges_total: 0,
    evenkeel_fleet_exchange_failures_total: 2,
    evenkeel_fleet_losses_total: 1,
    'evenkeel_upstream_fleet_resets_total{upstream="u"}': 0,
    [`evenkeel_peer_fleet_in_flight${a}`]: 6,
    [`evenkeel_peer_fleet_answers${a}`]: 40,
    [`evenkeel_peer_fleet_failures${a}`]: 2,
    [`evenkeel_peer_fleet_stuck${a}`]: 0,
    [`evenkeel_peer_fleet_stuck_age_seconds${a}`]: 0,
  })
})

test('an address that a group lists twice is one series with the sum of both', async () => {
  const { zone } = group('twice', {}).upstream
  const both = [peer(zone, 'a'), peer(zone, 'a')]
  const twice = groupOf(zone, both)
  const labels = '{upstream="twice",peer="a",track="stable"}'
  const told = await samples(facts({ groups: [twice], fleet: () => fleet() }))
  const value = (name: string) => told[`evenkeel_peer_fleet_${name}${labels}`]
  const names = ['in_flight', 'answers', 'failures', 'stuck', 'stuck_age_seconds', 'lease']
  assert.deepEqual(names.map(value), [12, 80, 4, 4, 3, 6])
  assert.equal(value('average_seconds'), 0.0125)
  const whole = fleet()
  const one = fleet({ peer: (upstream, peer) => (peer === both[1] ? whole.peer(upstream, peer) : undefined) })
  const half = await samples(facts({ groups: [twice], fleet: () => one }))
  assert.equal(half[`evenkeel_peer_fleet_lease${labels}`], 3)
})

test('a scrape asks the fleet once for each group and each peer', async () => {
  const asked: string[] = []
  const whole = fleet()
  const counting = fleet({
    upstream: (upstream) => {
      asked.push(upstream.name)
      return whole.upstream(upstream)
    },
    peer: (upstream, peer) => {
      asked.push(`${upstream.name}/${peer.name}`)
      return whole.peer(upstream, peer)
    },
  })
  await scrape(facts({ groups: groups(), fleet: () => counting }), 'text')
  assert.deepEqual(asked.toSorted(), ['own', 'own/a', 'shared', 'shared/a', 'shared/b'])
})

/** What of the status tree stands at a path. */
function value(from: Facts, path: string, query = ''): unknown {
  const { status, body } = statusResponse(from, path, query, 'GET', '127.0.0.1')
  return status === 200 ? JSON.parse(body.toString()) : status
}

test('the status tree has the fleet at its root, and under each shared group and each peer heard of', () => {
  const from = facts({ groups: groups(), fleet: () => partly({ error: 'no answer within 100 ms' }) })
  assert.deepEqual(value(from, '/status/fleet'), {
    group: 'shop',
    name: 'pod-1',
    id: 'pod-1.x7',
    servers: '10.0.0.1:6379 10.0.0.2:6379',
    up: true,
    since: '2026-11-30T01:54:44.728Z',
    error: 'no answer within 100 ms',
    required: false,
    interval: 200,
    ttl: 5000,
    exchanges: 25,
    failures: 2,
    losses: 1,
    round_trip: 1.25,
  })
  assert.equal(value(from, '/status/fleet/since', 'date=epoch'), 1796003684)
  const upstreams = '/status/http/upstreams'
  assert.deepEqual(value(from, `${upstreams}/shared/fleet`), {
    members: 3,
    age: 120,
    resets: 1,
    sessions: { told: 5, heard: 9 },
  })
  assert.equal(value(from, `${upstreams}/own/fleet`), 404)
  assert.deepEqual(value(from, `${upstreams}/shared/peers/a/fleet`), {
    members: 2,
    current: 6,
    answers: 40,
    good: 38,
    avg: 12.5,
    stuck: 2,
    stuck_age: 1500,
    lease: 3,
    unavailable: 1,
  })
  assert.equal(value(from, `${upstreams}/shared/peers/b/fleet`), 404)
})

test('the status tree says nothing of a fleet where there is none, and leaves out what is not known', () => {
  const { body } = statusResponse(facts({ groups: groups() }), '/status/', '', 'GET', '127.0.0.1')
  assert.doesNotMatch(body.toString(), /fleet/)
  const unknown = fleet(
    { roundTripMs: undefined, upstream: () => ({ members: 0, age: undefined, resets: 0 }) },
    { average: undefined, lease: undefined },
  )
  const from = facts({ groups: groups(), fleet: () => unknown })
  const keys = (path: string) => Object.keys(value(from, path) as object).join(' ')
  assert.doesNotMatch(keys('/status/fleet'), /error|round_trip/)
  assert.equal(keys('/status/http/upstreams/own/fleet'), 'resets')
  assert.doesNotMatch(keys('/status/http/upstreams/own/peers/a/fleet'), /avg|lease/)
})

async function readyz(over: Partial<Facts>, query = '') {
  const app = adminApp(facts(over), { readonly: false, local: true, unix: false, report: () => {} })
  const answer = await app.inject(`/readyz${query}`)
  await app.close()
  return [answer.statusCode, answer.json().reason]
}

test('/readyz asks for the fleet only where it is required, and says what is wrong', async () => {
  const lost = { up: false, error: 'connection refused', silence: 5001 }
  const why = 'the fleet cannot be reached (connection refused)'
  assert.deepEqual(await readyz({ fleet: () => fleet(lost) }), [200, undefined])
  assert.deepEqual(await readyz({ fleet: () => fleet({ required: true }) }), [200, undefined])
  const required = { fleet: () => fleet({ ...lost, required: true }) }
  assert.deepEqual(await readyz(required), [503, why])
  assert.deepEqual(await readyz(required, '?upstream=nope'), [503, why])
  assert.deepEqual(await readyz({ ...required, draining: () => true }), [503, 'draining'])
  assert.deepEqual(await readyz({ ...required, ready: () => false }), [503, 'not listening yet'])
  const silent = { fleet: () => fleet({ up: false, silence: undefined, required: true }) }
  assert.deepEqual(await readyz(silent), [503, 'the fleet cannot be reached (no answer yet)'])
  const unfit = { up: false, refused: true, error: 'it is not a cluster', silence: undefined, required: true }
  assert.deepEqual(await readyz({ fleet: () => fleet(unfit) }), [
    503,
    'the fleet cannot be used (it is not a cluster)',
  ])
})

test('where the fleet is required readiness ends once nothing has been heard for ttl, and not before', async () => {
  const away = (silence: number) => ({ fleet: () => fleet({ up: false, required: true, silence }) })
  assert.deepEqual(await readyz(away(0)), [200, undefined])
  assert.deepEqual(await readyz(away(5000)), [200, undefined])
  assert.equal((await readyz(away(5001)))[0], 503)
  // Redis takes connections, and every exchange fails.
  assert.equal((await readyz({ fleet: () => fleet({ required: true, silence: 5001 }) }))[0], 503)
})

test('evenkeel_ready says what /readyz says', async () => {
  const ready = async (over: Partial<FleetFacts>) => {
    const page = read(await scrape(facts({ fleet: () => fleet(over) }), 'text'))
    return page.get('evenkeel_ready')?.samples.get('evenkeel_ready')
  }
  assert.equal(await ready({ up: false }), 1)
  assert.equal(await ready({ up: false, required: true }), 1)
  assert.equal(await ready({ up: false, required: true, silence: undefined }), 0)
})

test('the first page says since when the fleet cannot be reached', async () => {
  const page = async (over: Partial<FleetFacts>) => {
    const from = facts({ fleet: () => fleet(over) })
    const app = adminApp(from, { readonly: false, local: true, unix: false, report: () => {} })
    const { body } = await app.inject('/')
    await app.close()
    return body
  }
  assert.match(
    await page({ up: false, error: 'no answer' }),
    /\nthe fleet cannot be reached \(no answer\) since 2026-11-30T01:54:44\.728Z\n/,
  )
  assert.doesNotMatch(await page({}), /the fleet/)
})

/** A group of which the fleet holds things against the first peer. */
function burdened(more: Parameters<typeof group>[2] = {}) {
  const backend = group('shared', { a: { max_conns: 10, max_conns_scope: 'fleet' }, b: {} }, more)
  const { zone, peers } = backend.upstream
  const at = peers[0]!.index
  zone.peers.stuckCount[at] = 2
  zone.peers.stuckStart[at] = 2 * now - 1500
  zone.peers.lease[at] = 4
  return { backend, conns: zone.peers.conns, at }
}

test('an explanation says what the fleet has heard of a peer and what is stuck there', () => {
  const { backend } = burdened({ learning })
  const { peers, fleet: shared, text } = explainUpstream(backend, now, partly())
  assert.deepEqual(shared, { up: true, refused: false, error: undefined, members: 3, age: 120 })
  assert.deepEqual(peers[0]!.fleet, {
    heard: { members: 2, answers: 40, ok: 0.95, avg: 12.5, in_flight: 6, unavailable: 1 },
    stuck: { attempts: 2, age: 1500, adds: 150 },
    lease: { slots: 3, of: 10, used_up: false },
  })
  const lines = text.split('\n')
  assert.equal(
    lines[2],
    '    fleet: 2 instances with 6 requests in flight, 40 answers, 12.5 ms on average, 95 % succeed, ' +
      'set aside 1 time, 2 stuck at other instances for 1500 ms in all, which adds 150 ms, ' +
      'a lease of 3 of max_conns 10',
  )
  assert.equal(lines[4], '    fleet: nothing heard of it')
  assert.equal(lines[6], '  fleet: 3 instances, heard 0.1 s ago')
})

test('what is stuck elsewhere adds nothing where the method does not heed it', () => {
  const { backend } = burdened({ learning })
  const { peers, text } = explainUpstream({ ...backend, heedsStuck: false }, now, fleet())
  assert.equal(peers[0]!.fleet?.stuck.adds, undefined)
  assert.match(text, /, 2 stuck at other instances for 1500 ms in all, a lease/)
})

test('a peer that is busy by its lease alone is told as such', () => {
  const { backend, conns, at } = burdened()
  conns[at] = 3
  const { peers, text } = explainUpstream(backend, now, fleet())
  assert.equal(peers[0]!.excluded, 'busy')
  assert.equal(peers[0]!.max_conns, 10)
  assert.equal(peers[0]!.fleet?.lease?.used_up, true)
  assert.match(
    text,
    / {2}a: none, busy: its lease of 3 of max_conns 10 for the fleet is used up; 3 in flight of 10\n/,
  )
})

test('a peer that is full by its own limit, or down, is not told to be so by its lease', () => {
  const { backend, conns, at } = burdened()
  const numbers = backend.upstream.zone.peers
  numbers.lease[at] = 11
  conns[at] = 10
  const full = explainUpstream(backend, now, fleet())
  assert.equal(full.peers[0]!.fleet?.lease?.used_up, false)
  assert.match(full.text, / a: none, busy; 10 in flight of 10\n/)
  numbers.lease[at] = 4
  numbers.barred[at] = 1
  const down = explainUpstream(backend, now, fleet())
  assert.match(down.text, / a: none, down; 10 in flight of 10\n/)
})

test('an explanation of a group that nobody shares is as without a fleet', () => {
  const [, own] = groups()
  assert.deepEqual(explainUpstream(own!, now, partly()), explainUpstream(own!, now))
  assert.equal(explainUpstream(own!, now).text.includes('fleet'), false)
})

test('an explanation says that the fleet cannot be reached, and nothing of an error can move a cursor', () => {
  const backend = group('shared', { a: {} })
  const silent = { members: 0, age: undefined, resets: 0 }
  const last = (over: Partial<FleetFacts>) =>
    explainUpstream(backend, now, fleet({ upstream: () => silent, ...over }))
      .text.split('\n')
      .at(-2)
  assert.equal(
    last({ up: false, error: 'ERR \u001b[2J' }),
    "  fleet: cannot be reached (ERR \\x1b[2J); balancing on this instance's view only",
  )
  assert.equal(last({}), '  fleet: instances not known yet, nothing heard yet')
})
