import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyHeader, readProxyHeader } from '../../../sidecar/net/proxy-protocol.ts'

const read = (text: string) => readProxyHeader(Buffer.from(text, 'latin1'))
const signature = '\r\n\r\n\0\r\nQUIT\n'
const ends = (remoteAddr: string, serverAddr: string) => ({
  remoteAddr,
  remotePort: '4711',
  serverAddr,
  serverPort: '80',
})

test('a line of version 1 says who called whom, and how long it is', () => {
  assert.deepEqual(read('PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\r\nGET /'), {
    addresses: { addr: '192.0.2.1', port: '4711', serverAddr: '198.51.100.2', serverPort: '80' },
    length: 43,
  })
  assert.deepEqual(read('PROXY TCP6 2001:DB8::1 ::1 1 65535\r\n'), {
    addresses: { addr: '2001:db8::1', port: '1', serverAddr: '::1', serverPort: '65535' },
    length: 36,
  })
})

test('UNKNOWN and LOCAL say nothing of addresses', () => {
  assert.deepEqual(read('PROXY UNKNOWN\r\nx'), { addresses: undefined, length: 15 })
  assert.deepEqual(read('PROXY UNKNOWN ff ff 1 1\r\nx'), { addresses: undefined, length: 25 })
  assert.deepEqual(read(`${signature}\x20\x00\x00\x00x`), { addresses: undefined, length: 16 })
  const unix = `${signature}\x21\x31\x00\xd8${'\0'.repeat(216)}`
  assert.deepEqual(read(unix), { addresses: undefined, length: 232 })
})

test('of a header that has not come in full more is asked for, byte by byte', () => {
  for (const whole of [
    'PROXY TCP4 192.0.2.1 198.51.100.2 4711 80\r\n',
    proxyHeader('v2', ends('192.0.2.1', '198.51.100.2')).toString('latin1'),
    proxyHeader('v2', ends('2001:db8::1', '::1')).toString('latin1'),
  ]) {
    for (let i = 0; i < whole.length; i++) assert.equal(read(whole.slice(0, i)), undefined, whole.slice(0, i))
    assert.equal(typeof read(whole), 'object')
  }
})

test('what is no header is refused as soon as it shows', () => {
  for (const text of [
    'G',
    'PROXX',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4711\r\n',
    'PROXY TCP4 2001:db8::1 ::1 1 2\r\n',
    'PROXY TCP4 192.0.2.1 198.51.100.2 4711 65536\r\n',
    'PROXY TCP4  192.0.2.1 198.51.100.2 4711 80\r\n',
    'PROXY TCP6 fe80::1%eth0 ::1 4711 80\r\n',
    'PROXY UDP4 192.0.2.1 198.51.100.2 4711 80\r\n',
    `${signature}\x31\x11\x00\x0c${'\0'.repeat(12)}`,
    `${signature}\x22\x11\x00\x0c${'\0'.repeat(12)}`,
    `${signature}\x21\x11\x00\x0b${'\0'.repeat(11)}`,
    '\r\n\r\n\0\r\nQUIX',
  ]) {
    assert.match(JSON.stringify(read(text)), /"fault":"(?:broken header|unknown )/, JSON.stringify(text))
  }
  assert.deepEqual(read(`PROXY UNKNOWN ${'x'.repeat(100)}`), { fault: 'header too long' })
  assert.deepEqual(read(`${signature}\x21\x11\xff\xff`), { fault: 'header too long' })
})

test('what is appended to the addresses of version 2 is kept as it is', () => {
  const header = proxyHeader('v2', ends('192.0.2.1', '198.51.100.2'))
  header[15] = 12 + 7
  const found = readProxyHeader(Buffer.concat([header, Buffer.from('\x01\x00\x04spdyrest')]))
  assert.deepEqual(found, {
    addresses: {
      addr: '192.0.2.1',
      port: '4711',
      serverAddr: '198.51.100.2',
      serverPort: '80',
      more: Buffer.from('\x01\x00\x04spdy'),
    },
    length: 28 + 7,
  })
})

test('a header that is written is read as what it was written of', () => {
  for (const version of ['v1', 'v2'] as const) {
    for (const [from, to] of [
      ['192.0.2.1', '198.51.100.2'],
      ['2001:db8::1', '::1'],
      ['fe80:0:0:1::2', '2001:0:0:1::'],
    ] as const) {
      const header = readProxyHeader(proxyHeader(version, ends(from, to)))
      assert.ok(header && 'addresses' in header)
      const { addr, serverAddr, port, serverPort } = header.addresses!
      const same = (text: string) => new URL(text.includes(':') ? `http://[${text}]` : `http://${text}`).host
      assert.deepEqual([same(addr), same(serverAddr), port, serverPort], [same(from), same(to), '4711', '80'])
    }
  }
})

test('addresses of two families are told as IPv6', () => {
  assert.equal(
    `${proxyHeader('v1', ends('2001:db8::1', '198.51.100.2'))}`,
    'PROXY TCP6 2001:db8::1 ::ffff:198.51.100.2 4711 80\r\n',
  )
  assert.deepEqual(readProxyHeader(proxyHeader('v2', ends('192.0.2.1', '::1'))), {
    addresses: { addr: '192.0.2.1', port: '4711', serverAddr: '::1', serverPort: '80' },
    length: 52,
  })
})

test('where an end has no address, that is said', () => {
  assert.equal(`${proxyHeader('v1', ends('unix:', 'unix:/x'))}`, 'PROXY UNKNOWN\r\n')
  assert.equal(proxyHeader('v2', ends('unix:', 'unix:/x')).toString('latin1'), `${signature}\x20\x00\x00\x00`)
})
