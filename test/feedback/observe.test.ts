import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { type PeerStateEvent, peerStateChannel } from '../../feedback/channels.ts'
import { latencyBucketsMs, peerFields, sessionBucketsMs } from '../../feedback/fields.ts'
import { begin, deny, measured, observe, observeRequest } from '../../feedback/observe.ts'
import { Attempt, endings } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import { attemptReasons, denialReasons } from '../../feedback/reasons.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import type { Column } from '../../feedback/zone-numbers.ts'
import { attempted, chosen, type End, ended } from '../support/attempts.ts'
import { callFor } from '../support/call.ts'
import { Clock } from '../support/clock.ts'
import { group } from '../support/peers.ts'
import { fc } from '../support/property.ts'

const learning: Learning = { mode: 'header', factor: 0.9, errors: 3, decay: 10_000, account: undefined }

/** The histogram of one slot as Prometheus wants it: in seconds, and every bucket with those below it. */
function read(counts: readonly Column[], sum: Column, index: number) {
  let total = 0
  const buckets = counts.map((column, i): [le: number, count: number] => {
    total += column[index]!
    return [(latencyBucketsMs[i] ?? Number.POSITIVE_INFINITY) / 1000, total]
  })
  return { buckets, sum: sum[index]! / 1000 }
}

/** Every number of a peer and its group, for comparison. */
function numbers({ zone, index }: Peer): number[] {
  const columns = [
    ...peerFields.map((field) => zone.peers[field]),
    ...zone.reasons,
    ...zone.statuses,
    ...zone.grpcStatuses,
    ...zone.headerHistogram,
    ...zone.responseHistogram,
  ]
  return [...columns.map((column) => column[index]!), ...zone.group]
}

/** Counted so far, by reason: `refused: 2`. */
function reasons({ zone, index }: Peer): string {
  const seen = attemptReasons.map((reason, r): [string, number] => [reason, zone.reasons[r]![index]!])
  return seen.flatMap(([reason, n]) => (n > 0 ? [`${reason}: ${n}`] : [])).join(', ')
}

/** Statuses seen so far: `200: 1, xxx: 2`. */
function statuses({ zone, index }: Peer): string {
  const last = zone.statuses.length - 1
  return zone.statuses
    .flatMap((column, i) => (column[index]! > 0 ? [`${i === last ? 'xxx' : 100 + i}: ${column[index]}`] : []))
    .join(', ')
}

test('a choice counts the attempt and one request in progress', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  const before = Date.now()
  chosen(upstream, peer, 1000)
  chosen(upstream, peer, 1001)
  const { conns, selected, selectedWallAt, checkedAt } = peer.zone.peers
  assert.deepEqual([conns[0], selected[0], checkedAt[0]], [2, 2, 1001])
  assert.ok(selectedWallAt[0]! >= before && selectedWallAt[0]! <= Date.now())
  assert.equal(upstream.zone.get('tries'), 2)
  assert.deepEqual([conns[1], selected[1]], [0, 0])
})

test('beginning an attempt twice counts it once', () => {
  const upstream = group([1])
  const attempt = chosen(upstream, upstream.peers[0]!, 1000)
  begin(attempt, 1001)
  assert.equal(upstream.zone.peers.conns[0], 1)
  assert.equal(upstream.zone.get('tries'), 1)
})

test('a second report of the same end changes nothing', () => {
  const upstream = group([1, 1], { learning })
  const peer = upstream.peers[0]!
  for (const ending of endings) {
    const attempt = chosen(upstream, peer, 1000)
    attempt.peerStatus = 200
    attempt.bytesSent = 5
    ended(attempt, ending, 1010)
    const once = numbers(peer)
    ended(attempt, ending, 1020)
    measured(attempt, undefined, 1020)
    assert.deepEqual(numbers(peer), once, ending)
  }
})

test('an entry that says that nobody was eligible counts for no peer', () => {
  const upstream = group([1])
  const before = numbers(upstream.peers[0]!)
  const attempt = new Attempt(upstream, undefined, 1000, '')
  begin(attempt, 1000)
  measured(attempt, undefined, 1000)
  ended(attempt, 'no_live', 1000)
  assert.deepEqual(numbers(upstream.peers[0]!), before)
  assert.equal(attempt.responseMs, 0)
})

