import assert from 'node:assert/strict'
import { test } from 'node:test'
import { normalPoint, normalTail } from '../../feedback/normal.ts'
import { proportion, proportionDifference } from '../../feedback/proportion.ts'

test('tails and points of the normal distribution are those of the tables', () => {
  // Abramowitz and Stegun, Handbook of Mathematical Functions (1964), tables 26.1 and 26.5.
  const tails = [
    [0, 0.5],
    [1, 0.158655253931457],
    [2, 0.022750131948179],
    [2.999999, 0.001349902463],
    [3, 0.00134989803163],
    [5, 2.866515718791939e-7],
    [-1, 0.841344746068543],
  ] as const
  for (const [z, tail] of tails) {
    assert.ok(Math.abs(normalTail(z) / tail - 1) < 1e-9, `${z}: ${normalTail(z)}`)
  }
  for (const [tail, z] of [
    [0.05, 1.644853627],
    [0.025, 1.959963985],
    [0.01, 2.326347874],
    [0.005, 2.575829304],
  ] as const) {
    assert.ok(Math.abs(normalPoint(tail) - z) < 1e-8, `${tail}: ${normalPoint(tail)}`)
  }
})

test('intervals of a proportion are the published ones', () => {
  // R. G. Newcombe: Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998) 857-872,
  // table I, method 3.
  const published = [
    [81, 263, '0.2553 0.3662'],
    [15, 148, '0.0624 0.1605'],
    [0, 20, '0.0000 0.1611'],
    [1, 29, '0.0061 0.1718'],
  ] as const
  for (const [count, of, expected] of published) {
    const { low, high } = proportion(count, of, 0.95)
    assert.equal(`${low.toFixed(4)} ${high.toFixed(4)}`, expected)
  }
})

test('intervals of a difference of proportions are the published ones', () => {
  // R. G. Newcombe: Interval estimation for the difference between independent proportions: comparison of eleven
  // methods, Statistics in Medicine 17 (1998) 873-890, table II, method 10.
  const published = [
    [56, 70, 48, 80, '0.0524 0.3339'],
    [9, 10, 3, 10, '0.1705 0.8090'],
    [6, 7, 2, 7, '0.0582 0.8062'],
    [5, 56, 0, 29, '-0.0381 0.1926'],
    [0, 10, 0, 20, '-0.1611 0.2775'],
    [0, 10, 0, 10, '-0.2775 0.2775'],
    [10, 10, 0, 20, '0.6791 1.0000'],
    [10, 10, 0, 10, '0.6075 1.0000'],
  ] as const
  for (const [a, m, b, n, expected] of published) {
    const { estimate, low, high } = proportionDifference(a, m, b, n, 0.95)
    assert.equal(`${low.toFixed(4)} ${high.toFixed(4)}`, expected)
    assert.ok(Math.abs(estimate - (a / m - b / n)) < 1e-12)
  }
})

test('the difference the other way round has the interval the other way round', () => {
  const one = proportionDifference(25, 1000, 5, 900, 0.95)
  const other = proportionDifference(5, 900, 25, 1000, 0.95)
  assert.ok(Math.abs(one.low + other.high) < 1e-12)
  assert.ok(Math.abs(one.high + other.low) < 1e-12)
})
