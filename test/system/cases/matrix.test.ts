import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, dial, exchange } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { chunk, headText } from '../../support/message.ts'

/** Every byte value, and enough of them for several reads. */
const binary = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 31) % 256))

const bodies = {
  none: undefined,
  length: binary,
  chunked: [binary.subarray(0, 10), binary.subarray(10, 40_000), binary.subarray(40_000)],
}

type Answered = (x: Exchange) => Promise<void>
const answers: Record<string, Answered> = {
  length: (x) => x.reply({ body: binary }),
  empty: (x) => x.reply(),
  204: (x) => x.reply({ status: 204 }),
  304: (x) => x.reply({ status: 304, headers: { ETag: '"e"' } }),
  404: (x) => x.reply({ status: 404, body: 'not here' }),
  chunked: async (x) => {
    await x.body()
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    if (x.method === 'HEAD') return
    for (const piece of bodies.chunked) await x.send(chunk(piece))
    await x.send('0\r\n\r\n')
  },
  close: async (x) => {
    await x.body()
    await x.send('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
    if (x.method !== 'HEAD') await x.send(binary)
    x.end()
  },
}

const expected: Record<string, { status: number; body: Buffer }> = {
  length: { status: 200, body: binary },
  empty: { status: 200, body: Buffer.alloc(0) },
  204: { status: 204, body: Buffer.alloc(0) },
  304: { status: 304, body: Buffer.alloc(0) },
  404: { status: 404, body: Buffer.from('not here') },
  chunked: { status: 200, body: binary },
  close: { status: 200, body: binary },
}

let peer: Backend
let byPath: Backend
let six: Backend
let front: Lab

before(async () => {
  peer = await backend()
  byPath = await backend({ body: 'by path' }, { path: join(tmpdir(), `evenkeel-test-${process.pid}.sock`) })
  six = await backend({ body: 'six' }, { host: '::1' })
  front = await lab(
    `upstream peers { server ${peer.address} max_fails=0; }
     upstream others { server ${byPath.address}; }
     log_format addresses '$remote_addr $proxy_add_x_forwarded_for';
     server { listen 127.0.0.1:PORT; listen unix:front.sock; listen [::1]:PORT2;
       client_max_body_size 0; add_header X-From $remote_addr;
       location / { proxy_pass http://peers; }
       location /by-path { proxy_pass http://others; access_log addresses.log addresses;
         access_log access.log attempts; proxy_set_header X-Real-IP $remote_addr;
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }
       location /six { proxy_pass http://${six.address}; }
     }`,
    [peer, byPath, six],
  )
})

after(async () => {
  await front.sidecar.stop()
  for (const one of [peer, byPath, six]) await one.stop()
})

beforeEach(async () => {
  peer.requests.length = 0
  await front.begin()
  peer.script = (x) => answers[x.target.split('/')[1] ?? '']!(x)
})

for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'PROPFIND']) {
  test(`${method}: every body and every framing, on one client connection, byte for byte`, async () => {
    using client = await dial(front.port)
    let count = 0
    for (const [given, body] of Object.entries(bodies)) {
      for (const [kind, want] of Object.entries(expected)) {
        const target = `/${kind}/a%2Fb;c=d//e?x=%41&y`
        const what = `${method} ${given} ${kind}`
        const reply = await client.ask(target, { method, ...(body === undefined ? {} : { body }) })
        count += 1
        assert.equal(reply.status, want.status, what)
        assert.ok(reply.complete, what)
        if (method === 'HEAD') assert.equal(reply.body.length, 0, what)
        else assert.ok(reply.body.equals(want.body), `${what}: ${reply.body.length} bytes`)
        if (kind === '304') assert.equal(reply.header('etag'), '"e"')
        if (kind === 'length') assert.equal(reply.header('content-length'), String(binary.length), what)
        const seen = peer.requests.at(-1)!
        assert.equal(seen.head.start, `${method} ${target} HTTP/1.1`)
        const came = (await seen.body()).body
        assert.ok(
          came.equals(body === undefined ? Buffer.alloc(0) : binary),
          `${what}: ${came.length} bytes came`,
        )
      }
    }
    await front.settle(count)
  })
}

