import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer } from '../../probes/probe.ts'
import { udp } from '../../probes/udp.ts'
import { asking, tcpTarget, told, unixTarget } from '../support/asking.ts'
import { freePort } from '../support/free-port.ts'
import { udpPeer } from '../support/udp-peer.ts'

const soon = () => asking({ signal: AbortSignal.timeout(100) })
const has = (text: string) => ({ holds: ({ body }: Answer) => body.includes(text) })

/** Waits until no more UDP sockets are open than there were before. */
async function udpSocketsBackTo(before: number): Promise<void> {
  for (const end = performance.now() + 2000; udpSockets() > before; await sleep(2)) {
    assert.ok(performance.now() < end, `${udpSockets() - before} sockets are left open`)
  }
}

function udpSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length
}

test('a datagram is answered by one, whatever is in it', async () => {
  await using peer = await udpPeer((reply, datagram) => reply(`got ${datagram}`))
  const answer = await udp.check(peer.target, { send: 'data:\\x00\\xffping' }, asking())
  assert.equal(told(answer), 'passed, 12 bytes came')
  assert.deepEqual(peer.came, ['\x00\xffping'])
  assert.equal(answer.connectMs, undefined)
  assert.ok(answer.headerMs! <= answer.responseMs)
})

test('without anything to send an empty datagram is sent, and an empty one is an answer', async () => {
  await using peer = await udpPeer((reply) => reply(''))
  const answer = await udp.check(peer.target, {}, asking())
  assert.equal(told(answer), 'passed, 0 bytes came')
  assert.deepEqual(peer.came, [''])
})

test('a peer over IPv6 is asked likewise', async () => {
  await using peer = await udpPeer((reply) => reply('x'), { host: '::1' })
  assert.equal(told(await udp.check(peer.target, {}, asking())), 'passed, 1 byte came')
})

test('a port that nobody listens on is refused at once', async () => {
  const target = tcpTarget(await freePort())
  for (const args of [{}, { max_response: '0' }]) {
    const answer = await udp.check(target, args, asking())
    assert.deepEqual(answer.failure, { ending: 'error', reason: 'refused' })
    assert.equal(answer.passed, false)
    assert.match(answer.detail, /ECONNREFUSED/)
  }
})

test('a peer to which there is no way is unreachable', async () => {
  const before = udpSockets()
  const target = { ...tcpTarget(53), address: { kind: 'tcp', host: '255.255.255.255', port: 53 } } as const
  const answer = await udp.check(target, {}, asking())
  assert.equal(answer.failure?.ending, 'error')
  assert.match(answer.detail, /EACCES/)
  await udpSocketsBackTo(before)
})

test('a silent peer has not answered in time', async () => {
  await using peer = await udpPeer()
  assert.equal(
    told(await udp.check(peer.target, {}, soon())),
    'not passed, timeout timeout_read, no answer in time',
  )
})

test('with max_response=0 a silent peer passes, and its answer is not read', async () => {
  await using silent = await udpPeer()
  assert.equal(told(await udp.check(silent.target, { max_response: '0' }, asking())), 'passed, ')
  await using peer = await udpPeer((reply) => reply('x'))
  const answer = await udp.check(peer.target, { max_response: '0' }, asking())
  assert.equal(told(answer), 'passed, ')
  assert.equal(answer.body, '')
  // Also where the time of the probe is shorter than that.
  const short = asking({ signal: AbortSignal.timeout(20) })
  assert.equal(told(await udp.check(silent.target, { max_response: '0' }, short)), 'passed, ')
})

test('with a test it hears until the test holds', async () => {
  await using peer = await udpPeer((reply) => {
    for (const text of ['a', 'b', 'c', 'd']) reply(text)
  })
  const answer = await udp.check(peer.target, {}, asking(has('c')))
  assert.equal(answer.body, 'abc')
  const other = await udp.check(peer.target, {}, { ...soon(), ...has('e') })
  assert.equal(told(other), 'passed, 4 bytes came')
  assert.equal(other.body, 'abcd')
})

test('a long answer is kept as far as it is to be', async () => {
  await using peer = await udpPeer((reply) => reply('x'.repeat(60_000)))
  assert.equal((await udp.check(peer.target, {}, asking())).body.length, 60_000)
  assert.equal((await udp.check(peer.target, { max_response: '1k' }, asking())).body.length, 1024)
})

test('what somebody else sends is no answer', async () => {
  await using other = await udpPeer()
  await using peer = await udpPeer((_reply, _datagram, from) =>
    other.socket.send('x', from.port, from.address),
  )
  assert.equal((await udp.check(peer.target, {}, soon())).failure?.reason, 'timeout_read')
})

test('a datagram that is too long cannot be sent, and a name that nobody knows is not found', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  const long = await udp.check(peer.target, { send: `data:${'x'.repeat(70_000)}` }, asking())
  assert.match(told(long), /^not passed, error unreachable, .*EMSGSIZE/)
  const unknown = await udp.check(tcpTarget(1, 'no..name'), {}, asking())
  assert.match(told(unknown), /^not passed, error dns, /)
})

test('nothing is left behind by many, nor by one whose time was over before it began', async () => {
  await using peer = await udpPeer((reply) => reply('x'))
  const before = udpSockets()
  const { signal } = new AbortController()
  const all = await Promise.all(
    Array.from({ length: 50 }, () => udp.check(peer.target, {}, asking({ signal }))),
  )
  for (const answer of all) assert.equal(answer.passed, true)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  const over = await udp.check(peer.target, {}, asking({ signal: AbortSignal.abort() }))
  assert.equal(over.failure?.ending, 'timeout')
  await sleep(10)
  assert.equal(peer.came.length, 50)
  await udpSocketsBackTo(before)
})

test('a Unix-domain socket and a broken escape are mistakes of the configuration', () => {
  assert.equal(udp.misfit(unixTarget('/x').address, {}), 'type=udp needs an IP peer')
  const { address } = tcpTarget(1)
  assert.equal(udp.misfit(address, {}), undefined)
  assert.equal(udp.misfit(address, { send: 'data:\\q' }), 'invalid escape in "send=data:\\q"')
})
