import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countRequest, retryBegan } from '../../../feedback/budget.ts'
import { ignore } from '../../../feedback/report.ts'
import { explainUpstream } from '../../../sidecar/admin/explain.ts'
import { adminApp } from '../../../sidecar/admin/server.ts'
import { facts, group, groupOf, now, peer, shadow } from './facts.ts'

const learning = { mode: 'last_byte', factor: 0.9, errors: 3, decay: 10_000, account: undefined } as const

/** What of an explanation is told of each peer. */
function about(explanation: ReturnType<typeof explainUpstream>, keys: readonly string[]): string[] {
  return explanation.peers.map((peer) => {
    const all: Record<string, unknown> = { ...peer }
    return [peer.peer, ...keys.map((key) => String(all[key]))].join(' ')
  })
}

test('each peer has its share, or a word for why it has none', () => {
  const backend = group('backend', {
    a: {},
    b: { down: true },
    c: { max_conns: 1 },
    d: {},
    e: { backup: true },
  })
  const { zone, peers } = backend.upstream
  zone.peers.conns[peers[2]!.index] = 1
  zone.peers.fails[peers[3]!.index] = 1
  zone.peers.checkedAt[peers[3]!.index] = now - 1000
  zone.peers.downstartWallAt[peers[3]!.index] = 1
  const explanation = explainUpstream(backend, now)
  assert.deepEqual(about(explanation, ['share', 'excluded', 'state', 'in_flight']), [
    'a 1 undefined up 0',
    'b 0 down down 0',
    'c 0 busy busy 1',
    'd 0 unavailable unavailable 0',
    'e 1 undefined up 0',
  ])
  assert.equal(
    explanation.text,
    [
      'upstream backend, round_robin',
      '  a: 100.0 %; 0 in flight',
      '  b: none, down; 0 in flight',
      '  c: none, busy; 1 in flight of 1',
      '  d: none, unavailable; 0 in flight, 1 failed, tried again in 9 s',
      '  e: 100.0 % once no primary is ready (backup); 0 in flight',
      '  retries: 0 in 0 requests, 0 waiting',
      '',
    ].join('\n'),
  )
})

test('a backup has its share for real once no primary is ready', () => {
  const { text } = explainUpstream(group('backend', { a: { down: true }, b: { backup: true } }), now)
  assert.match(text, / {2}b: 100\.0 % \(backup\); 0 in flight\n/)
})

test('a method that learns tells what it goes by, and the fair share by expected times', () => {
  const { zone } = group('backend', {}).upstream
  const all = [peer(zone, 'fast'), peer(zone, 'slow')]
  const backend = groupOf(zone, all, { learning })
  const times = new Map([
    ['fast', 10],
    ['slow', 40],
  ])
  zone.peers.avg[all[0]!.index] = 9.87654321
  zone.peers.ok[all[0]!.index] = 0.5
  zone.peers.waiting[all[0]!.index] = 2
  zone.peers.startSum[all[0]!.index] = 2 * now - 250
  const explanation = explainUpstream({ ...backend, expected: ({ name }) => times.get(name) }, now)
  assert.deepEqual(about(explanation, ['avg', 'ok', 'expected', 'waiting_age', 'fair_share']), [
    'fast 9.87654 0.5 10 250 0.8',
    'slow undefined 1 40 0 0.2',
  ])
  assert.match(
    explanation.text,
    /fast: 50\.0 %; 0 in flight, 10 ms expected, 9\.87654 ms on average, 50 % succeed, waited for 250 ms in all\n/,
  )
})

test('the retry budgets of locations are shown with what they look at now', () => {
  const budgets = () => [{ location: '/api/', ratio: 0.2, min: 0.1, window: 10_000 }]
  const backend = group('backend', { a: {} }, { budgets })
  for (let i = 0; i < 10; i += 1) countRequest(backend.upstream, now)
  const line = () => explainUpstream(backend, now).text.split('\n').at(-2)
  assert.equal(
    line(),
    '    /api/: at most 20 % of the requests of 10 s, plus 0.1 a second; 0 of 10 now, another may go',
  )
  for (let i = 0; i < 3; i += 1) retryBegan(backend.upstream, now)
  assert.equal(
    line(),
    '    /api/: at most 20 % of the requests of 10 s, plus 0.1 a second; 3 of 10 now, spent',
  )
  assert.equal(explainUpstream(backend, now).retries.budgets[0]!.allows, false)
})

