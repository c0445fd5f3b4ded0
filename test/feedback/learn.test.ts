import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { learnBegin, learnEnd, learnHeader, waitingAge } from '../../feedback/learn.ts'
import { endLesson, headerLesson } from '../../feedback/lesson.ts'
import { Attempt, type Ending } from '../../feedback/outcome.ts'
import { totalShare } from '../../feedback/share-tree.ts'
import type { Learning, Upstream } from '../../feedback/upstream.ts'
import { Clock } from '../support/clock.ts'
import { group } from '../support/peers.ts'

const usual: Learning = { mode: 'last_byte', factor: 0.9, errors: 3, decay: 0, account: undefined }

function near(found: number | undefined, expected: number): void {
  assert.ok(
    Math.abs(found! - expected) < 1e-9 * Math.max(1, Math.abs(expected)),
    `${found} and not ${expected}`,
  )
}

interface End {
  readonly ending?: Ending
  readonly status?: number
  readonly failed?: boolean
  readonly call?: Call | undefined
}

/** A group of two, of which the first peer is taught. */
class School {
  readonly clock = new Clock()
  readonly upstream: Upstream

  constructor(learning: Partial<Learning> = {}, peers = 2) {
    const ones = Array.from({ length: peers }, () => 1)
    this.upstream = group(ones, { learning: { ...usual, ...learning } })
  }

  column(name: 'avg' | 'ok' | 'waiting' | 'startSum' | 'answeredAt'): number {
    return this.upstream.zone.peers[name][0]!
  }

  begin(drifted = 0, peer = 0): Attempt {
    const attempt = new Attempt(this.upstream, this.upstream.peers[peer], this.clock.now(), '')
    attempt.drifted = drifted
    learnBegin(attempt, this.clock.now())
    return attempt
  }

  header(attempt: Attempt, status = 200, call: Call | undefined = new Call()): void {
    attempt.peerStatus = status
    attempt.headerMs = this.clock.now() - attempt.startedAt
    attempt.ending = attempt.failed ? 'http' : 'ok'
    const now = this.clock.now()
    learnHeader(attempt, headerLesson(attempt, call, now), now)
  }

  end(attempt: Attempt, { ending = 'ok', status, failed, call = new Call() }: End = {}): void {
    const broken = ending === 'error' || ending === 'timeout' || ending === 'invalid_header'
    attempt.ending = ending
    attempt.failed = failed ?? (broken || ending === 'http')
    if (!broken && attempt.peerStatus === undefined) attempt.peerStatus = status ?? 200
    attempt.responseMs = this.clock.now() - attempt.startedAt
    const now = this.clock.now()
    learnEnd(attempt, endLesson(attempt, call, now), now)
  }

  /** One attempt of so many milliseconds. */
  one(ms: number, end: End = {}, drifted = 0, peer = 0): void {
    const attempt = this.begin(drifted, peer)
    this.clock.move(ms)
    this.end(attempt, end)
  }
}

test('a calm average of times does not slow down the rate of success', () => {
  const school = new School({ factor: 0.98 })
  school.one(100)
  school.one(200)
  assert.ok(Math.abs(school.column('avg') - 102) < 1e-9)
  school.one(1, { ending: 'http', status: 503 })
  assert.ok(Math.abs(school.column('ok') - 0.9) < 1e-9)
})

test('learns the times of successes', () => {
  const school = new School()
  school.one(20)
  assert.equal(school.column('avg'), 20)
  school.one(120)
  near(school.column('avg'), 30)
  assert.equal(school.column('ok'), 1)
  assert.equal(school.column('answeredAt'), school.clock.now())
})

test('learns times below a millisecond', () => {
  const school = new School()
  school.one(0.25)
  school.one(0.35)
  near(school.column('avg'), 0.26)
})

test('takes 4xx for successes, and 5xx but 501 and 429 for failures though they were passed through', () => {
  for (const [status, good] of [
    [200, true],
    [304, true],
    [404, true],
    [499, true],
    [501, true],
    [429, false],
    [500, false],
    [503, false],
    [599, false],
  ] as const) {
    const school = new School()
    school.one(100)
    school.one(1, { status })
    near(school.column('ok'), good ? 1 : 0.9)
    near(school.column('avg'), good ? 90.1 : 100)
  }
})

test('never learns a time from a failure, however fast', () => {
  for (const ending of ['error', 'invalid_header', 'http'] as const) {
    const school = new School()
    school.one(100)
    school.one(0.1, { ending })
    assert.equal(school.column('avg'), 100)
    near(school.column('ok'), 0.9)
    assert.equal(school.column('answeredAt'), school.clock.now())
  }
})

test('learns a listed status as a failure whatever it is', () => {
  const school = new School()
  school.one(100)
  school.one(1, { ending: 'http', status: 404, failed: false })
  near(school.column('ok'), 0.9)
  assert.equal(school.column('avg'), 100)
})

