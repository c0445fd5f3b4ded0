import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { learnBegin, learnEnd, learnHeader, learnProbe } from '../../feedback/learn.ts'
import { endLesson, headerLesson } from '../../feedback/lesson.ts'
import { Attempt, type Ending } from '../../feedback/outcome.ts'
import { type SignalReason, signalReasons } from '../../feedback/reasons.ts'
import { readValue, reporting } from '../../feedback/report.ts'
import type { Learning, ReportedValue, Upstream } from '../../feedback/upstream.ts'
import { Variables } from '../../feedback/variables.ts'
import { Clock } from '../support/clock.ts'
import { group } from '../support/peers.ts'

function near(found: number | undefined, expected: number): void {
  assert.ok(
    Math.abs(found! - expected) < 1e-9 * Math.max(1, Math.abs(expected)),
    `${found} and not ${expected}`,
  )
}

const values: readonly (readonly [string, number | SignalReason])[] = [
  ['0', 0],
  ['-0', 0],
  [' 12.5\t', 12.5],
  ['.5', 0.5],
  ['5.', 5],
  ['+1e3', 1000],
  ['1e308', 1e100],
  ['1e-320', 0],
  ['', 'absent'],
  ['  ', 'absent'],
  ['-5', 'negative'],
  ['-1e-320', 'negative'],
  ['NaN', 'not_a_number'],
  ['abc', 'not_a_number'],
  ['5 requests', 'not_a_number'],
  ['0x10', 'not_a_number'],
  ['1_000', 'not_a_number'],
  ['Infinity', 'infinite'],
  ['-inf', 'infinite'],
  ['1e309', 'infinite'],
  ['5, 7', 'duplicate'],
  ['9'.repeat(10_000), 'too_long'],
]
for (const [text, expected] of values) {
  test(`of "${text.slice(0, 12)}" as a value: ${expected}`, () => {
    const found = readValue(text)
    assert.equal(found, expected)
    if (typeof found === 'number') assert.ok(Number.isFinite(found))
  })
}

interface Answer {
  /** What the peer says in `X-Load`; undefined: nothing. */
  readonly load?: string
  readonly status?: number
  /** What it says in a trailer of that name. */
  readonly trailer?: string
  readonly ending?: Ending
  readonly failed?: boolean
  /** The request's path; `/learn` is what `$admitted` admits. */
  readonly uri?: string
}

/** A group of two under `feedback`, of which the first peer reports. */
class School {
  readonly clock = new Clock()
  readonly variables = new Variables()
  readonly upstream: Upstream

  constructor(value: Partial<ReportedValue> = {}, learning: Partial<Learning> = {}) {
    const read = this.variables.compile('$upstream_http_x_load$upstream_trailer_x_load')
    this.upstream = group([1, 1], {
      method: 'feedback',
      learning: {
        mode: 'header',
        factor: 0.9,
        errors: 3,
        decay: 0,
        account: undefined,
        value: { name: '$load', read, orca: false, inverse: false, expire: 180_000, ...value },
        ...learning,
      },
    })
  }

  report() {
    return reporting(this.upstream.peers[0]!, this.upstream, this.clock.now())!
  }

  get ok(): number {
    return this.upstream.zone.peers.ok[0]!
  }

  get ignored(): string {
    const { ignored } = this.upstream.zone
    return signalReasons
      .flatMap((reason, i) => (ignored[i]![0]! > 0 ? [`${reason} ${ignored[i]![0]}`] : []))
      .join(', ')
  }

  begin(drifted = 0): { attempt: Attempt; call: Call } {
    const attempt = new Attempt(this.upstream, this.upstream.peers[0], this.clock.now(), '')
    attempt.drifted = drifted
    learnBegin(attempt, this.clock.now())
    const call = new Call()
    call.attempts.push(attempt)
    return { attempt, call }
  }