test('HTTP/1.0 clients get every kind of response, ended by its length or by the close', async () => {
  for (const [kind, want] of Object.entries(expected)) {
    const said = await exchange(front.port, `GET /${kind} HTTP/1.0\r\n\r\n`)
    assert.equal(said.slice(9, 12), String(want.status), kind)
    assert.equal(said.slice(said.indexOf('\r\n\r\n') + 4), want.body.toString('latin1'), kind)
    assert.ok(!/^transfer-encoding/im.test(said), kind)
  }
  using client = await dial(front.port)
  for (let i = 0; i < 2; i++) {
    const reply = await client.ask('/length', { version: '1.0', headers: { Connection: 'keep-alive' } })
    assert.ok(reply.body.equals(binary))
    assert.equal(reply.header('connection')?.toLowerCase(), 'keep-alive')
  }
  const seen = peer.requests.map((request) => request.version)
  assert.deepEqual([...new Set(seen)], ['HTTP/1.1'])
  await front.settle(Object.keys(expected).length + 2)
})

test('requests that come in one piece are answered one after another, in order', async () => {
  peer.script = (x) => x.reply({ body: x.target, after: x.target === '/1' ? 50 : 0 })
  using client = await dial(front.port)
  await client.write([1, 2, 3].map((i) => `GET /${i} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  for (const i of [1, 2, 3]) assert.equal((await client.reply()).text, `/${i}`)
  await front.settle(3)
})

test('what follows an answer that closes the connection is not served', async () => {
  peer.script = (x) => x.reply({ body: x.target, after: 30 })
  const last = 'POST /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'
  const said = await exchange(
    front.port,
    `${last}POST /after HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
  )
  assert.equal(said.split('HTTP/1.1 ').length, 2)
  assert.deepEqual(peer.targets, ['/last'])
  await front.settle(1)
})

test('a request is answered before the one after it is found to be none', async () => {
  peer.script = { body: 'good', after: 30 }
  const said = await exchange(front.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\nNO REQUEST\r\n\r\n')
  const statuses = [...said.matchAll(/HTTP\/1\.1 (\d+) /g)].map((match) => match[1])
  assert.deepEqual(statuses, ['200', '400'])
  await front.settle(2)
})

test('a request that comes byte by byte is a request', async () => {
  peer.script = { body: 'ok' }
  using client = await dial(front.port)
  for (const byte of 'POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n') {
    await client.write(byte)
  }
  assert.equal((await client.reply()).text, 'ok')
  assert.equal((await peer.requests[0]?.body())?.body.toString(), 'abc')
  await front.settle(1)
})

test('trailers reach a client that asked for them, and no other', async () => {
  peer.script = async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum' }))
    await x.send('3\r\nabc\r\n0\r\nX-Sum: 3\r\nContent-Length: 9\r\n\r\n')
  }
  const asked = await ask(front.port, '/', { headers: { TE: 'trailers', Connection: 'TE' } })
  assert.equal(asked.text, 'abc')
  assert.deepEqual(asked.trailers, ['X-Sum', '3'])
  assert.equal(peer.requests[0]?.head.header('te'), 'trailers')
  const silent = await ask(front.port)
  assert.equal(silent.text, 'abc')
  assert.deepEqual(silent.trailers, [])
  assert.equal(peer.requests[1]?.head.header('te'), undefined)
  await front.settle(2)
})

test('a peer and a listener may be Unix sockets', async () => {
  const reply = await ask(join(front.sidecar.folder, 'front.sock'), '/by-path')
  assert.equal(reply.text, 'by path')
  assert.equal(reply.header('x-from'), 'unix:')
  const { head } = byPath.requests.at(-1)!
  assert.deepEqual([head.all('x-real-ip'), head.all('x-forwarded-for')], [['unix:'], ['unix:']])
  assert.match(byPath.address, /^unix:\//)
  assert.deepEqual((await front.record()).addresses, [byPath.address])
  assert.ok(Object.hasOwn(await front.peers('others'), byPath.address))
  await front.settle(1)
})

test('a peer and a listener may have IPv6 addresses', async () => {
  const reply = await ask(`[::1]:${front.sidecar.ports['PORT2']}`, '/six')
  assert.equal(reply.text, 'six')
  assert.equal(reply.header('x-from'), '::1')
  assert.deepEqual((await front.record()).addresses, [six.address])
  await front.settle(1)
})