// What each ending means for passive health: a failure, a success that forgets old failures, or nothing.
const meanings: readonly (readonly [End, 'failure' | 'success' | 'nothing'])[] = [
  ['ok', 'success'],
  ['error', 'failure'],
  ['timeout', 'failure'],
  ['invalid_header', 'failure'],
  ['http', 'failure'],
  [{ ending: 'http', failed: false, next: true, reason: 'http_404', peerStatus: 404 }, 'success'],
  [{ ending: 'http', failed: true, reason: 'http_503', peerStatus: 503 }, 'failure'],
  [{ ending: 'error', reason: 'body_cut', peerStatus: 200 }, 'failure'],
  [{ ending: 'timeout', reason: 'body_timeout', peerStatus: 200 }, 'failure'],
  [{ ending: 'aborted', reason: 'client_abort' }, 'nothing'],
  [{ ending: 'aborted', reason: 'client_abort', peerStatus: 200 }, 'nothing'],
  [{ ending: 'stale', reason: 'stale' }, 'nothing'],
  // This machine could not even try.
  [{ ending: 'error', reason: 'unreachable', failed: false }, 'nothing'],
]

for (const [end, meaning] of meanings) {
  const name = typeof end === 'string' ? end : `${end.ending}${end.reason ? ` (${end.reason})` : ''}`
  test(`${name} is ${meaning === 'nothing' ? 'neither failure nor success' : `a ${meaning}`} of the peer`, () => {
    const upstream = group([{ max_fails: 5, fail_timeout: 1000 }, 1])
    const peer = upstream.peers[0]!
    attempted(upstream, peer, 'error', 1000)
    attempted(upstream, peer, 'error', 1000)
    attempted(upstream, peer, end, 5000)
    assert.equal(peer.zone.peers.fails[0], { failure: 3, success: 0, nothing: 2 }[meaning])
    assert.equal(peer.zone.peers.failsTotal[0], meaning === 'failure' ? 3 : 2)
    assert.equal(peer.zone.peers.conns[0], 0)
  })
}

test('counts each attempt under its reason, and those without one as plain successes', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  attempted(upstream, peer, 'ok', 1000)
  attempted(upstream, peer, { ending: 'ok', peerStatus: 500 }, 1000)
  attempted(upstream, peer, { ending: 'error', reason: 'refused' }, 1000)
  attempted(upstream, peer, { ending: 'error', reason: 'refused' }, 1000)
  attempted(upstream, peer, { ending: 'aborted', reason: 'client_abort' }, 1000)
  assert.equal(peer.zone.peers.succeeded[0], 2)
  assert.equal(reasons(peer), 'refused: 2, client_abort: 1')
})

test('every attempt that has ended is a plain success or has a reason', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  for (const reason of [undefined, ...attemptReasons]) {
    attempted(upstream, peer, { ending: reason ? 'error' : 'ok', ...(reason ? { reason } : {}) }, 1000)
  }
  const { selected, succeeded } = peer.zone.peers
  const withReason = peer.zone.reasons.reduce((sum, column) => sum + column[0]!, 0)
  assert.equal(selected[0], succeeded[0]! + withReason)
})

test('counts statuses one by one from 100 to 599, all others together, and none where none came', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  for (const peerStatus of [99, 100, 200, 200, 503, 599, 600, 999]) {
    attempted(upstream, peer, { ending: 'ok', peerStatus }, 1000)
  }
  attempted(upstream, peer, { ending: 'http', next: true, reason: 'http_503', peerStatus: 503 }, 1000)
  attempted(upstream, peer, { ending: 'error', reason: 'refused' }, 1000)
  assert.equal(statuses(peer), '100: 1, 200: 2, 503: 2, 599: 1, xxx: 3')
})

test('counts statuses of gRPC one by one, and none where a call has ended without one', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  for (const grpcStatus of [0, 0, 14, 16]) {
    attempted(upstream, peer, { ending: 'ok', peerStatus: 200, grpcStatus }, 1000)
  }
  attempted(upstream, peer, { ending: 'ok', peerStatus: 200 }, 1000)
  attempted(upstream, peer, { ending: 'aborted', reason: 'client_abort', peerStatus: 200 }, 1000)
  attempted(upstream, peer, { ending: 'error', reason: 'refused' }, 1000)
  const seen = peer.zone.grpcStatuses.map((column) => column[peer.index])
  assert.deepEqual(seen, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1])
  assert.equal(statuses(peer), '200: 6')
})

test('adds up the bytes of all attempts, failed ones too', () => {
  const upstream = group([1, 1])
  const peer = upstream.peers[0]!
  for (const ending of ['ok', 'error', 'aborted'] as const) {
    const attempt = chosen(upstream, peer, 1000)
    attempt.bytesSent = 100
    attempt.bytesReceived = 1
    ended(attempt, ending, 1010)
  }
  assert.deepEqual([peer.zone.peers.bytesSent[0], peer.zone.peers.bytesReceived[0]], [300, 3])
})

