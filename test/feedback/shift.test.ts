import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outside, rankSum } from '../../feedback/rank-sum.ts'
import { type Shift, shift } from '../../feedback/shift.ts'
import { seeded } from '../support/dice.ts'
import { fc } from '../support/property.ts'

const sorted = (values: readonly number[]) => Float64Array.from(values).sort()

function shiftOf(xs: readonly number[], ys: readonly number[], confidence: number): Shift {
  const [a, b] = [sorted(xs), sorted(ys)]
  const turns = shift(a, b, rankSum(a, b).ties, confidence)
  for (;;) {
    const { done, value } = turns.next()
    if (done) return value
  }
}

/** Hollander and Wolfe (1973), page 69: permeability constants of a membrane at term, and at 12 to 26 weeks. */
const term = [0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
const early = [1.15, 0.88, 0.9, 0.74, 1.21]

/** Ozone in May and in August, of R's data set `airquality`, without what is missing. */
const may = [
  41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37,
]
const august = [
  39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85,
]

/** Miles per gallon of R's data set `mtcars`, by transmission. */
const automatic = [
  21.4, 18.7, 18.1, 14.3, 24.4, 22.8, 19.2, 17.8, 16.4, 17.3, 15.2, 10.4, 10.4, 14.7, 21.5, 15.5, 15.2, 13.3,
  19.2,
]
const manual = [21, 21, 22.8, 32.4, 30.4, 33.9, 27.3, 26, 30.4, 15.8, 19.7, 15, 21.4]

test('small samples without ties have the exact chance that R documents', () => {
  // The example of R's page on wilcox.test: W = 35, p-value = 0.1272 for "greater".
  const { u, p, ties } = rankSum(sorted(early), sorted(term))
  assert.deepEqual([u, ties], [35, false])
  assert.equal((p / 2).toFixed(4), '0.1272')
})

test('samples with ties have the chance that R gives with its correction for continuity', () => {
  // The example of R's page on wilcox.test with airquality: W = 127.5, p-value = 0.0001208.
  const ozone = rankSum(sorted(august), sorted(may))
  assert.equal(ozone.u, 127.5)
  assert.equal(ozone.p.toPrecision(4), '0.0001208')
  // wilcox.test(mpg ~ am, data = mtcars): W = 42, p-value = 0.001871.
  const cars = rankSum(sorted(manual), sorted(automatic))
  assert.equal(cars.u, 42)
  assert.equal(cars.p.toPrecision(4), '0.001871')
})

test('the shift and its interval are those of R', () => {
  // wilcox.test(mpg ~ am, data = mtcars, conf.int = TRUE) finds, by a search for a root that ends near them, -6.799963,
  // and -11.699942 to -2.900042.
  const { estimate, low, high } = shiftOf(manual, automatic, 0.95)
  assert.deepEqual(
    [estimate, low, high].map((value) => value?.toFixed(6)),
    ['-6.800000', '-11.700000', '-2.900000'],
  )
})

test('the rank at which an exact interval begins is that of the published table', () => {
  // Critical values of U at 5 % and 2 %, two-sided, as tables of the Mann-Whitney test have them.
  const at5 = [
    [5, 5, 2],
    [10, 10, 23],
    [20, 20, 127],
    [5, 10, 8],
  ] as const
  for (const [m, n, critical] of at5) assert.equal(outside(m, n, false, 0.95), critical)
  const at2 = [
    [5, 5, 1],
    [10, 10, 19],
    [20, 20, 114],
  ] as const
  for (const [m, n, critical] of at2) assert.equal(outside(m, n, false, 0.98), critical)
})

test('there is no interval where the samples are too small for one', () => {
  assert.equal(outside(1, 1, false, 0.98), undefined)
  assert.equal(outside(3, 3, false, 0.98), undefined)
  assert.equal(outside(3, 3, true, 0.98), undefined)
  assert.deepEqual(shiftOf([1], [3], 0.98), { estimate: 2, low: undefined, high: undefined })
})

test('the approximation for large samples goes on where the exact one ends', () => {
  const [exact, near] = [outside(49, 49, false, 0.98)!, outside(49, 49, true, 0.98)!]
  assert.ok(Math.abs(exact - near) <= 3, `${exact} and ${near}`)
})

test('the shift is what all differences written out give', () => {
  const value = fc.integer({ min: -20, max: 20 })
  const values = fc.array(value, { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(values, values, fc.boolean(), (xs, ys, halves) => {
      // Halves of them, so that some have no ties.
      const [as, bs] = [
        xs.map((x, i) => x + (halves ? i / 128 : 0)),
        ys.map((y, i) => y + (halves ? i / 1024 : 0)),
      ]
      const all = sorted(as.flatMap((a) => bs.map((b) => b - a)))
      const { estimate, low, high } = shiftOf(as, bs, 0.9)
      const middle = all.length >> 1
      const median = all.length % 2 === 1 ? all[middle]! : (all[middle - 1]! + all[middle]!) / 2
      assert.equal(estimate, median)
      const beyond = outside(as.length, bs.length, rankSum(sorted(as), sorted(bs)).ties, 0.9)
      assert.equal(low, beyond === undefined ? undefined : all[beyond])
      assert.equal(high, beyond === undefined ? undefined : all[all.length - 1 - beyond])
    }),
  )
})

test('samples of one value have no shift and say nothing', () => {
  const same = new Array<number>(200).fill(7)
  assert.deepEqual(shiftOf(same, same, 0.98), { estimate: 0, low: 0, high: 0 })
  assert.equal(rankSum(sorted(same), sorted(same)).p, 1)
})

test('the interval has the true shift as often as it says', () => {
  const random = seeded(11)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  let within = 0
  const runs = 1000
  for (let run = 0; run < runs; run++) {
    const xs = Array.from({ length: 60 }, normal)
    const ys = Array.from({ length: 60 }, () => 0.5 + normal())
    const { low, high } = shiftOf(xs, ys, 0.98)
    if (low !== undefined && low <= 0.5 && high >= 0.5) within += 1
  }
  // Three deviations of a count of a thousand.
  const deviation = Math.sqrt(runs * 0.98 * 0.02)
  assert.ok(Math.abs(within - 0.98 * runs) < 3 * deviation, `${within} of ${runs}`)
})

test('ten thousand a side are compared in short turns', () => {
  const random = seeded(3)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const xs = sorted(Array.from({ length: 10_000 }, normal))
  const ys = sorted(Array.from({ length: 10_000 }, () => 0.2 + normal()))
  const longest: number[] = []
  // The first time is for the compiler, and others may have had the processor in any one of the others.
  for (let time = 0; time < 6; time++) {
    const turns = shift(xs, ys, false, 0.98)
    let most = 0
    for (let done = false; !done; ) {
      const began = performance.now()
      done = turns.next().done ?? false
      most = Math.max(most, performance.now() - began)
    }
    longest.push(most)
  }
  assert.ok(Math.min(...longest) < 20, `${longest.map((ms) => ms.toFixed(1)).join(' ')} ms`)
})
