import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compare } from '../../feedback/compare.ts'
import { type Pooled, pool } from '../../feedback/pooled.ts'
import { Reservoir } from '../../feedback/reservoir.ts'
import { type Judgement, judge } from '../../feedback/verdict.ts'
import { seeded } from '../support/dice.ts'

const names = { baseline: 'stable', canary: 'canary' }
const demands = { minSamples: 100, maxSlowdown: 0.1, maxErrors: 0.01 }

/** How a side's attempts end: times are lognormal. */
interface Source {
  readonly attempts: number
  /** Chance of an error. */
  readonly errors: number
  readonly medianMs: number
}

const sigma = 0.5
const healthy: Source = { attempts: 1000, errors: 0.005, medianMs: 20 }

/** What a reservoir keeps of attempts that are spread over ten minutes. */
function side({ attempts, errors, medianMs }: Source, random: () => number): Pooled {
  const reservoir = new Reservoir()
  for (let i = 0; i < attempts; i++) {
    const failed = random() < errors
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
    const ms = medianMs * Math.exp(sigma * normal)
    reservoir.add(failed, failed ? undefined : ms, 60_000 * Math.floor((10 * i) / attempts), random)
  }
  return pool(reservoir.minutes(0, 9), 10_000, random)
}

function judged(baseline: Pooled, canary: Pooled, over: Partial<typeof demands> = {}): Judgement {
  return judge({ baseline, canary }, compare(baseline, canary), { ...demands, ...over }, names)
}

/** Verdicts of a hundred runs with the seeds 1 to 100. */
function hundred(canary: Source, baseline = healthy): Record<string, number> {
  const counts: Record<string, number> = { pass: 0, fail: 0, inconclusive: 0 }
  for (let seed = 1; seed <= 100; seed++) {
    const random = seeded(seed)
    const { verdict } = judged(side(baseline, random), side(canary, random))
    counts[verdict]! += 1
  }
  return counts
}

const words = (counts: Record<string, number>) =>
  Object.entries(counts)
    .map(([verdict, count]) => `${verdict} ${count}`)
    .join(', ')

test('of a hundred equal canaries at least 95 pass', () => {
  const counts = hundred(healthy)
  console.log(`equal, seeds 1 to 100: ${words(counts)}`)
  assert.ok(counts['pass']! >= 95, words(counts))
})

test('of a hundred canaries that are a fifth slower at least 95 fail', () => {
  const counts = hundred({ ...healthy, medianMs: 24 })
  console.log(`20 % slower, seeds 1 to 100: ${words(counts)}`)
  assert.ok(counts['fail']! >= 95, words(counts))
})

test('of a hundred canaries with five times the errors at least 95 fail', () => {
  const counts = hundred({ ...healthy, errors: 0.025 })
  console.log(`errors 0.5 % and 2.5 %, seeds 1 to 100: ${words(counts)}`)
  assert.ok(counts['fail']! >= 95, words(counts))
})

test('twenty samples are never enough', () => {
  for (const canary of [healthy, { ...healthy, medianMs: 24 }, { ...healthy, errors: 0.025 }]) {
    const few = { ...canary, attempts: 20 }
    for (const baseline of [{ ...healthy, attempts: 20 }, healthy]) {
      const counts = hundred(few, baseline)
      assert.deepEqual(counts, { pass: 0, fail: 0, inconclusive: 100 }, words(counts))
    }
  }
  console.log('20 samples, seeds 1 to 100, six pairs of sides: all inconclusive')
})

test('the chance to see five times the errors at a thousand a side is 96 %', () => {
  // Over all outcomes, weighed by their chances: what the hundred runs are a sample of. No interval would do better than
  // 96.4 %, the chance that the estimate itself is above one point.
  const chances = (p: number) => {
    const list: number[] = []
    let log = 1000 * Math.log1p(-p)
    for (let k = 0; k <= 120; k++) {
      list.push(Math.exp(log))
      log += Math.log((1000 - k) / (k + 1)) + Math.log(p / (1 - p))
    }
    return list
  }
  const none = new Float64Array(0)
  const counts = (errors: number): Pooled => ({ attempts: 1000, errors, timed: 0, times: none })
  const [low, high] = [chances(0.005), chances(0.025)]
  let fails = 0
  for (let b = 0; b < 25; b++) {
    for (let c = b; c <= 120; c++) {
      if (judged(counts(b), counts(c)).verdict === 'fail') fails += low[b]! * high[c]!
    }
  }
  assert.equal(fails.toFixed(3), '0.962')
})