test('learns the time waited from a time-out', () => {
  const school = new School()
  school.one(100)
  school.one(1100, { ending: 'timeout' })
  near(school.column('avg'), 200)
  near(school.column('ok'), 0.9)
})

test('learns nothing of a stale connection, of no peer and of what this machine could not try', () => {
  const school = new School()
  school.one(100)
  const before = school.column('answeredAt')
  school.one(1, { ending: 'stale' })
  school.one(1, { ending: 'error', failed: false })
  const nobody = new Attempt(school.upstream, undefined, school.clock.now(), '')
  nobody.ending = 'no_live'
  learnBegin(nobody, school.clock.now())
  const now = school.clock.now()
  learnEnd(nobody, endLesson(nobody, undefined, now), now)
  assert.deepEqual([school.column('avg'), school.column('ok'), school.column('answeredAt')], [100, 1, before])
  assert.equal(school.column('waiting'), 0)
  assert.equal(school.upstream.zone.get('answers'), 1)
})

test('takes the wait of a client that left for a lower bound', () => {
  const school = new School()
  school.one(100)
  school.one(90, { ending: 'aborted' })
  assert.equal(school.column('avg'), 100)
  school.one(300, { ending: 'aborted' })
  near(school.column('avg'), 120)
  assert.equal(school.column('ok'), 1)
})

test('holds a wait at a peer without an average against the mean of the group', () => {
  const school = new School()
  school.one(500, { ending: 'aborted' })
  assert.equal(school.column('avg'), 0)
  school.upstream.zone.set('lastAverage', 100)
  school.one(90, { ending: 'aborted' })
  assert.equal(school.column('avg'), 0)
  school.one(500, { ending: 'aborted' })
  assert.equal(school.column('avg'), 500)
})

test('learns at the header in header mode, and of the end only a break', () => {
  const school = new School({ mode: 'header' })
  const attempt = school.begin()
  school.clock.move(10)
  school.header(attempt)
  assert.deepEqual([school.column('avg'), school.column('waiting')], [10, 0])
  school.clock.move(60_000)
  school.end(attempt)
  assert.equal(school.column('avg'), 10)
  assert.equal(school.upstream.zone.get('answers'), 1)

  for (const ending of ['error', 'timeout'] as const) {
    const cut = school.begin()
    school.clock.move(10)
    school.header(cut)
    const { avg, ok } = { avg: school.column('avg'), ok: school.column('ok') }
    school.clock.move(10_000)
    school.end(cut, { ending })
    assert.equal(school.column('avg'), avg)
    near(school.column('ok'), 0.9 * ok)
  }
})

test('counts a failed answer once in header mode, though its body breaks as well', () => {
  const school = new School({ mode: 'header' })
  const attempt = school.begin()
  school.clock.move(1)
  school.header(attempt, 503)
  school.end(attempt, { ending: 'error' })
  near(school.column('ok'), 0.9)
  assert.equal(school.column('avg'), 0)
})

test('learns an answer that was dropped for a page of our own at its end', () => {
  const school = new School({ mode: 'header' })
  const attempt = school.begin()
  school.clock.move(30)
  attempt.headerMs = 30
  school.clock.move(5)
  school.end(attempt, { status: 404 })
  assert.equal(school.column('avg'), 30)
})

test('says nothing of a client that leaves after the header in header mode', () => {
  const school = new School({ mode: 'header' })
  const attempt = school.begin()
  school.clock.move(10)
  school.header(attempt)
  school.clock.move(1000)
  school.end(attempt, { ending: 'aborted' })
  assert.deepEqual([school.column('avg'), school.column('ok')], [10, 1])
})

test('does not take the life of a tunnel for a time', () => {
  const school = new School()
  school.one(100)
  const attempt = school.begin()
  school.clock.move(5)
  school.header(attempt, 101)
  assert.equal(school.column('waiting'), 0)
  school.clock.move(3_600_000)
  school.end(attempt)
  assert.equal(school.column('avg'), 100)
  assert.equal(school.column('ok'), 1)
})

test('tells how long what waits has waited', () => {
  const school = new School()
  const [peer] = school.upstream.peers
  const first = school.begin()
  school.clock.move(100)
  const second = school.begin()
  school.clock.move(50)
  assert.equal(waitingAge(peer!, school.clock.now()), 200)
  school.end(first)
  assert.equal(waitingAge(peer!, school.clock.now()), 50)
  school.end(second, { ending: 'aborted' })
  assert.equal(waitingAge(peer!, school.clock.now()), 0)
  assert.deepEqual([school.column('waiting'), school.column('startSum')], [0, 0])
})

test('ends the wait at the header in header mode and at the end in last_byte mode', () => {
  for (const [mode, waits] of [
    ['header', 0],
    ['last_byte', 1],
  ] as const) {
    const school = new School({ mode })
    const attempt = school.begin()
    school.header(attempt)
    assert.equal(school.column('waiting'), waits)
    school.end(attempt)
    school.end(attempt)
    assert.equal(school.column('waiting'), 0)
  }
})

