import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readHead } from '../../../../sidecar/proxy/http2/head.ts'

const get = [':method', 'GET', ':scheme', 'http', ':path', '/', ':authority', 'a.example'] as const

/** Reads a head that is one. */
function head(more: readonly string[], ended = true) {
  const read = readHead([...get, ...more], ended, 8192)
  if ('status' in read) throw new Error(`${read.status} ${read.why}`)
  return read
}

/** Status and reason of a head that is refused. */
function refusal(raw: readonly string[], maxHead = 8192): string {
  const read = readHead(raw, true, maxHead)
  return 'status' in read ? `${read.status} ${read.why}` : 'served'
}

test('the authority becomes the Host field, and parts of a cookie one', () => {
  const { headers, method, target, version } = head(['cookie', 'a=1', 'x-a', '1', 'cookie', 'b=2'])
  assert.deepEqual(headers, ['host', 'a.example', 'x-a', '1', 'cookie', 'a=1; b=2'])
  assert.deepEqual([method, target, version], ['GET', '/', '2.0'])
})

test('a Host field of the same host counts once, one of another host stays beside it', () => {
  assert.deepEqual(head(['host', 'A.Example']).headers, ['host', 'a.example'])
  assert.deepEqual(head(['host', 'b']).headers, ['host', 'a.example', 'host', 'b'])
})

test('how a body ends is known by the stream and by its length', () => {
  const framing = (more: readonly string[], ended: boolean) => {
    const { framing, bodyLength } = head(more, ended)
    return `${framing} ${bodyLength}`
  }
  assert.equal(framing([], true), 'none 0')
  assert.equal(framing([], false), 'chunked 0')
  assert.equal(framing(['content-length', '5'], false), 'length 5')
  assert.equal(framing(['content-length', '0'], false), 'none 0')
  assert.equal(framing(['content-length', '0'], true), 'none 0')
})

test('a 100 is waited for only before a body, and nothing else is', () => {
  assert.equal(head(['expect', '100-Continue'], false).expectsContinue, true)
  assert.equal(head(['expect', '100-continue'], true).expectsContinue, false)
  assert.equal(refusal([...get, 'expect', 'x']), '417 unknown expectation')
})

test('trailers are taken by who says so, and odd names are noted', () => {
  assert.deepEqual([head([]).takesTrailers, head(['te', 'trailers']).takesTrailers], [false, true])
  assert.deepEqual([head(['x-a', '']).odd, head(['x_a', '']).odd], [false, true])
})

test('what HTTP/1.1 could not say, or in two ways, is refused', () => {
  const others = get.slice(2)
  assert.equal(refusal([':method', 'get', ...others]), '400 invalid method')
  assert.equal(refusal([':method', 'CONNECT', ...others]), '405 CONNECT')
  assert.equal(refusal([...get.slice(0, 4), ':path', 'http://b/']), '400 invalid path')
  assert.equal(refusal([...get.slice(0, 4), ':path', '*']), '400 invalid path')
  assert.equal(refusal([':method', 'OPTIONS', ':path', '*']), 'served')
  assert.equal(refusal([...get.slice(0, 4), ':path', '/a b']), '400 invalid path')
  assert.equal(refusal([...get, 'x-a', 'a\nb']), '400 invalid value of header x-a')
  assert.equal(refusal([...get, 'x a', 'b']), '400 invalid header name')
  assert.equal(refusal([...get, 'content-length', '5', 'content-length', '5']), '400 repeated content-length')
  assert.equal(refusal([...get, 'content-length', '0x5']), '400 invalid content-length')
})

test('a head counts by what HTTP/1.1 would write, and has a limit', () => {
  assert.equal(refusal([...get, 'x-a', 'a'.repeat(100)], 200), 'served')
  assert.equal(refusal([...get, 'x-a', 'a'.repeat(100)], 150), '431 header too large')
})
