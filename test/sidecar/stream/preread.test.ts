import assert from 'node:assert/strict'
import { test } from 'node:test'
import { preread } from '../../../sidecar/stream/preread.ts'
import { firstMessage, inRecords } from '../../support/first-message.ts'
import { fc } from '../../support/property.ts'

const nothing = { serverName: '', protocol: '', alpn: [] }
const first = await firstMessage({ servername: 'Shop.example.com', ALPNProtocols: ['h2', 'http/1.1'] })
const said = { serverName: 'shop.example.com', protocol: 'TLSv1.3', alpn: ['h2', 'http/1.1'] }

test('name, version and protocols are read, whatever comes after them', () => {
  assert.deepEqual(preread(first), said)
  assert.deepEqual(preread(Buffer.concat([first, Buffer.alloc(100, 7)])), said)
  for (const size of [64, 300]) assert.deepEqual(preread(inRecords(first, size)), said)
})

test('an older client says the version that it speaks', async () => {
  const old = await firstMessage({ servername: 'a.b', maxVersion: 'TLSv1.2' })
  assert.deepEqual(preread(old), { serverName: 'a.b', protocol: 'TLSv1.2', alpn: [] })
})

test('more is waited for as long as the message is not whole', () => {
  for (let length = 0; length < first.length; length++) {
    assert.equal(preread(first.subarray(0, length)), undefined)
  }
})

test('what is no TLS says nothing, and is waited for no longer than it takes to know', () => {
  for (const text of [
    'G',
    'GET / HTTP/1.1',
    'SSH-2.0-x',
    '\x00',
    '\x80\x00\x02',
    '\x16\x04',
    '\x16\x03\x01\x00\x01\x02',
  ]) {
    assert.deepEqual(preread(Buffer.from(text, 'latin1')), nothing, text)
  }
})

test('the form of SSL 2 says a version, and no name', () => {
  const hello = (major: number, minor: number) => Buffer.from([0x80, 0x2e, 1, major, minor, 0, 0x15])
  assert.deepEqual(preread(hello(0, 2)), { ...nothing, protocol: 'SSLv2' })
  assert.deepEqual(preread(hello(3, 0)), { ...nothing, protocol: 'SSLv3' })
  assert.deepEqual(preread(hello(3, 3)), { ...nothing, protocol: 'TLSv1.2' })
  assert.deepEqual(preread(hello(3, 9)), nothing)
  assert.deepEqual(preread(hello(7, 9)), nothing)
  assert.equal(preread(hello(3, 3).subarray(0, 4)), undefined)
})

test('no bytes are too strange, and what is known once stays known', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(200), fc.boolean(), (bytes, at, from) => {
      const strange = Buffer.from(bytes)
      const all = from ? Buffer.concat([first.subarray(0, at), strange]) : strange
      const part = preread(all.subarray(0, at))
      if (part !== undefined) assert.deepEqual(preread(all), part)
      else preread(all)
    }),
  )
})
