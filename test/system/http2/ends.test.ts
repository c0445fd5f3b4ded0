import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import { dialFrames, frame, get, number } from '../../support/http2-frames.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import type { Body } from '../../support/message.ts'

let peer: Backend
let it: Lab

const cancel = 8

before(async () => {
  peer = await backend((x) => x.reply())
  it = await lab(
    `upstream up { server ${peer.address}; }
     upstream nobody { server 127.0.0.1:1; }
     server {
       listen 127.0.0.1:PORT; http2 on; client_max_body_size 100k; client_body_timeout 500ms;
       location / { proxy_pass http://up; proxy_read_timeout 1s; }
       location /on { proxy_pass http://up; proxy_ignore_client_abort on; }
       location /nobody { proxy_pass http://nobody; }
       location /page { proxy_pass http://nobody; error_page 502 /sorry; }
       location /sorry { return 200 sorry; }
       location /refused { return 403; }
     }`,
    [peer],
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

test('a client that resets its stream has left: the attempt ends, and nobody is to blame', async () => {
  await it.begin()
  peer.script = async (x) => {
    if (x.target === '/wait') await x.gone
    else await x.reply()
  }
  await using client = await http2(it.port)
  const before = peer.requests.length
  const stream = client.begin({ ':path': '/wait' })
  await eventually('the peer is asked', () => peer.requests.length === before + 1)
  stream.close(cancel)
  await peer.requests.at(-1)!.gone
  assert.equal((await client.ask()).status, 200)
  await it.settle(2)
  const left = (await it.records()).find(({ request }) => request.startsWith('GET /wait'))!
  assert.deepEqual([left.status, left.reasons], [499, ['client_abort']])
  assert.equal((await it.peers('up'))[peer.address]?.health.fails, 0)
})

test('a client that breaks its connection has left with all its streams', async () => {
  await it.begin()
  peer.script = async (x) => void (await x.gone)
  const client = await http2(it.port)
  const before = peer.requests.length
  for (const path of ['/1', '/2', '/3']) client.begin({ ':path': path })
  await eventually('the peer is asked', () => peer.requests.length === before + 3)
  client.session.destroy()
  await it.settle(3)
  const records = (await it.records()).slice(-3)
  assert.deepEqual(
    records.map(({ status, reasons }) => `${status} ${reasons}`),
    ['499 client_abort', '499 client_abort', '499 client_abort'],
  )
  peer.script = (x) => x.reply()
})

test('a client that ends its side of the connection has left, as it has in HTTP/1.1', async () => {
  await it.begin()
  peer.script = async (x) => void (await x.gone)
  using client = await dialFrames(it.port)
  const before = peer.requests.length
  client.headers(1, get)
  await eventually('the peer is asked', () => peer.requests.length === before + 1)
  client.socket.end()
  await it.settle(1)
  await it.left()
  assert.deepEqual((await it.records()).at(-1)?.reasons, ['client_abort'])
  peer.script = (x) => x.reply()
})

test('trailers of a request end its body, and go no further', async () => {
  await it.begin()
  let body: Body | undefined
  peer.script = async (x) => {
    body = await x.body()
    await x.reply()
  }
  using client = await dialFrames(it.port)
  client.headers(1, { ...get, ':method': 'POST' }, 0)
  client.send(frame('data', 0, 1, Buffer.from('abc')))
  client.headers(1, { 'x-trailer': 'a' })
  await client.frame('headers', 1)
  assert.deepEqual([body?.body.toString(), body?.trailers, body?.complete], ['abc', [], true])
  await it.settle(1)
  peer.script = (x) => x.reply()
})

test('where clients may leave without an end to the attempt, it goes on', async () => {
  await it.begin()
  let finish = () => {}
  peer.script = async (x) => {
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    await x.reply({ body: 'late' })
  }
  await using client = await http2(it.port)
  const before = peer.requests.length
  const stream = client.begin({ ':path': '/on' })
  await eventually('the peer is asked', () => peer.requests.length === before + 1)
  stream.close(cancel)
  await sleep(50)
  finish()
  await it.settle(1)
  const [left] = (await it.records()).slice(-1)
  assert.deepEqual([left?.status, left?.statuses, left?.reasons], [200, ['200'], ['-']])
  peer.script = (x) => x.reply()
})

test('an answer that breaks off is reset, after what came of it, and is the fault of its peer', async () => {
  await it.begin()
  peer.script = async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc')
    x.end()
  }
  await using client = await http2(it.port)
  const answer = await client.ask()
  assert.deepEqual([answer.status, answer.body, answer.code], [200, 'abc', 2])
  await it.settle(1)
  const [record] = (await it.records()).slice(-1)
  assert.deepEqual([record?.status, record?.reasons], [200, ['body_cut']])
  peer.script = (x) => x.reply()
})

test('much that came before an answer breaks off still arrives', async () => {
  const piece = 'x'.repeat(400_000)
  peer.script = async (x) => {
    await x.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n61a80\r\n${piece}\r\nzz`)
    x.end()
  }
  await using client = await http2(it.port)
  const answer = await client.ask()
  assert.deepEqual([answer.status, answer.body.length, answer.code], [200, 400_000, 2])
  peer.script = (x) => x.reply()
})

test('failures are answered as in HTTP/1.1', async () => {
  await using client = await http2(it.port)
  const statuses = await Promise.all(
    ['/nobody', '/page', '/refused'].map(async (path) => {
      const { status, body } = await client.ask({ ':path': path })
      return `${status} ${/<title>(.*)<\/title>/.exec(body)?.[1] ?? body}`
    }),
  )
  assert.deepEqual(statuses, ['502 502 Bad Gateway', '502 sorry', '403 403 Forbidden'])
})

test('a body that is too large is refused at once, and another request goes on', async () => {
  await using client = await http2(it.port)
  const stream = client.begin({ ':method': 'POST', 'content-length': 200_000 }, false)
  const answer = await answerOn(stream)
  assert.deepEqual([answer.status, answer.code], [413, 0])
  const unsaid = client.begin({ ':method': 'POST' }, false)
  unsaid.write(Buffer.alloc(150_000))
  assert.equal((await answerOn(unsaid)).status, 413)
  assert.equal((await client.ask()).status, 200)
})

test('a body that does not come in time is refused, and another request goes on', async () => {
  await using client = await http2(it.port)
  const stream = client.begin({ ':method': 'POST' }, false)
  stream.write('x')
  const [late, other] = await Promise.all([answerOn(stream), client.ask()])
  assert.deepEqual([late.status, other.status], [408, 200])
})

test('an answer that comes before the end of the body ends the request in order', async () => {
  await it.begin()
  peer.script = async (x) => {
    x.done()
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly')
  }
  await using client = await http2(it.port)
  // More than is gathered before a peer is asked.
  const stream = client.begin({ ':method': 'POST', 'content-length': 90_000 }, false)
  stream.write(Buffer.alloc(80_000))
  const answer = await answerOn(stream)
  assert.deepEqual([answer.status, answer.body, answer.code], [200, 'early', 0])
  peer.script = (x) => x.reply()
  assert.equal((await client.ask()).status, 200)
})

test('a body that is shorter or longer than it was said to be resets its stream and ends the attempt', async () => {
  peer.script = async (x) => void (await x.gone)
  for (const [length, bytes] of [
    ['9', 'short'],
    ['3', 'longer'],
  ] as const) {
    using client = await dialFrames(it.port)
    client.headers(1, { ...get, ':method': 'POST', 'content-length': length }, 0)
    client.send(frame('data', 1, 1, Buffer.from(bytes)))
    // A connection may be closed for that, too.
    const code = await Promise.race([client.resetOf(1).catch(() => 0), client.end().catch(() => 0)])
    assert.ok(code, `${code}`)
  }
  peer.script = (x) => x.reply()
})

test('a body that its client breaks off never looks whole to the peer', async () => {
  await it.begin()
  const seen = Promise.withResolvers<boolean>()
  peer.script = async (x) => {
    const { complete } = await x.body()
    seen.resolve(complete)
  }
  using client = await dialFrames(it.port)
  client.headers(1, { ...get, ':method': 'POST' }, 0)
  for (let i = 0; i < 6; i += 1) client.send(frame('data', 0, 1, Buffer.alloc(15_000)))
  await eventually('the peer is asked', () => peer.requests.length > 0)
  // Nothing is wrong, says the reset.
  client.send(frame('reset', 0, 1, number(0)))
  const outcome = await Promise.race([seen.promise, sleep(3000, 'never')])
  assert.notEqual(outcome, true)
  peer.script = (x) => x.reply()
})

test('streams beyond the limit are refused, and can be sent again', async () => {
  await using other = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; http2 on; http2_max_concurrent_streams 2; location / { proxy_pass http://up; } }`,
    [peer],
  )
  let finish = () => {}
  const wait = new Promise<void>((resolve) => {
    finish = resolve
  })
  peer.script = async (x) => {
    await wait
    await x.reply()
  }
  using client = await dialFrames(other.port)
  client.headers(1, get)
  client.headers(3, get)
  client.headers(5, get)
  assert.equal(await client.resetOf(5), 7)
  finish()
  await client.frame('headers', 1)
  client.headers(7, get)
  await client.frame('headers', 7)
  peer.script = (x) => x.reply()
})
