import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { opening } from '../../../sidecar/tls/client-hello.ts'
import { firstMessage } from '../../support/first-message.ts'

const modern = await firstMessage({ servername: 'Shop.Example.com', ALPNProtocols: ['h2', 'http/1.1'] })

function hello(bytes: Buffer) {
  const found = opening(bytes)
  if (found.kind !== 'hello') throw new Error(found.kind)
  return found.hello
}

test('name, protocols, suites, groups and versions of a client are read', () => {
  const { serverName, alpn, ciphers, groups, versions } = hello(modern)
  assert.equal(serverName, 'shop.example.com')
  assert.deepEqual(alpn, ['h2', 'http/1.1'])
  assert.ok(ciphers.includes(0x1301))
  assert.ok(groups.includes(0x001d))
  assert.deepEqual(versions, [0x0304, 0x0303])
})

test('a client of TLS 1.2 that names no host is one too', async () => {
  const { serverName, versions, alpn } = hello(await firstMessage({ maxVersion: 'TLSv1.2' }))
  assert.deepEqual({ serverName, versions, alpn }, { serverName: '', versions: [0x0303], alpn: [] })
})

test('as long as the message is not whole, more is waited for, wherever it is cut', () => {
  for (let length = 0; length < modern.length; length++) {
    assert.equal(opening(modern.subarray(0, length)).kind, 'more', `${length} bytes`)
  }
  assert.equal(opening(Buffer.concat([modern, Buffer.from('early data')])).kind, 'hello')
})

test('a message cut into many records is put together, unless they are too many', () => {
  const message = modern.subarray(5)
  const cut = (size: number) => {
    const records: Buffer[] = []
    for (let at = 0; at < message.length; at += size) {
      const part = message.subarray(at, at + size)
      records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part)
    }
    return Buffer.concat(records)
  }
  for (const size of [2, 3, 5, 100])
    assert.deepEqual(hello(cut(size)), hello(modern), `records of ${size} bytes`)
  // Only keys against quantum computers make it as long as that.
  assert.ok(message.length > 1000)
  assert.equal(opening(cut(1)).kind, 'broken')
})

test('how many bytes there have to be is said, so that nobody has to look at each', () => {
  const message = modern.subarray(5)
  const cut = (size: number) => {
    const records: Buffer[] = []
    for (let at = 0; at < message.length; at += size) {
      const part = message.subarray(at, at + size)
      records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part)
    }
    return Buffer.concat(records)
  }
  const looks = (bytes: Buffer) => {
    let found = opening(bytes.subarray(0, 0))
    let count = 1
    for (let have = 0; found.kind === 'more' && have < bytes.length; ) {
      const { bytes: wanted } = found
      assert.ok(wanted > have, `${have} bytes`)
      for (let length = have + 1; length < Math.min(wanted, bytes.length + 1); length++)
        assert.equal(opening(bytes.subarray(0, length)).kind, 'more', `${length} of ${wanted} bytes`)
      have = Math.min(wanted, bytes.length)
      found = opening(bytes.subarray(0, have))
      count += 1
    }
    return count
  }
  assert.ok(looks(modern) < 8)
  for (const size of [2, 3, 5, 100]) assert.ok(looks(cut(size)) < 8 + (2 * message.length) / size, `${size}`)
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 200 }), fc.nat(3000), fc.nat(255), (size, at, byte) => {
      const bytes = cut(size)
      bytes[at % Math.min(40, bytes.length)] = byte
      looks(bytes)
    }),
    { numRuns: 30 },
  )
})

test('what begins otherwise is no TLS', () => {
  assert.equal(opening(Buffer.from('GET / HTTP/1.1\r\n')).kind, 'plain')
  assert.equal(opening(Buffer.from([0x80, 0x2e, 1, 0, 2])).kind, 'plain')
})

test('what can become no first message is not waited for', () => {
  const broken = (...bytes: number[]) => opening(Buffer.from(bytes)).kind
  assert.equal(broken(22, 2, 0, 0, 5, 1, 0, 0, 1, 0), 'broken', 'no version of TLS')
  assert.equal(broken(22, 3, 1, 0, 0), 'broken', 'an empty record')
  assert.equal(broken(22, 3, 1, 0xff, 0xff), 'broken', 'a record that is too long')
  assert.equal(broken(22, 3, 1, 0, 4, 2, 0, 0, 0), 'broken', 'the message of a server')
  assert.equal(broken(22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff), 'broken', 'a message that is too long')
  assert.equal(broken(22, 3, 1, 0, 5, 1, 0, 0, 1, 3), 'broken', 'a message that ends before it has begun')
})

test('whatever comes, it is looked at without harm', () => {
  const one = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.record({ at: fc.nat(modern.length - 1), byte: fc.nat(255) }).map(({ at, byte }) => {
      const bytes = Buffer.from(modern)
      bytes[at] = byte
      return bytes
    }),
  )
  fc.assert(
    fc.property(one, (bytes) => {
      const found = opening(Buffer.from(bytes))
      if (found.kind === 'hello') assert.match(found.hello.serverName, /^[\x21-\x7e]*$/)
    }),
    { numRuns: 2000 },
  )
})
