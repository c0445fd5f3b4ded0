import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawn, type Part, pool } from '../../feedback/pooled.ts'
import { Reservoir, reservoirSize } from '../../feedback/reservoir.ts'
import { seeded } from '../support/dice.ts'

/** A part of which times of one value came, and at most a thousand were kept. */
function part(timed: number, ms: number, kept = Math.min(timed, reservoirSize)): Part {
  return { attempts: timed + 5, errors: 5, timed, times: new Float32Array(kept).fill(ms) }
}

/** How many times there are of each value. */
function spread(times: Float64Array): string {
  const counts = new Map<number, number>()
  for (const ms of times) counts.set(ms, (counts.get(ms) ?? 0) + 1)
  return [...counts].map(([ms, count]) => `${ms}: ${count}`).join(', ')
}

test('quiet minutes are taken whole, and everything is counted', () => {
  const all = pool([part(300, 1), part(0, 0), part(700, 2)], 10_000, seeded(1))
  assert.deepEqual([all.attempts, all.errors, all.timed], [1015, 15, 1000])
  assert.equal(spread(all.times), '1: 300, 2: 700')
})

test('a busy minute weighs as much more as more came in it', () => {
  const all = pool([part(1000, 1), part(20_000, 2)], 10_000, seeded(1))
  assert.equal(spread(all.times), '1: 50, 2: 1000')
  assert.equal(all.timed, 21_000)
})

test('many small parts beside a busy one come to what they should together', () => {
  const small = Array.from({ length: 60 }, () => part(7, 1))
  const all = pool([...small, part(20_000, 2)], 10_000, seeded(1))
  assert.equal(spread(all.times), '1: 21, 2: 1000')
})

test('no more times are taken than are wanted, in proportion', () => {
  const all = pool([part(1000, 1), part(500, 2), part(500, 3)], 400, seeded(1))
  assert.equal(spread(all.times), '1: 200, 2: 100, 3: 100')
})

test('an instance that tells fewer times than it has does not weigh less', () => {
  const all = pool([part(1000, 1), part(1000, 2, 100)], 10_000, seeded(1))
  assert.equal(spread(all.times), '1: 100, 2: 100')
})

test('nothing is nothing', () => {
  const { times, ...counts } = pool([], 100, seeded(1))
  assert.equal(times.length, 0)
  assert.deepEqual(counts, { attempts: 0, errors: 0, timed: 0 })
})

test('what is drawn of a part is no matter of when it came', () => {
  const random = seeded(5)
  const inOrder = Float32Array.from({ length: 1000 }, (_, i) => i)
  let sum = 0
  const runs = 200
  for (let run = 0; run < runs; run++) {
    const some = drawn(inOrder, 50, random)
    assert.equal(new Set(some).size, 50)
    sum += some.reduce((all, ms) => all + ms, 0)
  }
  const mean = sum / (50 * runs)
  assert.ok(Math.abs(mean - 499.5) < (3 * 289) / Math.sqrt(50 * runs), `${mean}`)
  assert.deepEqual(
    inOrder,
    Float32Array.from({ length: 1000 }, (_, i) => i),
  )
})

test('the mean over a busy and a quiet minute is that of all times', () => {
  const random = seeded(9)
  const reservoir = new Reservoir()
  let sum = 0
  const came = { 0: 30_000, 1: 600 }
  for (const [minute, count] of Object.entries(came)) {
    for (let i = 0; i < count; i++) {
      const ms = minute === '0' ? 10 * random() : 1000 + random()
      sum += ms
      reservoir.add(false, ms, 60_000 * Number(minute), random)
    }
  }
  const { times } = pool(reservoir.minutes(0, 1), 10_000, random)
  const mean = times.reduce((all, ms) => all + ms, 0) / times.length
  assert.ok(Math.abs(mean / (sum / 30_600) - 1) < 0.1, `${mean} and ${sum / 30_600}`)
})
