import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as words from '../../../dashboards/console/words.js'
import { grpcStatusNames, isGrpcFailure } from '../../../feedback/grpc-status.ts'
import { peerStates } from '../../../feedback/health.ts'
import { endings } from '../../../feedback/outcome.ts'
import { attemptReasons, denialReasons, exclusionReasons } from '../../../feedback/reasons.ts'

const keys = (list: Readonly<Record<string, string>>) => Object.keys(list).sort()

test('every word that the program uses is explained, and no other', () => {
  assert.deepEqual(keys(words.attemptReasons), [...attemptReasons].sort())
  assert.deepEqual(keys(words.denialReasons), [...denialReasons].sort())
  assert.deepEqual(keys(words.exclusionReasons), [...exclusionReasons].sort())
  assert.deepEqual(keys(words.endings), [...endings].sort())
  for (const state of peerStates) assert.ok(words.states[state], state)
  for (const word of [...attemptReasons, ...denialReasons, ...exclusionReasons, ...endings, '5xx', 'grpc'])
    assert.match(words.meaning(word) ?? '', /^[A-Z0-9].*[.]$/, word)
  assert.equal(words.meaning('constructor'), undefined)
  assert.equal(words.meaning('toString'), undefined)
})

test('statuses of gRPC have the names and the meaning that the program gives them', () => {
  assert.deepEqual(words.grpcStatuses, grpcStatusNames)
  const failures = grpcStatusNames.flatMap((_, status) => (isGrpcFailure(status) ? [status] : []))
  assert.deepEqual([...words.grpcFailures], failures)
})

test('every state has a shape of its own and a place in the order of trouble', () => {
  assert.deepEqual([...words.stateOrder].sort(), [...peerStates].sort())
  const shapes = peerStates.map((state) => words.stateShapes[state])
  assert.equal(new Set(shapes).size, peerStates.length)
  const html = readFileSync(new URL('../../../dashboards/console/index.html', import.meta.url), 'utf8')
  for (const shape of shapes) assert.ok(html.includes(`<symbol id="shape-${shape}"`), String(shape))
})
