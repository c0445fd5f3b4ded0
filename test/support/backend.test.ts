import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend, echo } from './backend.ts'
import { ask, dial, exchange, webSocket } from './client.ts'
import { chunk, headText } from './message.ts'

test('a plain answer comes as written, and the request is remembered as its bytes came', async () => {
  await using peer = await backend({ status: 201, headers: { 'Set-Cookie': ['a=1', 'b=2'] }, body: 'made' })
  const reply = await ask(peer.address, '/x?y', { method: 'POST', headers: { 'X-One': 'é' }, body: 'hello' })
  assert.equal(reply.status, 201)
  assert.deepEqual(reply.head.all('set-cookie'), ['a=1', 'b=2'])
  assert.equal(reply.text, 'made')
  const [seen] = peer.requests
  assert.equal(seen?.head.raw, 'POST /x?y HTTP/1.1\r\nHost: test\r\nX-One: é\r\nContent-Length: 5\r\n\r\n')
  assert.equal((await seen?.body())?.body.toString(), 'hello')
})

test('one connection carries several requests, HEAD and chunked ones among them', async () => {
  await using peer = await backend()
  using client = await dial(peer.address)
  assert.equal((await client.ask('/1', { method: 'HEAD' })).status, 200)
  assert.equal((await client.ask('/2', { method: 'PUT', body: ['ab', 'c'] })).status, 200)
  assert.deepEqual(peer.targets, ['/1', '/2'])
  assert.equal((await peer.requests[1]?.body())?.body.toString(), 'abc')
  assert.equal(peer.connections, 1)
  assert.equal(peer.busy, 0)
})

test('interim responses, chunks and trailers are told apart', async () => {
  await using peer = await backend(async (x) => {
    await x.send(headText('HTTP/1.1 103 Early Hints', { Link: '</a>' }))
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    await x.send(Buffer.concat([chunk('one'), chunk('two'), Buffer.from('0\r\nX-Sum: 6\r\n\r\n')]))
  })
  const reply = await ask(peer.address)
  assert.deepEqual(
    reply.interim.map((head) => head.header('link')),
    ['</a>'],
  )
  assert.equal(reply.text, 'onetwo')
  assert.deepEqual(reply.trailers, ['X-Sum', '6'])
  assert.ok(reply.complete)
})

test('FIN and RST are told apart at both ends', async () => {
  const ends: string[] = []
  await using peer = await backend(async (x) => {
    if (x.target === '/fin') return x.end()
    if (x.target === '/rst') return x.reset()
    ends.push(await x.gone)
  })
  assert.equal(await exchange(peer.address, 'GET /fin HTTP/1.1\r\n\r\n'), '')
  using client = await dial(peer.address)
  await client.write('GET /rst HTTP/1.1\r\n\r\n')
  assert.equal(await client.closed, 'reset')
  for (const how of ['end', 'reset'] as const) {
    using gone = await dial(peer.address)
    await gone.write('GET /wait HTTP/1.1\r\n\r\n')
    while (peer.busy === 0) await new Promise(setImmediate)
    gone[how]()
    while (peer.busy > 0) await new Promise(setImmediate)
  }
  assert.deepEqual(ends, ['fin', 'reset'])
})

test('a body that is cut off is not complete', async () => {
  await using peer = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour')
    x.end()
  })
  const reply = await ask(peer.address)
  assert.equal(reply.text, 'four')
  assert.equal(reply.complete, false)
})

test('an unread flood stops the sender', async () => {
  let sent = 0
  await using peer = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\n\r\n')
    const piece = Buffer.alloc(1 << 20)
    while (!x.socket.destroyed && sent < 64 << 20) {
      await x.send(piece)
      sent += piece.length
    }
  })
  using client = await dial(peer.address)
  await client.write('GET / HTTP/1.1\r\n\r\n')
  await client.head()
  let before = -1
  while (sent !== before) {
    before = sent
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.ok(sent < 32 << 20, `${sent} bytes were sent`)
})

test('a WebSocket handshake turns the connection into a tunnel', async () => {
  await using peer = await backend(echo)
  const { client, head, status, accepted } = await webSocket(peer.address, '/ws')
  assert.equal(status, 101)
  assert.equal(head.header('sec-websocket-accept'), accepted)
  await client.write('\x81\x00')
  assert.equal((await client.inbox.take(2))?.toString('latin1'), '\x81\x00')
  client.close()
})