  /** The header of an accepted answer. */
  header(
    { attempt, call }: { attempt: Attempt; call: Call },
    { load, status = 200, failed = false }: Answer,
  ): void {
    const now = this.clock.now()
    attempt.headers = load === undefined ? [] : ['X-Load', load]
    attempt.peerStatus = status
    attempt.headerMs = now - attempt.startedAt
    attempt.failed = failed
    attempt.ending = failed ? 'http' : 'ok'
    learnHeader(attempt, headerLesson(attempt, call, now), now)
    attempt.ending = undefined
  }

  end(
    { attempt, call }: { attempt: Attempt; call: Call },
    { ending = 'ok', trailer, failed }: Answer = {},
  ): void {
    const now = this.clock.now()
    if (trailer !== undefined) attempt.trailers = ['X-Load', trailer]
    attempt.ending = ending
    attempt.failed = failed ?? (ending !== 'ok' && ending !== 'aborted')
    attempt.responseMs = now - attempt.startedAt
    learnEnd(attempt, endLesson(attempt, call, now), now)
  }

  /** One attempt that takes 10 ms, from beginning to end. */
  one(answer: Answer, drifted = 0): Attempt {
    const both = this.begin(drifted)
    both.call.uri = answer.uri ?? '/'
    this.clock.move(10)
    const { ending = 'ok' } = answer
    if (ending === 'ok' || ending === 'aborted') this.header(both, answer)
    this.end(both, answer)
    return both.attempt
  }
}

test('the first value is the average, later ones move it', () => {
  const school = new School()
  assert.deepEqual(school.report(), { value: undefined, age: undefined, counts: false, ignored: undefined })
  school.one({ load: '10' })
  assert.deepEqual(school.report(), { value: 10, age: 0, counts: true, ignored: undefined })
  school.one({ load: '20' })
  near(school.report().value, 11)
  school.one({ load: '0' })
  near(school.report().value, 9.9)
  school.clock.move(500)
  assert.equal(school.report().age, 500)
})

test('0 is a value like others', () => {
  const school = new School()
  school.one({ load: '0' })
  assert.deepEqual(school.report(), { value: 0, age: 0, counts: true, ignored: undefined })
  school.one({ load: '10' })
  near(school.report().value, 1)
})

test('an average of many zeros is 0 in the end', () => {
  const school = new School()
  school.one({ load: '10' })
  const seen = new Set<number>()
  for (let i = 0; i < 9000; i++) {
    school.one({ load: '0' })
    seen.add(school.report().value!)
  }
  assert.equal(school.report().value, 0)
  assert.ok([...seen].every((value) => value === 0 || value >= 1e-100))
})

test('what is no value is counted by reason, and changes nothing', () => {
  const school = new School()
  school.one({ load: '10' })
  for (const load of ['-5', 'NaN', 'Infinity', 'abc', 'x'.repeat(10_000), '1, 2', undefined, '']) {
    school.one(load === undefined ? {} : { load })
  }
  assert.equal(school.ignored, 'absent 2, not_a_number 2, infinite 1, negative 1, too_long 1, duplicate 1')
  assert.equal(school.report().value, 10)
  assert.equal(school.report().ignored, 'absent')
  assert.equal(school.ok, 1)
})

test('a value is taken at the header, and no second time at the end', () => {
  const school = new School()
  const both = school.begin()
  school.header(both, { load: '10' })
  assert.equal(school.report().value, 10)
  school.end(both, { trailer: '99' })
  assert.equal(school.report().value, 10)
  assert.equal(school.ignored, '')
})

test('a value that only the trailers bring is taken when they come', () => {
  const school = new School()
  const both = school.begin()
  school.header(both, {})
  assert.equal(school.ignored, '')
  school.end(both, { trailer: '7' })
  assert.equal(school.report().value, 7)
  assert.equal(school.ignored, '')
  assert.equal(school.upstream.zone.get('answers'), 1)
})

test('a client that leaves before the trailers says nothing of them', () => {
  const school = new School()
  school.one({ ending: 'aborted' })
  assert.equal(school.ignored, '')
  school.one({})
  assert.equal(school.ignored, 'absent 1')
})

