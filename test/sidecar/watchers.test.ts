import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RecentBatch } from '../../feedback/feed.ts'
import { Watchers } from '../../sidecar/watchers.ts'

test('attempts are gathered from the first who watches to the last, once for all', () => {
  let tell: ((batch: RecentBatch) => void) | undefined
  let calls = 0
  const watchers = new Watchers((hear) => {
    calls += 1
    tell = hear
  })
  assert.equal(calls, 0)
  const heard: string[] = []
  const listener = (batch: RecentBatch) => heard.push(`${batch.more}`)
  const stopOne = watchers.add(listener)
  const stopTwo = watchers.add(listener)
  assert.equal(calls, 1)
  tell?.({ attempts: [], more: 1, moreFailed: 0 })
  assert.deepEqual(heard, ['1', '1'])
  stopOne()
  stopOne()
  tell?.({ attempts: [], more: 2, moreFailed: 0 })
  assert.deepEqual(heard, ['1', '1', '2'])
  assert.equal(calls, 1)
  stopTwo()
  assert.equal(calls, 2)
  assert.equal(tell, undefined)
  watchers.add(listener)
  assert.equal(calls, 3)
})