/** A side with so many errors and, spread over a factor of two, so many times. */
function plain(attempts: number, errors: number, times: number, ms = 10): Pooled {
  const some = Float64Array.from(
    { length: times },
    (_, i) => ms * (1 + ((i * 7919) % times) / Math.max(1, times)),
  )
  return { attempts, errors, timed: times, times: some }
}

test('a canary that fails everything has no times, and fails by its errors', () => {
  const { verdict, reason, grounds } = judged(plain(5000, 5, 4995), plain(500, 500, 0))
  assert.equal(verdict, 'fail')
  assert.equal(
    reason,
    'errors: canary 100 % of 500 failed, stable 0.1 % of 5000: +99.9 points, 95 % interval +99.1 to +100, 1 allowed',
  )
  assert.deepEqual(
    grounds.map(({ about, finding }) => `${about} ${finding}`),
    ['errors worse', 'latency unknown'],
  )
})

test('without errors on either side there is nothing to hold against the canary', () => {
  const { verdict, grounds } = judged(plain(1000, 0, 1000), plain(200, 0, 200))
  assert.equal(verdict, 'pass')
  assert.equal(
    grounds[0]!.text,
    'errors: canary 0 % of 200 failed, stable 0 % of 1000: 0 points, 95 % interval -0.38 to +1.88, 1 allowed',
  )
})

test('what is certainly worse and within what is allowed passes', () => {
  const errors = judged(plain(100_000, 100, 1000), plain(100_000, 600, 1000))
  assert.equal(errors.verdict, 'pass')
  const slower = judged(plain(1000, 0, 1000, 10), plain(1000, 0, 1000, 10.8))
  assert.equal(slower.verdict, 'pass')
  assert.match(
    slower.grounds[1]!.text,
    /^latency: canary is 8(\.\d+)? % slower than stable, 98 % interval 5\.\d+ % to /,
  )
  assert.equal(
    judged(plain(1000, 0, 1000, 10), plain(1000, 0, 1000, 10.8), { maxSlowdown: 0.05 }).verdict,
    'fail',
  )
})

test('what is allowed may be reached to the full', () => {
  for (const [more, less] of [
    [110, 10],
    [190, 90],
    [1000, 900],
  ] as const) {
    assert.equal(judged(plain(10_000, less, 1000), plain(10_000, more, 1000)).verdict, 'pass', `${more}`)
    assert.equal(judged(plain(10_000, less, 1000), plain(10_000, more + 1, 1000)).verdict, 'fail', `${more}`)
  }
})

test('what may be chance does not fail, however great it looks', () => {
  const { verdict, grounds } = judged(plain(100, 0, 100), plain(100, 2, 98), { minSamples: 98 })
  assert.equal(verdict, 'pass')
  assert.match(grounds[0]!.text, /\+2 points, 95 % interval -1\.9\d* to /)
})

test('a canary that is better passes', () => {
  const { verdict, grounds } = judged(plain(1000, 50, 950, 20), plain(1000, 0, 1000, 10))
  assert.equal(verdict, 'pass')
  assert.match(grounds[1]!.text, /canary is 50 % faster than stable/)
})

test('too little on either side is said with what there is and what is wanted', () => {
  assert.equal(
    judged(plain(99, 0, 99), plain(0, 0, 0)).reason,
    'errors: canary has 0 attempts and stable has 99 attempts, 100 wanted; ' +
      'latency: canary has 0 times and stable has 99 times, 100 wanted',
  )
  assert.equal(judged(plain(0, 0, 0), plain(0, 0, 0), { minSamples: 1 }).verdict, 'inconclusive')
})

test('times for which there is no interval are not judged', () => {
  const { verdict, grounds } = judged(plain(1, 0, 1), plain(1, 0, 1), { minSamples: 1 })
  assert.equal(verdict, 'inconclusive')
  assert.equal(grounds[1]!.text, 'latency: too few times for a 98 % interval')
})

test('times of 0 are compared like the shortest that can be told', () => {
  const zero: Pooled = { attempts: 200, errors: 0, timed: 200, times: new Float64Array(200) }
  const some: Pooled = { ...zero, times: new Float64Array(200).fill(0.002) }
  assert.equal(judged(zero, zero).verdict, 'pass')
  const { slowdown } = compare(zero, some).latency!
  assert.ok(Math.abs(slowdown.estimate - 1) < 1e-9, `${slowdown.estimate}`)
  assert.equal(judged(zero, some).verdict, 'fail')
})