test('locations with the same retry budget share a line, each named once', () => {
  const same = { ratio: 0.2, min: 10, window: 10_000 }
  const budgets = () => [
    { location: '/', ...same },
    { location: '/api/', ...same },
    { location: '/', ...same },
    { location: '/', ...same, min: 1 },
  ]
  const { text, retries } = explainUpstream(group('backend', { a: {} }, { budgets }), now)
  const lines = text.split('\n').filter((line) => line.includes('at most'))
  assert.deepEqual(
    lines.map((line) => line.trim().replace(/ % .*plus/, '')),
    [
      '/, /api/: at most 20 10 a second; 0 of 0 now, another may go',
      '/: at most 20 1 a second; 0 of 0 now, another may go',
    ],
  )
  assert.equal(retries.budgets.length, 4)
})

test('is served as JSON or as text, and an unknown group is told the names there are', async () => {
  const from = facts({ groups: [group('Shop', { a: {} }), group('http://x/y', { b: {} })] })
  const app = adminApp(from, { readonly: false, local: true, unix: false, report: () => {} })
  const shop = await app.inject('/explain/shop')
  assert.equal(shop.statusCode, 200)
  assert.equal(shop.json().upstream, 'Shop')
  assert.equal(shop.json().peers[0].share, 1)
  assert.equal(shop.json().single, true)
  const text = await app.inject('/explain/Shop?format=text')
  assert.match(text.body, /^upstream Shop, round_robin, a single peer\n/)
  const slashes = await app.inject(`/explain/${encodeURIComponent('http://x/y')}`)
  assert.equal(slashes.json().upstream, 'http://x/y')
  const none = await app.inject('/explain/nope')
  assert.equal(none.statusCode, 404)
  assert.deepEqual(none.json(), { error: 'no upstream "nope"', upstreams: ['Shop', 'http://x/y'] })
  await app.close()
})

test('what a peer reports is told with its age, and why nothing of it counts', () => {
  const value = { name: '$load', read: () => '', orca: false, inverse: false, expire: 60_000 }
  const backend = group('backend', { a: {}, b: {}, c: {} }, { learning: { ...learning, value } })
  const { zone } = backend.upstream
  const { report, reportAt } = zone.peers
  report.set([0.3125, 7])
  reportAt.set([now - 200, now - 60_000])
  ignore(zone, 1, 'negative')
  ignore(zone, 1, 'malformed')
  const { peers, text } = explainUpstream(backend, now)
  assert.deepEqual(
    peers.map((peer) => peer.report),
    [
      { value: 0.3125, age: 200, counts: true, ignored: undefined },
      { value: 7, age: 60_000, counts: false, ignored: 'malformed' },
      { value: undefined, age: undefined, counts: false, ignored: undefined },
    ],
  )
  assert.match(text, / a: .*, reports 0\.3125, 0\.2 s ago\n/)
  assert.match(
    text,
    / b: .*, reported 7, 60\.0 s ago, which does not count, a report was not taken: malformed\n/,
  )
  assert.match(text, / c: .*, reports nothing\n/)
  assert.equal(explainUpstream(group('other', { a: {} }, { learning }), now).peers[0]!.report, undefined)
})

