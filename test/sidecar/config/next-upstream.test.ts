import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grpcRetryStatuses } from '../../../feedback/grpc-status.ts'
import { retryKinds } from '../../../feedback/policy.ts'
import { loadText } from '../../../sidecar/config/load.ts'
import { nextUpstreamWords } from '../../../sidecar/config/model.ts'
import { grpcNextUpstreamWords } from '../../../sidecar/config/tls-model.ts'

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

test('grpc_next_upstream takes the same and statuses of gRPC, none of which says that a call is wrong', () => {
  const statuses = Object.keys(grpcRetryStatuses)
  const words = [...retryKinds, ...statuses, 'non_idempotent', 'off']
  assert.deepEqual([...grpcNextUpstreamWords], words)
  const text = `http { grpc_next_upstream ${words.join(' ')}; }`
  assert.deepEqual(loadText(text, 'test.conf', 'nginx').model.http?.grpc_next_upstream, words)
  // OK, INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNAUTHENTICATED
  const final = [0, 3, 5, 6, 7, 9, 11, 16]
  assert.deepEqual(
    Object.values<number>(grpcRetryStatuses).filter((status) => final.includes(status)),
    [],
  )
})
