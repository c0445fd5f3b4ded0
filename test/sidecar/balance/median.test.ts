import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median } from '../../../sidecar/balance/median.ts'
import { fc } from '../../support/property.ts'

test('is the middle of the sorted numbers, or the mean of the middle two', () => {
  assert.equal(median(Float64Array.from([5, 1, 3]), 3), 3)
  assert.equal(median(Float64Array.from([4, 1, 2, 10]), 4), 3)
  assert.equal(median(new Float64Array(0), 0), 0)
  // Whole numbers of a small range, so that equal ones are common.
  const numbers = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(numbers, (list) => {
      const sorted = list.toSorted((a, b) => a - b)
      const half = sorted.length >> 1
      const expected = sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
      assert.equal(median(Float64Array.from(list), list.length), expected)
    }),
  )
})

test('looks at no more numbers than it is told', () => {
  assert.equal(median(Float64Array.from([1, 2, 3, 1000, 1000]), 3), 2)
})
