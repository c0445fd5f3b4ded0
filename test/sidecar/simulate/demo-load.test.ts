import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { startDemoLoad } from '../../../sidecar/simulate/demo-load.ts'
import { backend } from '../../support/backend.ts'
import { seeded } from '../../support/dice.ts'
import { until } from '../../support/until.ts'

test('requests of several kinds are sent about as often as asked for, and no more after the end', async () => {
  await using peer = await backend({ body: 'ok' })
  const load = startDemoLoad(`http://${peer.address}/demo/`, 200, seeded(7))
  await until(() => peer.requests.length >= 60)
  load.stop()
  const sent = load.sent
  assert.ok(sent >= 60 && load.failed < sent)
  const methods = new Set(peer.requests.map(({ method }) => method))
  assert.deepEqual([...methods].sort(), ['GET', 'POST', 'PUT'])
  assert.ok(peer.targets.every((target) => target.startsWith('/demo/')))
  await wait(50)
  assert.equal(load.sent, sent)
})

test('where nothing answers only so many wait at once, and failures are counted', async () => {
  await using deaf = await backend(() => new Promise(() => {}))
  const waiting = startDemoLoad(`http://${deaf.address}/`, 1000)
  await until(() => deaf.requests.length === 20)
  await wait(50)
  assert.equal(deaf.requests.length, 20)
  waiting.stop()
  await using failing = await backend({ status: 503 })
  const load = startDemoLoad(`http://${failing.address}/`, 1000)
  await until(() => load.failed >= 10)
  load.stop()
})
