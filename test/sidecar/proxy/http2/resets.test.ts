import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Resets } from '../../../../sidecar/proxy/http2/resets.ts'

/** How many streams of `count` may be reset, with one that ends in order after each `each` of them. */
function allowed(count: number, { each = 0, stepMs = 0 } = {}): number {
  const resets = new Resets(0)
  for (let i = 0; i < count; i += 1) {
    if (!resets.reset(i * stepMs)) return i
    if (each > 0 && i % each === 0) resets.ended()
  }
  return count
}

test('a client may reset many streams at once, but not without end', () => {
  assert.equal(allowed(1000), 200)
})

test('one that resets no more than it lets end may do so for ever', () => {
  assert.equal(allowed(10_000, { each: 1 }), 10_000)
  assert.ok(allowed(10_000, { each: 2 }) < 500)
})

test('one that resets some streams a second may do so for ever', () => {
  assert.equal(allowed(10_000, { stepMs: 31 }), 10_000)
  assert.ok(allowed(10_000, { stepMs: 10 }) < 400)
})

test('what was not used is not saved up', () => {
  const resets = new Resets(0)
  for (let i = 0; i < 1000; i += 1) resets.ended()
  let count = 0
  while (resets.reset(1e6)) count += 1
  assert.equal(count, 200)
})
