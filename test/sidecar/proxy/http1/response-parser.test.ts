import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HeadContext, ResponseHead } from '../../../../sidecar/proxy/http1/head.ts'
import { ResponseParser } from '../../../../sidecar/proxy/http1/response-parser.ts'
import { fc } from '../../../support/property.ts'

/** Feeds a response in the given pieces and writes down what the parser told, one word a fact. */
function read(
  pieces: readonly string[],
  context: Partial<HeadContext> = {},
  maxHead = 8192,
  close = false,
): string {
  const told: string[] = []
  let body = ''
  const parser = new ResponseParser({
    interim: (status) => told.push(String(status)),
    head: (head: ResponseHead) =>
      told.push(`${head.status} ${head.framing}${head.persistent ? '' : ' close'}`),
    data: (chunk) => {
      body += chunk.toString('latin1')
    },
    end: (trailers) => told.push(`end(${body})${trailers ? ` ${trailers.join('=')}` : ''}`),
  })
  const events = {
    interim: (status: number) => told.push(String(status)),
    head: (head: ResponseHead) =>
      told.push(`${head.status} ${head.framing}${head.persistent ? '' : ' close'}`),
    data: (chunk: Buffer) => {
      body += chunk.toString('latin1')
    },
    end: (trailers: string[] | undefined) =>
      told.push(`end(${body})${trailers ? ` ${trailers.join('=')}` : ''}`),
  }
  parser.begin(events, { method: 'GET', upgrade: false, ...context }, maxHead)
  for (const piece of pieces) {
    const fault = parser.feed(Buffer.from(piece, 'latin1'))
    if (fault) return [...told, `${fault.reason}: ${fault.detail}`].join(', ')
  }
  if (close) told.push(parser.close() ? 'closed well' : 'cut')
  if (parser.rest) told.push(`rest(${parser.rest.toString('latin1')})`)
  return told.join(', ')
}

const cases: readonly [string, string, Partial<HeadContext>, string][] = [
  ['a counted body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', {}, '200 length, end(hello)'],
  [
    'a chunked body with an extension and trailers',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nX-Sum: 9\r\n\r\n',
    {},
    '200 chunked, end(hello) X-Sum=9',
  ],
  ['no body at all', 'HTTP/1.1 204 No Content\r\n\r\n', {}, '204 none, end()'],
  [
    'HEAD with a length',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    { method: 'HEAD' },
    '200 none, end()',
  ],
  [
    'HEAD with an announced chunked body',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    { method: 'HEAD' },
    '200 none, end()',
  ],
  ['a status without a reason', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', {}, '200 none, end()'],
  [
    'interim answers before the final one',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
    {},
    '100, 103, 200 length, end(x)',
  ],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', {}, '200 length close, end(x)'],
  [
    'HTTP/1.0 that keeps the connection',
    'HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx',
    {},
    '200 length, end(x)',
  ],
  [
    'Connection: close',
    'HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n',
    {},
    '200 none close, end()',
  ],
  [
    'bytes after the end',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxyz',
    {},
    '200 length, end(x), rest(yz)',
  ],
  [
    'a switch of protocols',
    'HTTP/1.1 101 S\r\nUpgrade: w\r\n\r\nabc',
    { upgrade: true },
    '101 none, end(), rest(abc)',
  ],
  [
    'a line feed alone after the status line',
    'HTTP/1.1 200 OK\nX: y\n',
    {},
    'invalid_header: invalid status line',
  ],
  ['a 101 that nobody asked for', 'HTTP/1.1 101 S\r\n\r\n', {}, 'invalid_header: unasked 101'],
  [
    'equal lengths twice',
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx',
    {},
    '200 length, end(x)',
  ],
  [
    'a length beside chunked',
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n',
    {},
    'invalid_header: both content-length and transfer-encoding',
  ],
]

for (const [name, text, context, told] of cases) {
  test(`reads ${name}, in one piece and byte by byte`, () => {
    assert.equal(read([text], context), told)
    assert.equal(read(text.split(''), context).replace(/rest\(.*\)/, ''), told.replace(/rest\(.*\)/, ''))
  })
}

const refused: readonly [string, string][] = [
  ['1000 as a status', 'HTTP/1.1 1000 X\r\n\r\n'],
  ['099 as a status', 'HTTP/1.1 099 X\r\n\r\n'],
  ['letters as a status', 'HTTP/1.1 abc\r\n\r\n'],
  ['another protocol', 'ICY 200 OK\r\n\r\n'],
  ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['different lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n'],
  ['a signed length', 'HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n'],
  ['a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
  ['a hexadecimal length', 'HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\n'],
  ['a length in powers of ten', 'HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n'],
  ['a length beyond counting', 'HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n'],
  ['an unknown encoding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n'],
  ['an encoding after chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n'],
  ['two encodings', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a blank before the colon', 'HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n'],
  ['a folded line', 'HTTP/1.1 200 OK\r\nX-A: 1\r\n  2\r\n\r\n'],
  ['a bare line feed', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n'],
  ['a NUL in a value', 'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n'],
]

for (const [name, text] of refused) {
  test(`refuses ${name}`, () => assert.match(read([text]), /^invalid_header: /))
}

test('refuses a chunk that is longer than its size, a bare line feed and an endless size', () => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  assert.match(read([`${head}2\r\nabc\r\n`]), /body_cut: chunk longer than its size$/)
  assert.match(read([`${head}2\nab`]), /body_cut: bare line feed/)
  assert.match(read([`${head}${'0'.repeat(5000)}`]), /body_cut: chunk line too long$/)
  assert.match(read([`${head}-2\r\n`]), /body_cut: invalid chunk size$/)
})

test('says that a head is too large before it has ended', () => {
  assert.match(read([`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(5000)}`], {}, 4096), /^header_overflow/)
  assert.match(read([`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(5000)}\r\n\r\n`], {}, 4096), /^header_overflow/)
})

test('tells a body that ends with the connection from one that is cut off', () => {
  assert.equal(read(['HTTP/1.1 200 OK\r\n\r\nabc'], {}, 8192, true), '200 close close, end(abc), closed well')
  assert.equal(read(['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc'], {}, 8192, true), '200 length, cut')
  assert.equal(
    read(['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'], {}, 8192, true),
    '200 chunked, cut',
  )
})

test('reads any cut of a response like the whole of it', () => {
  const whole = cases.filter(([, , , told]) => !told.includes('rest('))
  fc.assert(
    fc.property(
      fc.constantFrom(...whole),
      fc.array(fc.nat(200), { maxLength: 6 }),
      ([, text, context, told], cuts) => {
        const at = [...new Set(cuts.map((cut) => cut % text.length))].sort((a, b) => a - b)
        const pieces = [0, ...at].map((from, i) => text.slice(from, at[i] ?? text.length))
        assert.equal(read(pieces, context), told)
      },
    ),
    { numRuns: 300, seed: 1 },
  )
})

test('never throws, whatever a peer sends', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 60 }), { maxLength: 5 }), (pieces) => {
      read(['HTTP/1.1 200 OK\r\n', ...pieces], {}, 8192, true)
      read(pieces, {}, 8192, true)
    }),
    { numRuns: 500, seed: 2 },
  )
})
