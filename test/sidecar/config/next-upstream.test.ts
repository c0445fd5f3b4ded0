import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryKinds } from '../../../feedback/policy.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { nextUpstreamWords } from '../../../sidecar/config/model.ts'

test('proxy_next_upstream takes every kind of failure that attempts are judged by', () => {
  const { model } = loadText(`http { proxy_next_upstream ${retryKinds.join(' ')}; }`, 'test.conf', 'nginx')
  assert.deepEqual(model.http?.proxy_next_upstream, [...retryKinds])
})

test('its other words are about which requests, and about none', () => {
  const kinds = new Set<string>(retryKinds)
  assert.deepEqual(
    nextUpstreamWords.filter((word) => !kinds.has(word)),
    ['non_idempotent', 'updating', 'off'],
  )
})
