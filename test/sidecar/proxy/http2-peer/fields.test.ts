import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestFields } from '../../../../sidecar/proxy/http2-peer/fields.ts'

test('what speaks of a connection has no place in HTTP/2, and a host is said in its own way', () => {
  const head = [
    'GET /a?b HTTP/1.1',
    'Host: a.example:81',
    'Connection: X',
    'Keep-Alive: 5',
    'Proxy-Connection: x',
    'Transfer-Encoding: chunked',
    'Upgrade: x',
    'HTTP2-Settings: x',
    'TE: gzip',
    'X-One: 1',
    'X-Empty:',
  ]
  assert.deepEqual(requestFields(`${head.join('\r\n')}\r\n\r\n`, 'http', 'b'), [
    ...[':method', 'GET', ':scheme', 'http', ':path', '/a?b', ':authority', 'a.example:81'],
    ...['x-one', '1', 'x-empty', ''],
  ])
})

test('a request that names no host is for the one that is given', () => {
  for (const head of ['GET / HTTP/1.1\r\n\r\n', 'GET / HTTP/1.1\r\nHost: \r\nTE: trailers\r\n\r\n']) {
    const fields = requestFields(head, 'https', '[::1]:81')
    assert.equal(fields[fields.indexOf(':authority') + 1], '[::1]:81')
  }
})