/** An attempt at the first peer whose header comes after 10 ms, and which ends after 30. */
function timed(upstream: Upstream, end: End, { status = 200, accepted = true } = {}): void {
  const attempt = chosen(upstream, upstream.peers[0]!, 1000)
  attempt.peerStatus = status
  attempt.headerMs = 10
  if (accepted) {
    // As the proxy does it: judged by the header first, and by the end of the body later.
    const listed = typeof end !== 'string' && end.ending === 'http'
    attempt.failed = listed && end.failed !== false
    attempt.ending = listed ? 'http' : 'ok'
    measured(attempt, undefined, 1010)
    attempt.ending = undefined
  }
  ended(attempt, end, 1030)
}

// Which attempts teach the averages (ms; 0 is nothing learnt) and are counted by the histograms.
const times: readonly (readonly [string, End, { status?: number; accepted?: boolean }, string])[] = [
  ['a whole answer', 'ok', {}, 'header 10 of 1, response 30 of 1'],
  ['a 5xx that is not listed', 'ok', { status: 500 }, 'header 10 of 1, response 30 of 1'],
  [
    'a listed status passed on for want of tries',
    { ending: 'http', failed: true, reason: 'http_503' },
    { status: 503 },
    'header 0 of 1, response 0 of 1',
  ],
  [
    'a listed status handed on to another peer',
    { ending: 'http', failed: true, next: true, reason: 'http_503' },
    { status: 503, accepted: false },
    'header 0 of 1, response 0 of 0',
  ],
  ['an answer that a page of our own replaces', 'ok', { accepted: false }, 'header 0 of 1, response 0 of 0'],
  ['a body cut off', { ending: 'error', reason: 'body_cut' }, {}, 'header 10 of 1, response 0 of 0'],
  [
    'a body that stalls',
    { ending: 'timeout', reason: 'body_timeout' },
    {},
    'header 10 of 1, response 0 of 0',
  ],
  [
    'a client that leaves',
    { ending: 'aborted', reason: 'client_abort' },
    {},
    'header 10 of 1, response 0 of 0',
  ],
  ['a tunnel', 'ok', { status: 101 }, 'header 10 of 1, response 0 of 0'],
]

for (const [name, end, more, expected] of times) {
  test(`of ${name} is learnt: ${expected}`, () => {
    const upstream = group([1, 1])
    timed(upstream, end, more)
    const { zone } = upstream
    const header = read(zone.headerHistogram, zone.headerSum, 0).buckets.at(-1)![1]
    const response = read(zone.responseHistogram, zone.responseSum, 0).buckets.at(-1)![1]
    const { headerTime, responseTime } = zone.peers
    assert.equal(`header ${headerTime[0]} of ${header}, response ${responseTime[0]} of ${response}`, expected)
  })
}

test('an attempt that failed before its header teaches no time', () => {
  const upstream = group([1, 1])
  for (const ending of ['error', 'timeout', 'aborted', 'stale'] as const) {
    attempted(upstream, upstream.peers[0]!, ending, 1000)
  }
  const { headerTime, responseTime } = upstream.zone.peers
  assert.deepEqual([headerTime[0], responseTime[0]], [0, 0])
})

test('what this machine could not even try lowers no rate of success', () => {
  const upstream = group([1, 1], { learning })
  const { ok, waiting, answeredAt } = upstream.zone.peers
  attempted(upstream, upstream.peers[0]!, { ending: 'error', reason: 'unreachable', failed: false }, 1000)
  assert.deepEqual([ok[0], waiting[0], answeredAt[0]], [1, 0, 0])
  attempted(upstream, upstream.peers[0]!, { ending: 'error', reason: 'unreachable' }, 1000)
  assert.equal(ok[0], 0.9)
})

test('averages move by response_time_factor and keep fractions of a millisecond', () => {
  const upstream = group([1, 1])
  timed(upstream, 'ok')
  const attempt = chosen(upstream, upstream.peers[0]!, 2000)
  measured(attempt, undefined, 2006)
  ended(attempt, 'ok', 2020.5)
  const { headerTime, responseTime } = upstream.zone.peers
  assert.equal(headerTime[0], 10 * 0.9 + 6 * (1 - 0.9))
  assert.equal(responseTime[0], 30 * 0.9 + 20.5 * (1 - 0.9))
  assert.deepEqual([attempt.headerMs, attempt.responseMs], [6, 20.5])
})

test('keeps the time that the caller has measured', () => {
  const upstream = group([1, 1])
  const attempt = chosen(upstream, upstream.peers[0]!, 1000)
  attempt.responseMs = 7
  ended(attempt, 'ok', 1050)
  assert.equal(attempt.responseMs, 7)
})