test('a split says what each track gets, what of it went elsewhere, and what backups are left', () => {
  const split = {
    variable: '$cookie_track',
    percents: new Map([
      ['stable', 70],
      ['canary', 10],
      ['blue', 20],
    ]),
    key: '$cookie_id',
  }
  const backend = group(
    'backend',
    { a: {}, b: { track: 'canary' }, c: { track: 'blue', down: true }, d: { backup: true } },
    { split },
  )
  const canary = backend.upstream.tracks.get('canary')!
  canary.add('split', 120)
  canary.add('fallbacks', 3)
  const shares = (primary: readonly number[]) =>
    explainUpstream({ ...backend, shares: () => ({ primary, backup: [1] }) }, now)
  const explanation = shares([0.9, 0.1, 0])
  assert.deepEqual(explanation.split, {
    variable: '$cookie_track',
    key: '$cookie_id',
    tracks: [
      { track: 'stable', percent: 70, share: 0.9, requests: 0, fallbacks: 0 },
      { track: 'canary', percent: 10, share: 0.1, requests: 120, fallbacks: 3 },
      { track: 'blue', percent: 20, share: 0, requests: 0, fallbacks: 0 },
    ],
    left: 0,
  })
  assert.equal(
    explanation.text,
    [
      'upstream backend, round_robin',
      '  a: 90.0 %; 0 in flight',
      '  b (canary): 10.0 %; 0 in flight',
      '  c (blue): none, down; 0 in flight',
      '  d: 100.0 % once no primary is ready (backup); 0 in flight',
      '  split: by $cookie_track, else by percentages of the hash of $cookie_id',
      '    stable: 70 %, now 90 %; 0 requests',
      '    canary: 10 %; 120 requests, 3 of them went elsewhere',
      '    blue: 20 %, nobody is ready, so they go on; 0 requests',
      '  retries: 0 in 0 requests, 0 waiting',
      '',
    ].join('\n'),
  )
  const left = shares([0, 0.1, 0])
  assert.equal(left.split!.left, 0.9)
  assert.match(left.text, /\n {2}d: 90\.0 % \(backup\); 0 in flight\n/)
  assert.match(left.text, /\n {4}stable: 70 %, nobody is ready; 0 requests\n/)
  assert.match(left.text, /\n {4}90 % are left to backups\n/)
})

test('what is fair is so within a track', () => {
  const split = {
    variable: undefined,
    percents: new Map([
      ['stable', 90],
      ['canary', 10],
    ]),
    key: undefined,
  }
  const tracks = ['stable', 'stable', 'canary', 'canary']
  const { zone } = group('backend', {}, { room: 4 }).upstream
  const peers = tracks.map((track, i) => peer(zone, `p${i}`, { track }))
  const backend = groupOf(zone, peers, { split })
  const times = [10, 30, 400, 100]
  const explanation = explainUpstream(
    {
      ...backend,
      expected: ({ index }) => times[index],
      shares: () => ({ primary: [0.45, 0.45, 0.05, 0.05], backup: [] }),
    },
    now,
  )
  assert.deepEqual(about(explanation, ['fair_share']), ['p0 0.675', 'p1 0.225', 'p2 0.02', 'p3 0.08'])
})

test('a shadow says how it would split and what that would take, beside what holds', () => {
  const backend = group('backend', { a: {}, b: {} }, { shadow: shadow() })
  const explanation = explainUpstream(backend, now)
  assert.deepEqual(explanation.shadow, {
    method: 'least_time header best',
    picks: 8,
    same: 0.75,
    picked: 20,
    instead: 15,
    peers: [
      { peer: 'a', share: 0.9, own: 0.5, picks: 5, expected: 12.5 },
      { peer: 'b', share: 0.1, own: 0.5, picks: 5, expected: 12.5 },
    ],
  })
  assert.deepEqual(explanation.text.split('\n').slice(3, 7), [
    '  shadow least_time header best: 10 picks in all',
    '    a: 90.0 % instead of 50.0 %, 50.0 % so far, 12.5 ms expected',
    '    b: 10.0 % instead of 50.0 %, 50.0 % so far, 12.5 ms expected',
    "    8 pairs with the pick that was sent, both peers' times known: 75.0 % fell on the same peer; by these averages 15 ms instead of 20 ms (-25.0 %)",
  ])
})

test('a shadow that has picked nobody yet, and does not estimate, says no more than its shares', () => {
  const none = { picks: 0, same: 0, pickedMs: 0, shadowMs: 0, picksOf: () => 0, expected: () => undefined }
  const backend = group('backend', { a: {}, b: {} }, { shadow: shadow(none) })
  const { shadow: about, text } = explainUpstream(backend, now)
  assert.deepEqual([about!.same, about!.picked, about!.instead], [undefined, undefined, undefined])
  assert.deepEqual(text.split('\n').slice(3, 7), [
    '  shadow least_time header best: 0 picks in all',
    '    a: 90.0 % instead of 50.0 %',
    '    b: 10.0 % instead of 50.0 %',
    '  retries: 0 in 0 requests, 0 waiting',
  ])
})
