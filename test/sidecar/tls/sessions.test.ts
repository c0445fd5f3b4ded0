import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sessions } from '../../../sidecar/tls/sessions.ts'

test('sessions are bounded: the one that was not used for longest goes first', () => {
  const sessions = new Sessions(2)
  const [a, b, c] = ['a', 'b', 'c'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer]
  sessions.set('a', a)
  sessions.set('b', b)
  assert.equal(sessions.get('a'), a)
  sessions.set('c', c)
  assert.deepEqual([sessions.get('a'), sessions.get('b'), sessions.get('c')], [a, undefined, c])
  sessions.set('a', b)
  assert.equal(sessions.get('a'), b)
  sessions.delete('a')
  assert.equal(sessions.get('a'), undefined)
})