test('learns only of calls that the account lets count, and counts their waits all the same', () => {
  const school = new School({ account: (call) => call.args })
  const call = new Call()
  for (const [args, learnt] of [
    ['', 0],
    ['0', 0],
    ['1', 50],
  ] as const) {
    call.args = args
    const attempt = school.begin()
    school.clock.move(50)
    assert.equal(school.column('waiting'), 1)
    school.end(attempt, { call })
    assert.equal(school.column('avg'), learnt)
    assert.equal(school.column('waiting'), 0)
  }
  call.args = '0'
  school.one(500, { ending: 'timeout', call })
  school.one(5, { ending: 'error', call })
  assert.deepEqual([school.column('avg'), school.column('ok')], [50, 1])
  const attempt = school.begin()
  attempt.ending = 'ok'
  const now = school.clock.now()
  learnEnd(attempt, endLesson(attempt, undefined, now), now)
  assert.equal(school.column('avg'), 50)
})

test('goes on from the average that the pick had drifted to', () => {
  const school = new School()
  school.one(100)
  school.one(20, {}, 40)
  near(school.column('avg'), 38)
  school.one(5, { ending: 'error' }, 60)
  // A failure leaves the average that the pick went by, and not a better one from before.
  assert.equal(school.column('avg'), 60)
})

test('does not go on from a drifted average where another answer has come since', () => {
  const school = new School()
  school.one(100)
  const slow = school.begin(40)
  school.one(80)
  near(school.column('avg'), 98)
  school.clock.move(20)
  school.end(slow)
  near(school.column('avg'), 98.2)
})

test('lets an answer after a gap count for more, by time and by the answers of the others', () => {
  const school = new School({ decay: 10_000 })
  school.one(100)
  school.clock.move(20_000)
  // Nobody else was asked: the group is quiet, and nothing has aged.
  school.one(50)
  near(school.column('avg'), 95)
  for (let i = 0; i < 300; i++) school.one(1, {}, 0, 1)
  school.clock.move(20_000)
  school.one(15)
  // 300 answers to two peers are a staleness of 1.5, which is less than the 2 of the time.
  const keep = Math.exp(-301 / 200)
  assert.ok(Math.abs(school.column('avg') - (95 * keep + 15 * (1 - keep))) < 0.5)
})

test('takes late answers for no better evidence than others, for nobody had stopped asking', () => {
  const school = new School({ decay: 10_000 })
  school.one(100)
  const stuck = school.begin()
  for (let i = 0; i < 2000; i++) school.one(2.5, {}, 0, 1)
  school.end(stuck)
  near(school.column('avg'), 100 * 0.9 + 5000 * 0.1)
})

test('lets the rate of success forget as well', () => {
  const school = new School({ decay: 10_000 })
  school.one(1, { ending: 'error' })
  for (let i = 0; i < 2000; i++) school.one(100, {}, 0, 1)
  school.one(50)
  assert.ok(school.column('ok') > 0.99)
})

test('learns to the letter of the plain rule', () => {
  const school = new School({ plain: true, errors: 0 })
  school.one(100)
  school.one(1100, { ending: 'timeout' })
  school.one(5, { ending: 'error' })
  school.one(5, { ending: 'http', status: 503 })
  school.one(500, { ending: 'aborted' })
  assert.equal(school.column('avg'), 100)
  // An answer that is passed on is an answer.
  school.one(10, { status: 503 })
  near(school.column('avg'), 91)
  assert.equal(school.column('ok'), 1)
})

test('keeps the shares of a large group current under the plain rule', () => {
  const school = new School({ plain: true, errors: 0 }, 100)
  const { share, avg } = school.upstream.zone.peers
  for (let i = 0; i < 100; i++) school.one(10, {}, 0, i)
  near(share[7], 0.1)
  near(totalShare(school.upstream.zone), 10)
  school.one(1010, {}, 0, 7)
  near(avg[7], 110)
  near(share[7], 1 / 110)
  // Not below a hundredth of the mean share.
  for (let i = 0; i < 60; i++) school.one(1e6, {}, 0, 7)
  near(share[7], totalShare(school.upstream.zone) / 100 / 100)
})

test('asks for a new mean when a first average is known', () => {
  const school = new School()
  school.upstream.zone.set('medianAt', 5)
  school.one(10)
  assert.equal(school.upstream.zone.get('medianAt'), 0)
})

test('does nothing for a group whose method learns nothing', () => {
  const upstream = group([1])
  const attempt = new Attempt(upstream, upstream.peers[0], 1000, '')
  learnBegin(attempt, 1000)
  assert.equal(attempt.waiting, false)
  attempt.ending = 'ok'
  learnHeader(attempt, headerLesson(attempt, undefined, 1010), 1010)
  learnEnd(attempt, endLesson(attempt, undefined, 1010), 1010)
  const { avg, ok, waiting } = upstream.zone.peers
  assert.deepEqual([avg[0], ok[0], waiting[0]], [0, 1, 0])
})