test('with last_byte a value is taken at the end', () => {
  const school = new School({}, { mode: 'last_byte' })
  const both = school.begin()
  school.header(both, { load: '10' })
  assert.equal(school.report().value, undefined)
  school.end(both)
  assert.equal(school.report().value, 10)
  const late = school.begin()
  school.header(late, {})
  school.end(late, { trailer: '20' })
  near(school.report().value, 11)
})

test('a failed answer lowers the rate of success, and its value is taken', () => {
  const school = new School()
  school.one({ load: '10' })
  school.one({ load: '20', status: 503 })
  near(school.report().value, 11)
  near(school.ok, 0.9)
  school.one({ load: '20', status: 404 })
  near(school.ok, 0.91)
})

test('where there is no answer there is no value to miss', () => {
  const school = new School()
  school.one({ ending: 'error' })
  school.one({ ending: 'timeout' })
  assert.equal(school.ignored, '')
  near(school.ok, 0.81)
  school.one({ ending: 'error', failed: false })
  near(school.ok, 0.81)
})

test('times are not learnt', () => {
  const school = new School()
  school.one({ load: '10' }, 5)
  school.one({ ending: 'timeout' }, 5)
  assert.equal(school.upstream.zone.peers.avg[0], 0)
})

test('after a gap a new value counts for more', () => {
  const school = new School({}, { decay: 1000, factor: 0.9 })
  school.one({ load: '10' })
  school.clock.move(990)
  school.upstream.zone.set('answers', 1000)
  school.one({ load: '20' })
  near(school.report().value, 10 * Math.exp(-1) + 20 * (1 - Math.exp(-1)))
})

test('account chooses the answers whose value is taken', () => {
  const account = (call: Call) => (call.uri === '/learn' ? '1' : '0')
  const school = new School({}, { account })
  school.one({ load: '10' })
  school.one({})
  assert.deepEqual([school.report().value, school.ignored, school.ok], [undefined, '', 1])
  school.one({ load: '10', uri: '/learn' })
  school.one({ uri: '/learn' })
  assert.deepEqual([school.report().value, school.ignored], [10, 'absent 1'])
})

test('a value that is not renewed in time counts no more', () => {
  const school = new School({ expire: 1000 })
  school.one({ load: '10' })
  school.clock.move(999)
  assert.equal(school.report().counts, true)
  school.clock.move(1)
  assert.deepEqual(school.report(), { value: 10, age: 1000, counts: false, ignored: undefined })
})

test('without expire a value counts for ever', () => {
  const school = new School({ expire: 0 })
  school.one({ load: '10' })
  school.clock.move(1e9)
  assert.equal(school.report().counts, true)
})

test('a value that had expired counts again after ten seconds of reports, begun anew', () => {
  const school = new School({ expire: 1500 })
  school.one({ load: '0.1' })
  school.clock.move(1500)
  const seen: string[] = []
  // 10 ms of each second are the attempt itself.
  for (let second = 0; second <= 10; second++) {
    school.one({ load: '50' })
    seen.push(`${second} ${school.report().counts}`)
    assert.equal(school.report().value, 50)
    school.clock.move(990)
  }
  assert.deepEqual(seen, [...Array.from({ length: 10 }, (_, i) => `${i} false`), '10 true'])
})

test('a second gap begins the ten seconds anew', () => {
  const school = new School({ expire: 1500 })
  const seconds = (count: number) => {
    for (let i = 0; i < count; i++) {
      school.one({ load: '1' })
      school.clock.move(990)
    }
    return school.report().counts
  }
  assert.equal(seconds(1), true)
  school.clock.move(2000)
  assert.equal(seconds(9), false)
  school.clock.move(2000)
  assert.equal(seconds(9), false)
  assert.equal(seconds(2), true)
})

