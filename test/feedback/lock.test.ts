import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Lock, lockWords } from '../../feedback/lock.ts'
import { finished, thread } from '../support/thread.ts'

/** Two words of a lock and one number it guards. */
function guarded(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * (lockWords + 1)))
}

const count = `
  const { Lock, lockWords } = await load('feedback/lock.ts')
  const lock = new Lock(data.words, 0)
  for (let i = 0; i < data.times; i++) {
    lock.take()
    data.words[lockWords] += 1
    lock.free()
  }
`

test('no change of threads that take turns is lost', async () => {
  const words = guarded()
  await finished(...[1, 2, 3].map(() => thread(count, { words, times: 100_000 })))
  assert.deepEqual([...words], [0, 0, 300_000])
})

test('the lock of a thread that was ended inside goes to whoever waits for it', async () => {
  const words = guarded()
  const worker = thread(
    `
    const { Lock } = await load('feedback/lock.ts')
    new Lock(data.words, 0).take()
    parentPort.postMessage('inside')
    for (;;);
    `,
    { words },
  )
  await once(worker, 'message')
  assert.notEqual(words[0], 0)
  const ended = worker.terminate()
  // This thread waits without turning its loop, as a request does.
  const lock = new Lock(words, 0)
  lock.take()
  lock.free()
  assert.equal(words[0], 0)
  await ended
})
