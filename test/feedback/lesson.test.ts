import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { lessonOf } from '../../feedback/lesson.ts'
import { Attempt } from '../../feedback/outcome.ts'
import type { Learning } from '../../feedback/upstream.ts'
import { group } from '../support/peers.ts'

/** What a session teaches that went well and was not measured before. */
function taught(
  mode: Learning['mode'],
  protocol: 'TCP' | 'UDP',
  { headerMs, plain = false }: { readonly headerMs?: number; readonly plain?: boolean } = {},
): string {
  const learning: Learning = { mode, plain, factor: 0.5, errors: 3, decay: 0, account: undefined }
  const upstream = group([1], { kind: 'stream', name: 'stream/backend', learning })
  const attempt = Object.assign(new Attempt(upstream, upstream.peers[0], 0, ''), {
    ending: 'ok',
    connectMs: 1,
    headerMs,
    responseMs: 300,
  })
  const lesson = lessonOf(attempt, learning, Object.assign(new Call(), { protocol }), true, 1000)
  return lesson === undefined ? 'nothing' : `${lesson.kind} ${lesson.time}`
}

test('datagrams have no connection: the first answer is what is measured in its place', () => {
  assert.equal(taught('connect', 'UDP', { headerMs: 20 }), 'success 20')
  assert.equal(taught('connect', 'TCP', { headerMs: 20 }), 'success 1')
  for (const protocol of ['TCP', 'UDP'] as const) {
    assert.equal(taught('header', protocol, { headerMs: 20 }), 'success 20')
    assert.equal(taught('last_byte', protocol, { headerMs: 20 }), 'success 300')
  }
})

test('a session whose peer has said nothing took so long at least', () => {
  assert.equal(taught('header', 'TCP'), 'aborted 300')
  assert.equal(taught('header', 'UDP'), 'aborted 300')
  assert.equal(taught('connect', 'UDP'), 'aborted 300')
  assert.equal(taught('connect', 'UDP', { plain: true }), 'nothing')
  assert.equal(taught('last_byte', 'UDP'), 'success 300')
})