test('a time that equals a bound of the histogram lies below it', () => {
  const upstream = group([1, 1])
  for (const ms of [0, 1, 1.5, 60_000, 60_001]) {
    const attempt = chosen(upstream, upstream.peers[0]!, 1000)
    measured(attempt, undefined, 1000 + ms)
    ended(attempt, 'ok', 1000 + ms)
  }
  const { buckets, sum } = read(upstream.zone.headerHistogram, upstream.zone.headerSum, 0)
  const at = (bound: number) => buckets.find(([le]) => le === bound)![1]
  assert.deepEqual([at(0.001), at(0.0025), at(30), at(60), at(Number.POSITIVE_INFINITY)], [2, 3, 3, 4, 5])
  assert.equal(sum, (0 + 1 + 1.5 + 60_000 + 60_001) / 1000)
})

test('how long sessions last is counted in wider buckets, and their tracks are compared by the first byte', () => {
  const upstream = group([1, { track: 'canary' }], { kind: 'stream', name: 'stream/db' })
  const peer = upstream.peers[0]!
  const attempt = chosen(upstream, peer, 1000)
  measured(attempt, undefined, 1025)
  ended(attempt, 'ok', 1000 + 7_200_000)
  observeRequest(callFor('/', { status: 200, attempts: [attempt], startedAt: 1000, endedAt: 7_201_000 }))
  const track = upstream.tracks.get('stable')!
  // Longer than an hour, and no longer than four.
  const place = sessionBucketsMs.indexOf(14_400_000)
  assert.equal(upstream.zone.responseHistogram[place]![peer.index], 1)
  assert.equal(track.duration(place), 1)
  assert.equal(track.get('requestMs'), 7_200_000)
  const minute = Math.floor(Date.now() / 60_000)
  const times = track.reservoir!.minutes(minute - 1, minute).flatMap(({ times }) => [...times])
  assert.deepEqual(times, [25])
})

test('counts denials of the group by reason', () => {
  const { zone } = group([1])
  const upstream = group([1], { name: 'other' })
  deny(upstream, 'budget')
  deny(upstream, 'budget')
  deny(upstream, 'no_live')
  const counted = denialReasons.flatMap((reason, d) =>
    upstream.zone.denials[d]! > 0 ? [`${reason}: ${upstream.zone.denials[d]}`] : [],
  )
  assert.deepEqual(counted, ['budget: 2', 'no_live: 1'])
  assert.ok(zone.denials.every((n) => n === 0))
})

const heard: PeerStateEvent[] = []
const hear = (event: unknown) => {
  // The channel has one kind of payload.
  heard.push(event as PeerStateEvent)
}
afterEach(() => {
  peerStateChannel.unsubscribe(hear)
  heard.length = 0
})

/** What was heard: `a unavailable 1 0, a up 0 5000` are peer, state, failures and time away. */
function story(): string {
  return heard.map((e) => `${e.peer.name} ${e.state} ${e.fails} ${e.downtimeMs}`).join(', ')
}

test('counts failures that a client did not see, and none of those that it did', () => {
  const upstream = group([1, 1, 1])
  /** A request with these endings of its attempts. */
  const asked = (status: number, ...ends: readonly End[]) => {
    const attempts = ends.map((end, i) => attempted(upstream, upstream.peers[i]!, end, i))
    observeRequest(callFor('/', { status, attempts }))
    const { stable } = Object.fromEntries(upstream.tracks)
    return `${stable!.get('rescued')} ${stable!.get('hidden')}`
  }
  assert.equal(asked(200, 'ok'), '0 0')
  assert.equal(asked(200, 'error', 'timeout', 'ok'), '1 2')
  // A kept connection that was closed says nothing of the peer.
  assert.equal(asked(200, 'stale', 'ok'), '1 2')
  assert.equal(asked(502, 'error', 'error'), '1 2')
  assert.equal(asked(499, 'error', 'aborted'), '1 2')
  // Its head was passed on as 200, and then it broke off.
  const cut: End = { ending: 'error', reason: 'body_cut' }
  assert.equal(asked(200, 'error', cut), '1 2')
  assert.equal(asked(404, 'http', 'ok'), '2 3')
})