test('the reason why a load report was not taken is why there is no value', () => {
  const variables = new Variables()
  const school = new School({ read: variables.compile('$orca_cpu_utilization'), orca: true })
  const reports = ['cpu_utilization=0.5', 'cpu_utilization=-1', 'cpu=1', 'eps=1', 'JSON {']
  for (const report of reports) {
    const both = school.begin()
    both.attempt.headers = ['endpoint-load-metrics', report]
    both.attempt.peerStatus = 200
    both.attempt.ending = 'ok'
    const now = school.clock.now()
    learnHeader(both.attempt, headerLesson(both.attempt, both.call, now), now)
    school.end(both)
  }
  assert.equal(school.report().value, 0.5)
  assert.equal(school.ignored, 'absent 1, malformed 1, negative 1, unknown_field 1')
})

/** A probe's attempt, never begun, that has had its answer. */
function probed(school: School, load: string, name = 'health'): { attempt: Attempt; call: Call } {
  const attempt = new Attempt(school.upstream, school.upstream.peers[0], school.clock.now(), 'probe')
  const call = new Call()
  call.probe = name
  call.attempts.push(attempt)
  attempt.headers = ['X-Load', load]
  attempt.peerStatus = 200
  attempt.headerMs = 3
  attempt.responseMs = 5
  attempt.ending = 'ok'
  return { attempt, call }
}

function numbers({ upstream }: School): number[] {
  const { conns, waiting, selected, startSum } = upstream.zone.peers
  return [conns[0]!, waiting[0]!, selected[0]!, startSum[0]!]
}

test('a probe teaches nothing unless account asks about probes', () => {
  for (const learning of [{}, { account: () => '1' }]) {
    const school = new School({}, learning)
    const { attempt, call } = probed(school, '10')
    learnProbe(attempt, call, school.clock.now())
    assert.equal(school.report().value, undefined)
  }
})

test('probes alone can teach, and count nowhere else', () => {
  const school = new School({}, { probes: true, account: (call) => (call.probe === 'health' ? '1' : '') })
  const { attempt, call } = probed(school, '10')
  learnProbe(attempt, call, school.clock.now())
  assert.equal(school.report().value, 10)
  assert.deepEqual(numbers(school), [0, 0, 0, 0])
  const other = probed(school, '99', 'other')
  learnProbe(other.attempt, other.call, school.clock.now())
  school.one({ load: '99' })
  assert.equal(school.report().value, 10)
  const bad = probed(school, 'abc')
  learnProbe(bad.attempt, bad.call, school.clock.now())
  assert.equal(school.ignored, 'not_a_number 1')
})

test('a probe that fails lowers the rate of success', () => {
  const school = new School({}, { probes: true, account: () => '1' })
  const { attempt, call } = probed(school, '10')
  attempt.headers = undefined
  attempt.peerStatus = undefined
  attempt.ending = 'timeout'
  attempt.failed = true
  learnProbe(attempt, call, school.clock.now())
  near(school.ok, 0.9)
  assert.equal(school.ignored, '')
})

test('a probe of a peer that the configuration has no more is not learnt from', () => {
  const school = new School({}, { probes: true, account: () => '1' })
  const { attempt, call } = probed(school, '10')
  school.upstream.zone.settle(0)
  learnProbe(attempt, call, school.clock.now())
  assert.equal(school.report().value, undefined)
})

test('least_time too learns from probes that account admits', () => {
  for (const [mode, ms] of [
    ['header', 3],
    ['last_byte', 5],
  ] as const) {
    const upstream = group([1, 1], {
      learning: { mode, factor: 0.9, errors: 3, decay: 0, probes: true, account: (call) => call.probe },
    })
    const attempt = new Attempt(upstream, upstream.peers[0], 1000, 'probe')
    const call = new Call()
    call.probe = 'health'
    Object.assign(attempt, { headerMs: 3, responseMs: 5, peerStatus: 200, ending: 'ok' })
    learnProbe(attempt, call, 1005)
    assert.equal(upstream.zone.peers.avg[0], ms)
  }
})
