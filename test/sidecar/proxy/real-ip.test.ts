import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realIp } from '../../../sidecar/proxy/real-ip.ts'
import { callFor } from '../../support/call.ts'

/** The client's address and port for a socket's address and header lines. */
function real(
  options: { from: string[]; header?: string; recursive?: boolean },
  socket: string,
  ...values: string[]
): string {
  const header = options.header ?? 'X-Forwarded-For'
  const call = callFor('/', {
    remoteAddr: socket,
    remotePort: '999',
    realipRemoteAddr: socket,
    realipRemotePort: '999',
    rawHeaders: values.flatMap((value) => [header, value]),
  })
  realIp({ from: options.from, header, recursive: options.recursive ?? false })(call)
  assert.equal(call.realipRemoteAddr, socket)
  return call.remotePort === '' ? call.remoteAddr : `${call.remoteAddr} ${call.remotePort}`
}

test('a header from anybody who is not trusted is left alone', () => {
  assert.equal(real({ from: ['10.0.0.0/8'] }, '192.0.2.9', '1.2.3.4'), '192.0.2.9 999')
  assert.equal(real({ from: ['10.0.0.0/8'] }, '11.0.0.1', '1.2.3.4'), '11.0.0.1 999')
})

test('a trusted one says who the client is, and the port of the socket is not the client’s', () => {
  assert.equal(real({ from: ['10.0.0.0/8'] }, '10.1.2.3', '1.2.3.4'), '1.2.3.4')
  assert.equal(real({ from: ['10.1.2.3'], header: 'X-Real-IP' }, '10.1.2.3', '1.2.3.4'), '1.2.3.4')
  assert.equal(real({ from: ['10.1.2.3'], header: 'True-Client' }, '10.1.2.3', '1.2.3.4:55'), '1.2.3.4 55')
})

test('of several addresses the last is taken: those before it may be made up', () => {
  assert.equal(real({ from: ['10.0.0.0/8'] }, '10.0.0.1', '6.6.6.6, 1.2.3.4'), '1.2.3.4')
  assert.equal(real({ from: ['10.0.0.0/8'] }, '10.0.0.1', '6.6.6.6', '1.2.3.4'), '1.2.3.4')
})

test('recursive goes back to the last one that is not trusted', () => {
  const options = { from: ['10.0.0.0/8'], recursive: true }
  assert.equal(real(options, '10.0.0.1', '6.6.6.6, 1.2.3.4, 10.0.0.2'), '1.2.3.4')
  assert.equal(real(options, '10.0.0.1', '6.6.6.6, 1.2.3.4', '10.0.0.2,10.0.0.3'), '1.2.3.4')
  assert.equal(real(options, '10.0.0.1', '10.0.0.3, 10.0.0.2'), '10.0.0.3')
  assert.equal(real({ ...options, recursive: false }, '10.0.0.1', '1.2.3.4, 10.0.0.2'), '10.0.0.2')
})

test('recursion ends at what is no address, and keeps the one before it', () => {
  const options = { from: ['10.0.0.0/8'], recursive: true }
  assert.equal(real(options, '10.0.0.1', '1.2.3.4, unknown, 10.0.0.2'), '10.0.0.2')
  assert.equal(real(options, '10.0.0.1', 'unknown'), '10.0.0.1 999')
  assert.equal(real(options, '10.0.0.1', '1.2.3'), '10.0.0.1 999')
  assert.equal(real(options, '10.0.0.1', '1.2.3.4:99999'), '10.0.0.1 999')
})

test('IPv6 networks and addresses, with and without brackets', () => {
  const options = { from: ['2001:db8::/32'] }
  assert.equal(real(options, '2001:db8::1', '2001:0DB9::2'), '2001:0db9::2')
  assert.equal(real(options, '2001:db8::1', '[2001:db9::2]:8080'), '2001:db9::2 8080')
  assert.equal(real(options, '2001:db9::1', '1.2.3.4'), '2001:db9::1 999')
  assert.equal(real({ from: ['::ffff:10.0.0.0/104'] }, '::ffff:10.0.0.1', '::ffff:1.2.3.4'), '1.2.3.4')
})

test('clients on a Unix socket are trusted by unix: alone', () => {
  assert.equal(real({ from: ['unix:'] }, 'unix:', '1.2.3.4'), '1.2.3.4')
  assert.equal(real({ from: ['0.0.0.0/0'] }, 'unix:', '1.2.3.4'), 'unix: 999')
  assert.equal(real({ from: ['unix:'] }, '10.0.0.1', '1.2.3.4'), '10.0.0.1 999')
})

test('without the header nothing changes', () => {
  assert.equal(real({ from: ['10.0.0.0/8'] }, '10.0.0.1'), '10.0.0.1 999')
})

test('an address was taken once: another level does not go on from it', () => {
  const call = callFor('/', {
    remoteAddr: '10.0.0.1',
    realipRemoteAddr: '10.0.0.1',
    rawHeaders: ['X-Forwarded-For', '6.6.6.6, 10.0.0.2'],
  })
  const take = realIp({ from: ['10.0.0.0/8'], header: 'X-Forwarded-For', recursive: false })
  take(call)
  take(call)
  assert.equal(call.remoteAddr, '10.0.0.2')
})

test('what is no network is refused', () => {
  for (const bad of ['x', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', 'fe80::/129', '10.0.0/8']) {
    assert.throws(() => realIp({ from: [bad], header: 'X', recursive: false }), {
      message: `invalid parameter "${bad}"`,
    })
  }
})
