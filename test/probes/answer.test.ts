import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectMishap, shown } from '../../probes/answer.ts'

function connecting(code: string): string {
  const { failure } = connectMishap(Object.assign(new Error(code), { code }))
  return `${failure.ending} ${failure.reason}${failure.local ? ', local' : ''}`
}

test('errors of connecting have their reasons, and what this machine lacks is no fault of the peer', () => {
  assert.equal(connecting('ECONNREFUSED'), 'error refused')
  assert.equal(connecting('EHOSTUNREACH'), 'error unreachable')
  assert.equal(connecting('ENETUNREACH'), 'error unreachable')
  assert.equal(connecting('ECONNRESET'), 'error reset')
  assert.equal(connecting('ETIMEDOUT'), 'timeout timeout_connect')
  assert.equal(connecting('EAI_AGAIN'), 'error dns')
  assert.equal(connecting('EMFILE'), 'error unreachable, local')
  assert.equal(connecting('EADDRNOTAVAIL'), 'error unreachable, local')
})

test("a peer's own text is short and has nothing in it that a terminal obeys", () => {
  assert.equal(shown('all "well"'), 'all "well"')
  assert.equal(shown('\x1b[2Jcaf\xe9\n'), '\\x1b[2Jcaf\\xe9\\x0a')
  assert.equal(shown('x'.repeat(300)), `${'x'.repeat(200)}…`)
})
