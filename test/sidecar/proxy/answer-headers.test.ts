import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Call } from '../../../feedback/call.ts'
import { addedHeaders, passedHead } from '../../../sidecar/proxy/answer-headers.ts'
import { compileRedirect } from '../../../sidecar/proxy/redirect.ts'
import { callFor } from '../../support/call.ts'
import { added, field, settings, variables } from '../../support/location-settings.ts'

const client = { host: 'front.example', serverPort: '8080' }

test('fields are added to good answers and redirects, to others only with always', () => {
  const use = settings({
    addHeaders: [added('X-A', 'a'), added('X-B', 'b', true), added('X-C', '$arg_none', true)],
  })
  const call = callFor('/')
  assert.deepEqual(addedHeaders(call, use, 200), ['X-A', 'a', 'X-B', 'b'])
  assert.deepEqual(addedHeaders(call, use, 307), ['X-A', 'a', 'X-B', 'b'])
  assert.deepEqual(addedHeaders(call, use, 202), ['X-B', 'b'])
  assert.deepEqual(addedHeaders(call, use, 502), ['X-B', 'b'])
})

test('a peer’s answer keeps its fields, and gets Server and Date where it has none to be passed', () => {
  const own = passedHead(callFor('/'), settings(), 200, ['Server', 'peer', 'ETag', '"1"'])
  assert.equal(own.headers.filter((text) => text === 'Server').length, 1)
  assert.equal(field(own.headers, 'server'), 'peer')
  const use = settings({ addHeaders: [added('ETag', '"2"')] })
  assert.deepEqual(passedHead(callFor('/'), use, 200, ['etag', '"1"', 'Date', 'x', 'X', '1']).headers, [
    'Server',
    'evenkeel',
    'Date',
    'x',
    'X',
    '1',
    'ETag',
    '"2"',
  ])
})

test('a peer’s redirect is rewritten', () => {
  const redirect = compileRedirect([
    { kind: 'prefix', from: variables.compile('http://backend/'), to: variables.compile('/') },
  ])
  const { headers } = passedHead(callFor('/', client), settings({ redirect }), 302, [
    'location',
    'http://backend/x',
  ])
  assert.equal(field(headers, 'location'), 'http://front.example:8080/x')
})

test('switching protocols is not overridden by an error page', () => {
  assert.equal(passedHead(callFor('/', { statusOverride: 200 }), settings(), 101, []).status, 101)
})

test('the explaining field tells attempts, outcomes and reasons', () => {
  const attempt = (fields: object) => ({ address: 'a:1', pick: 'round_robin', ...fields })
  const call = callFor('/')
  // Only what the field reads of attempts.
  call.attempts.push(
    attempt({ status: 502, reason: 'refused' }) as unknown as Call['attempts'][number],
    attempt({ address: 'b:2', peerStatus: 200, pick: 'explored' }) as unknown as Call['attempts'][number],
  )
  assert.deepEqual(addedHeaders(call, settings({ explainHeader: 'X-Explain' }), 200), [
    'X-Explain',
    'a:1 502 refused (round_robin), b:2 200 (explored)',
  ])
})
