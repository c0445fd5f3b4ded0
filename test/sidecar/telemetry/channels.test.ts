import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import { onAttempt, onRequest, publishAttempt, publishRequest } from '../../../sidecar/telemetry/channels.ts'
import { group } from '../../support/peers.ts'

const backend = group([1])
const call = new Call()
const attempt = new Attempt(backend, backend.peers[0], 0, 'round_robin')

test('ended attempts and requests reach every listener until it stops', () => {
  const heard: unknown[] = []
  const stops = [onRequest((ended) => heard.push(ended)), onAttempt((...both) => heard.push(both))]
  publishAttempt(call, attempt)
  publishRequest(call)
  for (const stop of stops) stop()
  publishAttempt(call, attempt)
  publishRequest(call)
  assert.deepEqual(heard, [[call, attempt], call])
})

test('others can listen by the names of the channels', () => {
  const heard: [string | symbol, unknown][] = []
  const hear = (message: unknown, name: string | symbol) => heard.push([name, message])
  const names = ['evenkeel:request', 'evenkeel:attempt']
  for (const name of names) subscribe(name, hear)
  publishAttempt(call, attempt)
  publishRequest(call)
  for (const name of names) unsubscribe(name, hear)
  assert.deepEqual(heard, [
    ['evenkeel:attempt', { call, attempt }],
    ['evenkeel:request', call],
  ])
})
