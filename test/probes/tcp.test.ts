import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tcp } from '../../probes/tcp.ts'
import { asking, openSockets, rawPeer, socketsBackTo, tcpTarget, told } from '../support/asking.ts'

test('a peer that accepts passes, and nothing is sent to it', async () => {
  const before = openSockets()
  let came = ''
  await using peer = await rawPeer((socket) => {
    socket.on('data', (piece) => {
      came += piece
    })
  })
  const answer = await tcp.check(peer.target, {}, asking())
  assert.equal(told(answer), 'passed, ')
  assert.equal(answer.connectMs, answer.responseMs)
  assert.equal(answer.headerMs, undefined)
  await socketsBackTo(before)
  assert.equal(came, '')
})

test('a failure to connect says which one it was', async () => {
  const refused = await tcp.check(tcpTarget(1), {}, asking())
  assert.equal(told(refused), 'not passed, error refused, connect ECONNREFUSED 127.0.0.1:1')
  assert.equal(refused.connectMs, undefined)
  const unknown = await tcp.check(tcpTarget(1, 'no..name'), {}, asking())
  assert.equal(told(unknown), 'not passed, error dns, getaddrinfo ENOTFOUND no..name')
  const address = { kind: 'unix', path: '/nowhere/at/all' } as const
  const gone = await tcp.check({ name: 'unix:/nowhere', address }, {}, asking())
  assert.equal(told(gone), 'not passed, error unreachable, connect ENOENT /nowhere/at/all')
  const long = { kind: 'unix', path: `/${'x'.repeat(200)}` } as const
  assert.equal((await tcp.check({ name: 'long', address: long }, {}, asking())).failure?.ending, 'error')
})
