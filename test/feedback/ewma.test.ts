import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drift, ewma, staleness } from '../../feedback/ewma.ts'

function near(found: number, expected: number): void {
  assert.ok(Math.abs(found - expected) <= 1e-9 * Math.abs(expected), `${found} and not ${expected}`)
}

test('begins at the first value', () => {
  assert.equal(ewma(0, 12.5, 0.9), 12.5)
})

test('keeps so much of the old and takes the rest of the new', () => {
  near(ewma(100, 50, 0.9), 95)
  near(ewma(100, 50, 0), 50)
})

test('moves however small the step, and stays above none', () => {
  near(ewma(10, 9.9, 0.9), 9.99)
  near(ewma(0.3, 0.2, 0.9), 0.29)
  assert.equal(ewma(0, 0, 0.9), 0.001)
})

test('grows stale by the less of time and answers', () => {
  assert.equal(staleness(0.5, 0.2), 0.2)
  assert.equal(staleness(0.1, 3), 0.1)
  assert.equal(staleness(-0.1, 3), 0)
  assert.equal(staleness(0.1, 0), 0)
})

test('drifts to the median evenly by ratios', () => {
  for (const [average, median] of [
    [10, 1000],
    [1000, 10],
    [7, 7],
  ] as const) {
    for (const s of [0, 0.001, 0.1, 1, 30]) {
      near(drift(average, Math.log(median / average), s), median * (average / median) ** Math.exp(-s))
    }
  }
})
