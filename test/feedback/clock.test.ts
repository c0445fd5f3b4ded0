import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { clockOrigin, monotonic } from '../../feedback/clock.ts'

const path = JSON.stringify(new URL('../../feedback/clock.ts', import.meta.url).href)
const program = `
  const { parentPort, workerData } = await import('node:worker_threads')
  const { monotonic, setClock } = await import(${path})
  setClock(workerData)
  parentPort.on('message', () => { parentPort.postMessage(monotonic()); parentPort.close() })
  parentPort.postMessage('ready')
`

test('threads that began at different times go by one clock', async () => {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
    workerData: clockOrigin(),
  })
  const answer = () => new Promise<unknown>((resolve) => worker.once('message', resolve))
  await answer()
  const before = monotonic()
  worker.postMessage('now')
  const there = await answer()
  const after = monotonic()
  assert.ok(typeof there === 'number' && before - 0.1 <= there && there <= after + 0.1, `${before} ${there}`)
  await worker.terminate()
})
