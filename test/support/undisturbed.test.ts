import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { undisturbed } from './undisturbed.ts'

/** Keeps everything else of this process waiting. */
function stall(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

test('what fails while nobody had to wait has failed', async () => {
  let goes = 0
  // A machine that is busy all the time would have it done again.
  for (let left = 5; goes !== 1 && left > 0; left--) {
    goes = 0
    await assert.rejects(
      undisturbed(async () => {
        goes += 1
        assert.fail('too slow')
      }),
      /too slow/,
    )
  }
  assert.equal(goes, 1)
})

test('what fails while somebody had to wait is done again, and not for ever', async () => {
  let goes = 0
  const slow = async () => {
    goes += 1
    await sleep(60)
    stall(150)
    await sleep(60)
    if (goes < 3) assert.fail('too slow')
  }
  await undisturbed(slow)
  assert.equal(goes, 3)
  goes = -10
  await assert.rejects(undisturbed(slow), /too slow/)
  assert.equal(goes, -7)
})
