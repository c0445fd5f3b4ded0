import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { dial } from '../../support/client.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import { type Http2Peer, http2Peer } from '../../support/http2-peer.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

interface Seen {
  readonly path: string
  readonly body: string
  /** Names and values in turn; undefined where none came. */
  readonly trailers: readonly string[] | undefined
}

let peer: Http2Peer
let it: Sidecar
const seen: Seen[] = []

before(async () => {
  peer = await http2Peer((stream, fields) => {
    const path = String(fields[':path'])
    let body = ''
    let trailers: readonly string[] | undefined
    stream.setEncoding('latin1').on('data', (part: string) => {
      body += part
    })
    stream.on('trailers', (_fields: unknown, _flags: number, raw: string[]) => {
      trailers = raw
    })
    stream.on('end', () => {
      // What breaks off ends, too, but is closed by then.
      if (stream.destroyed || stream.closed) return
      seen.push({ path, body, trailers })
      if (path === '/again' && seen.length === 1) stream.close(7)
      else stream.respond({ ':status': 200 }, { endStream: true })
    })
  })
  it = await start(
    `worker_processes 1;
     http {
       upstream up { server ${peer.address}; }
       server {
         listen 127.0.0.1:PORT; http2 on; proxy_http_version 2; proxy_set_header X-Own 1;
         location / { proxy_pass http://up; }
         location /streamed { proxy_pass http://up; proxy_request_buffering off; }
         location /grpc { grpc_pass grpc://up; }
         location /bare { proxy_pass http://up; proxy_pass_request_headers off; }
         location /other { proxy_pass http://up; proxy_set_body other; }
       }
     }`,
  )
})

beforeEach(() => {
  seen.length = 0
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

/** Asks by HTTP/2, with trailers after a body in parts. */
async function asked(
  path: string,
  parts: readonly string[],
  trailers: Readonly<Record<string, string | string[]>>,
): Promise<number> {
  await using client = await http2(it.port)
  const stream = client.session.request(
    { ':path': path, ':method': 'POST' },
    { endStream: false, waitForTrailers: true },
  )
  stream.on('error', () => {})
  stream.on('wantTrailers', () => {
    if (!stream.destroyed) stream.sendTrailers(trailers)
  })
  for (const part of parts) stream.write(part)
  stream.end()
  return (await answerOn(stream)).status
}

for (const path of ['/whole', '/streamed', '/grpc']) {
  test(`trailers of an HTTP/2 client go on to an HTTP/2 peer: ${path}`, async () => {
    assert.equal(await asked(path, ['ab', 'c'], { 'x-sum': ['1', '2'], 'x-more': 'caf\xe9' }), 200)
    assert.deepEqual(seen, [
      { path, body: 'abc', trailers: ['x-sum', '1', 'x-sum', '2', 'x-more', 'caf\xe9'] },
    ])
  })

  test(`trailers come after a body that is empty, and a body without any ends without: ${path}`, async () => {
    assert.equal(await asked(path, [], { 'x-sum': '1' }), 200)
    assert.equal(await asked(path, ['abc'], {}), 200)
    await using client = await http2(it.port)
    assert.equal((await client.ask({ ':path': path, ':method': 'POST' }, 'abc')).status, 200)
    assert.deepEqual(seen, [
      { path, body: '', trailers: ['x-sum', '1'] },
      { path, body: 'abc', trailers: undefined },
      { path, body: 'abc', trailers: undefined },
    ])
  })

  test(`trailers of a chunked body go on to an HTTP/2 peer: ${path}`, async () => {
    using client = await dial(it.port)
    await client.write(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    await client.write('3\r\nabc\r\n0\r\nX-Sum: 9\r\nX-Hop: 1\r\n\r\n')
    assert.equal((await client.reply()).status, 200)
    assert.equal((await client.ask(path, { method: 'POST', body: ['d', 'e'] })).status, 200)
    assert.deepEqual(seen, [
      { path, body: 'abc', trailers: ['x-sum', '9'] },
      { path, body: 'de', trailers: undefined },
    ])
  })
}

test('fields that a request is framed, routed or let in by do not go on in trailers', async () => {
  const trailers = {
    'x-kept': 'yes',
    'x-own': 'forged',
    'x-forwarded-for': '1.2.3.4',
    forwarded: 'for=1.2.3.4',
    'content-type': 'text/plain',
    authorization: 'Basic eA==',
    cookie: 'a=1',
    expect: '100-continue',
    'if-match': '"a"',
    range: 'bytes=0-1',
    trailer: 'x-kept',
    x_kept: 'no',
  }
  for (const path of ['/whole', '/streamed']) {
    using client = await dial(it.port)
    await client.write(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n`,
    )
    const lines = Object.entries({
      ...trailers,
      host: 'b',
      'content-length': '3',
      te: 'trailers',
      upgrade: 'h2c',
    })
    await client.write(`${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
    assert.equal((await client.reply()).status, 200)
    assert.equal(await asked(path, ['a'], trailers), 200)
    assert.deepEqual(seen.splice(0), Array(2).fill({ path, body: 'a', trailers: ['x-kept', 'yes'] }))
  }
})

test('trailers that are too long are no end of a request', async () => {
  assert.equal(await asked('/streamed', ['abc'], { 'x-sum': 'a'.repeat(15_000) }), 200)
  assert.equal(await asked('/streamed', ['abc'], { 'x-sum': 'a'.repeat(17_000) }), 0)
  assert.equal(seen.length, 1)
})

test('trailers go again with a request that is sent again', async () => {
  assert.equal(await asked('/again', ['abc'], { 'x-sum': '1' }), 200)
  assert.deepEqual(seen, Array(2).fill({ path: '/again', body: 'abc', trailers: ['x-sum', '1'] }))
})

test('a request whose fields or body do not go on has no trailers', async () => {
  assert.equal(await asked('/bare', ['abc'], { 'x-sum': '1' }), 200)
  assert.equal(await asked('/other', ['abc'], { 'x-sum': '1' }), 200)
  assert.deepEqual(seen, [
    { path: '/bare', body: 'abc', trailers: undefined },
    { path: '/other', body: 'other', trailers: undefined },
  ])
})
