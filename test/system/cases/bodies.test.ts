import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { ask, Client, dial, exchange } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { chunk, headText } from '../../support/message.ts'

let peer: Backend
let front: Lab

before(async () => {
  peer = await backend()
  front = await lab(
    `upstream peers { server ${peer.address}; keepalive 4; }
     server { listen 127.0.0.1:PORT; client_max_body_size 0;
       location / { proxy_pass http://peers; }
     }`,
    [peer],
  )
})

beforeEach(() => front.begin())

after(async () => {
  await front.sidecar.stop()
  await peer.stop()
})

test('HEAD is complete at its head, whatever framing that announces, and both connections go on', async () => {
  peer.script = async (x) => {
    if (x.method === 'HEAD') return x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    await x.reply({ body: 'body' })
  }
  using client = await dial(front.port)
  await client.ask('/warm')
  const started = performance.now()
  assert.equal((await client.ask('/', { method: 'HEAD' })).status, 200)
  assert.ok(performance.now() - started < 2000, 'no body is waited for')
  assert.equal((await client.ask('/')).text, 'body')
  assert.equal(new Set(peer.requests.map((request) => request.connection)).size, 1)
  await front.settle(3)
})

test('a client that expects 100 gets exactly one, and then sends its body', async () => {
  const body = Buffer.alloc(1 << 20, 'x')
  for (const also of [false, true]) {
    peer.script = async (x) => {
      if (also) await x.send('HTTP/1.1 100 Continue\r\n\r\n')
      await x.reply({ body: String((await x.body()).body.length) })
    }
    using client = await dial(front.port)
    const headers = { Expect: '100-continue', 'Content-Length': body.length }
    await client.write(Client.bytes('/', { method: 'POST', headers }))
    const interim = await client.inbox.until('\r\n\r\n')
    assert.match(interim?.toString() ?? '', /^HTTP\/1.1 100 /)
    await client.write(body)
    const reply = await client.reply()
    assert.equal(reply.status, 200)
    assert.equal(reply.text, String(body.length))
    assert.equal(reply.interim.length, 0)
    assert.equal(peer.requests.at(-1)?.head.header('expect'), undefined)
    await front.settle(1)
  }
})

test('an early refusal reaches a client that expects 100, without one', async () => {
  peer.script = async (x) => {
    await x.send(headText('HTTP/1.1 413 Too Large', { 'Content-Length': 5, Connection: 'close' }))
    await x.send('large')
    x.end()
  }
  using client = await dial(front.port)
  const headers = { Expect: '100-continue', 'Content-Length': 1 << 20 }
  await client.write(Client.bytes('/', { method: 'POST', headers }))
  const reply = await client.reply()
  assert.equal(reply.status, 413)
  assert.equal(reply.text, 'large')
  assert.equal(reply.interim.length, 0)
  assert.equal(await client.closed, 'fin')
  await front.settle(1)
})

test('interim responses never end the message, and go only to clients that know them', async () => {
  peer.script = async (x) => {
    // Nobody has waited for it.
    await x.send(headText('HTTP/1.1 100 Continue'))
    await x.send(headText('HTTP/1.1 103 Early Hints', { Link: '</style.css>; rel=preload' }))
    await sleep(20)
    await x.send(headText('HTTP/1.1 102 Processing'))
    await sleep(20)
    await x.reply({ body: 'final' })
  }
  const reply = await ask(front.port)
  assert.equal(reply.status, 200)
  assert.equal(reply.text, 'final')
  const hints = reply.interim.filter((head) => head.start.startsWith('HTTP/1.1 103 '))
  assert.deepEqual(
    hints.map((head) => head.header('link')),
    ['</style.css>; rel=preload'],
  )
  assert.ok(reply.interim.every((head) => !head.start.startsWith('HTTP/1.1 100 ')))
  const old = await exchange(front.port, 'GET / HTTP/1.0\r\n\r\n')
  assert.match(old, /^HTTP\/1.1 200 /)
  assert.equal(old.split('HTTP/1.').length, 2)
  assert.ok(old.endsWith('\r\n\r\nfinal'))
  await front.record(2)
  assert.deepEqual(
    (await front.records()).slice(-2).map((record) => record.statuses),
    [['200'], ['200']],
  )
  await front.settle(2)
})

test('an HTTP/1.0 client gets a chunked response without chunks, ended by the close', async () => {
  peer.script = async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    for (const piece of ['one', 'two']) await x.send(chunk(piece))
    await x.send('0\r\n\r\n')
  }
  const said = await exchange(front.port, 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
  assert.ok(said.endsWith('\r\n\r\nonetwo'), said)
  assert.ok(!/transfer-encoding/i.test(said))
  await front.settle(1)
})

test('a chunked response that is cut off is cut off for the client, and counts against the peer', async () => {
  peer.script = async (x) => {
    await x.send(`${headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' })}5\r\nhello\r\n`)
    await sleep(20)
    x.end()
  }
  const before = (await front.peers('peers'))[peer.address]!.health.fails
  const reply = await ask(front.port)
  assert.equal(reply.status, 200)
  assert.equal(reply.text, 'hello')
  assert.equal(reply.complete, false)
  assert.deepEqual((await front.record()).reasons, ['body_cut'])
  assert.equal((await front.peers('peers'))[peer.address]!.health.fails, before + 1)
  await front.settle(1)
})

test('an empty piece is not taken for the end of the chunks', async () => {
  peer.script = async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    for (const piece of ['data', 'data', 'end']) {
      await sleep(60)
      await x.send(chunk(piece))
    }
    await sleep(60)
    await x.send('0\r\n\r\n')
  }
  const reply = await ask(front.port)
  assert.equal(reply.text, 'datadataend')
  assert.ok(reply.complete)
  await front.settle(1)
})

test('a body goes on byte for byte, whatever its type says', async () => {
  peer.script = {}
  const type = 'application/json ; charset=utf-8'
  const body = '  {"m" :\t1 , "m":2}\r\n'
  await ask(front.port, '/', { method: 'POST', headers: { 'Content-Type': type }, body })
  const seen = peer.requests.at(-1)
  assert.equal(seen?.head.header('content-type'), type)
  assert.equal((await seen?.body())?.body.toString(), body)
  await front.settle(1)
})