test("a failure is its track's, whichever track makes it good", () => {
  const upstream = group([1, { track: 'canary' }, { track: 'canary' }])
  const [stable, first, second] = upstream.peers
  const attempts = [
    attempted(upstream, first!, 'error', 0),
    attempted(upstream, second!, { ending: 'http', peerStatus: 503 }, 1),
    attempted(upstream, stable!, { ending: 'ok', peerStatus: 200 }, 2),
  ]
  observeRequest(callFor('/', { status: 200, attempts }))
  const told = Array.from(upstream.tracks.values(), (track) => [
    track.name,
    ...(['rescued', 'hidden', 'judged', 'bad'] as const).map((counter) => track.get(counter)),
  ])
  assert.deepEqual(told, [
    ['stable', 0, 0, 1, 0],
    ['canary', 1, 2, 2, 2],
  ])
})

test("a kept connection that was closed is its track's error where the request could not be sent again", () => {
  const upstream = group([1])
  const [peer] = upstream.peers
  const stable = upstream.tracks.get('stable')!
  attempted(upstream, peer!, { ending: 'stale', reason: 'stale', resent: true }, 0)
  assert.deepEqual([stable.get('judged'), stable.get('bad')], [0, 0])
  attempted(upstream, peer!, { ending: 'stale', reason: 'stale' }, 1)
  assert.deepEqual([stable.get('judged'), stable.get('bad')], [1, 1])
  attempted(upstream, peer!, 'aborted', 2)
  attempted(upstream, peer!, { ending: 'ok', peerStatus: 500 }, 3)
  assert.deepEqual([stable.get('judged'), stable.get('bad')], [2, 2])
})

test('tells once that a peer is set aside, and once that it is back', () => {
  peerStateChannel.subscribe(hear)
  const upstream = group([{ max_fails: 2, fail_timeout: 1000 }, 1])
  const peer = upstream.peers[0]!
  const clock = new Clock()
  const script: [number, End][] = [
    [0, 'error'],
    [1, 'error'],
    [2, 'error'],
    [1002, 'error'],
    [1500, { ending: 'aborted', reason: 'client_abort' }],
    [2002, 'ok'],
    [2003, 'ok'],
  ]
  for (const [at, end] of script) attempted(upstream, peer, end, clock.now() + at)
  assert.equal(story(), 'a unavailable 2 0, a up 0 2001')
  assert.equal(heard[0]!.upstream, upstream)
})

test('tells nothing of a peer that is alone: it is never set aside', () => {
  peerStateChannel.subscribe(hear)
  const upstream = group([{ fail_timeout: 1000 }])
  attempted(upstream, upstream.peers[0]!, 'error', 1000)
  attempted(upstream, upstream.peers[0]!, 'ok', 5000)
  assert.equal(story(), '')
})

test('whatever the order of events, requests in progress return to 0 and are never negative', () => {
  const step = fc.record({
    act: fc.constantFrom('begin', 'measure', 'end', 'end', 'again'),
    which: fc.nat(19),
    peer: fc.nat(2),
    ending: fc.constantFrom(...endings.filter((ending) => ending !== 'no_live')),
    failed: fc.boolean(),
    wait: fc.integer({ min: 0, max: 2000 }),
  })
  const mode = fc.constantFrom(undefined, learning, { ...learning, mode: 'last_byte' as const })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), mode, (steps, learning) => {
      const upstream = group([{ max_fails: 2, fail_timeout: 1000 }, { slow_start: 3000 }, 1], { learning })
      const { conns, waiting, startSum } = upstream.zone.peers
      const clock = new Clock()
      const running: Attempt[] = []
      const over: Attempt[] = []
      const sound = () => {
        const at = (peer: Peer) => running.filter((attempt) => attempt.peer === peer).length
        for (const peer of upstream.peers) {
          assert.equal(conns[peer.index], at(peer))
          assert.ok(waiting[peer.index]! >= 0 && waiting[peer.index]! <= conns[peer.index]!)
        }
      }
      for (const { act, which, peer, ending, failed, wait } of steps) {
        clock.move(wait)
        if (act === 'begin') running.push(chosen(upstream, upstream.peers[peer]!, clock.now()))
        const attempt = running[which % running.length]
        if (act === 'measure' && attempt) {
          attempt.failed = failed
          measured(attempt, undefined, clock.now())
        }
        if (act === 'end' && attempt) {
          running.splice(running.indexOf(attempt), 1)
          over.push(attempt)
          ended(attempt, { ending, failed }, clock.now())
        }
        if (act === 'again' && over.length > 0) observe(over[which % over.length]!, undefined, clock.now())
        sound()
      }
      for (const attempt of running.splice(0)) ended(attempt, 'aborted', clock.now())
      sound()
      assert.deepEqual([...conns.subarray(0, 3), ...waiting.subarray(0, 3)], [0, 0, 0, 0, 0, 0])
      assert.deepEqual([...startSum.subarray(0, 3)], [0, 0, 0])
    }),
    { numRuns: 300, seed: 1 },
  )
})
