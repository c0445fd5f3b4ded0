import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Bell } from '../../feedback/bell.ts'
import { holdGroup } from '../../feedback/held.ts'
import { Zone } from '../../feedback/zone.ts'
import { finished, thread } from '../support/thread.ts'

test('whoever listens is called when it rings, in the same thread too', async () => {
  const bell = new Bell(new Int32Array(new SharedArrayBuffer(8)), 1)
  const ring = bell.rung(bell.rings)
  assert.notEqual(ring, undefined)
  bell.ring()
  assert.equal(await ring, 'ok')
})

test('a ring that came before one listened is not missed', () => {
  const bell = new Bell(new Int32Array(new SharedArrayBuffer(8)), 0)
  const { rings } = bell
  bell.ring()
  assert.equal(bell.rung(rings), undefined)
})

test('it rings in all threads that listen', async () => {
  const zone = new Zone('z', 1, 2)
  const body = `
    const { Zone } = await load('feedback/zone.ts')
    const { bell } = Zone.attach(data.shared, data.row)
    const open = setInterval(() => {}, 1000)
    const ring = bell.rung(bell.rings)
    parentPort.postMessage('listens')
    await ring
    clearInterval(open)
    parentPort.postMessage('heard')
  `
  const workers = [0, 1].map((row) => thread(body, { shared: zone.share(), row }))
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const heard = Promise.all(workers.map((worker) => once(worker, 'message')))
  zone.bell.ring()
  assert.deepEqual(await heard, [['heard'], ['heard']])
  await finished(...workers)
})

test('a zone rings only where somebody waits', () => {
  const zone = new Zone('z', 1)
  zone.wake()
  assert.equal(zone.bell.rings, 0)
  holdGroup(zone, 'queueWaiting', 1)
  zone.wake()
  assert.equal(zone.bell.rings, 1)
  holdGroup(zone, 'queueWaiting', -1)
  zone.wake()
  assert.equal(zone.bell.rings, 1)
})

test('whoever listens at a zone that moves is called, and hears it at its new place', async () => {
  const zone = new Zone('z', 1, 1)
  const { bell } = zone
  bell.ring()
  const before = bell.rings
  const ring = bell.rung(before)
  zone.grow(4)
  assert.equal(await ring, 'ok')
  assert.notEqual(zone.bell, bell)
  // What was read at the old place is no reason to sleep at the new one.
  assert.equal(zone.bell.rung(before), undefined)
  const next = zone.bell.rung(zone.bell.rings)
  zone.bell.ring()
  assert.equal(await next, 'ok')
})
