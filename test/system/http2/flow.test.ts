import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import { dialFrames, frame, get, number } from '../../support/http2-frames.ts'
import { eventually, type Lab, lab, residentBytes } from '../../support/invariants.ts'
import { chunk } from '../../support/message.ts'

let peer: Backend
let it: Lab

before(async () => {
  peer = await backend((x) => x.reply())
  it = await lab(
    `upstream up { server ${peer.address}; }
     server {
       listen 127.0.0.1:PORT; http2 on; client_max_body_size 0;
       location / { proxy_pass http://up; proxy_request_buffering off; }
       location /at-once { proxy_pass http://up; proxy_request_buffering off; proxy_buffering off; }
     }`,
    [peer],
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

test('bodies pass byte for byte both ways, whatever their length', async () => {
  peer.script = async (x) => x.reply({ body: (await x.body()).body })
  await using client = await http2(it.port)
  for (const length of [0, 1, 16_383, 16_384, 65_535, 65_536, 300_001, 2_000_003]) {
    const body = Buffer.alloc(length)
    for (let i = 0; i < length; i += 97) body[i] = i % 251
    for (const said of [true, false]) {
      const answer = await client.ask({ ':method': 'POST', ...(said && { 'content-length': length }) }, body)
      assert.equal(answer.status, 200)
      assert.ok(Buffer.from(answer.body, 'latin1').equals(body), `${length} bytes`)
    }
  }
  await it.settle(16)
})

test('a body without a length goes to the peer in chunks, one with a length with it', async () => {
  peer.script = async (x) => {
    await x.body()
    const { head } = x
    await x.reply({ body: `${head.header('content-length')} ${head.header('transfer-encoding')}` })
  }
  await using client = await http2(it.port)
  const unsaid = await client.ask({ ':method': 'POST' }, 'abc')
  assert.equal(unsaid.body, 'undefined chunked')
  const said = await client.ask({ ':method': 'POST', 'content-length': 3 }, 'abc')
  assert.equal(said.body, '3 undefined')
  const none = await client.ask({ ':method': 'POST' })
  assert.equal(none.body, '0 undefined')
})

test('request and answer stream both ways at once', async () => {
  peer.script = async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    await x.body((piece) => void x.send(chunk(piece)))
    x.done()
    await x.send('0\r\n\r\n')
  }
  await using client = await http2(it.port)
  const stream = client.begin({ ':method': 'POST', ':path': '/at-once' }, false)
  const heard: string[] = []
  stream.on('data', (piece: Buffer) => heard.push(piece.toString()))
  for (const word of ['one', 'two', 'three']) {
    stream.write(word)
    await eventually(`${word} comes back`, () => heard.join(' ').includes(word))
  }
  stream.end()
  await answerOn(stream)
  assert.equal(heard.join(' '), 'one two three')
})

test('a peer that takes nothing holds its client up, at little memory, and no other', async () => {
  let go = () => {}
  const wait = new Promise<void>((resolve) => {
    go = resolve
  })
  let came = 0
  peer.script = async (x) => {
    if (x.target !== '/slow') return x.reply({ body: 'other' })
    x.socket.pause()
    await wait
    x.socket.resume()
    await x.body((piece) => {
      came += piece.length
    })
    await x.reply({ body: 'taken' })
  }
  await using client = await http2(it.port)
  const before = await residentBytes(it.sidecar.pid)
  const stream = client.begin({ ':method': 'POST', ':path': '/slow' }, false)
  const size = 64 << 20
  stream.end(Buffer.alloc(size))
  const answer = answerOn(stream)
  await sleep(700)
  const held = (await residentBytes(it.sidecar.pid)) - before
  assert.ok(held < 40e6, `${(held / 1e6).toFixed(0)} MB`)
  const other = await client.ask({ ':path': '/other' })
  assert.equal(other.body, 'other')
  go()
  assert.equal((await answer).body, 'taken')
  assert.equal(came, size)
  await it.settle(undefined)
})

test('a client that takes little holds its peer up, at little memory, and gets everything in the end', async () => {
  // More than twice what the kernel holds between the peer and the program: some megabytes, some ten times as many where
  // the connection was busy before.
  const size = 96 << 20
  let sent = 0
  peer.script = async (x) => {
    if (x.target !== '/large') return x.reply({ body: 'other' })
    await x.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    const piece = Buffer.alloc(1 << 20)
    for (; sent < size; sent += piece.length) await x.send(piece)
    x.done()
  }
  await using client = await http2(it.port)
  const before = await residentBytes(it.sidecar.pid)
  const stream = client.begin({ ':path': '/large' })
  await sleep(700)
  const held = (await residentBytes(it.sidecar.pid)) - before
  assert.ok(held < 20e6, `${(held / 1e6).toFixed(0)} MB`)
  assert.ok(sent < size / 2, `${sent} bytes were taken from the peer`)
  assert.equal((await client.ask({ ':path': '/other' })).body, 'other')
  let got = 0
  stream.on('data', (piece: Buffer) => {
    got += piece.length
  })
  await answerOn(stream)
  assert.equal(got, size)
  await it.settle(undefined)
})

test('a client that opens its window bit by bit gets everything', async () => {
  peer.script = (x) => x.reply({ body: 'x'.repeat(200) })
  using client = await dialFrames(it.port, [[4, 1]])
  client.headers(1, get)
  let got = 0
  for (let seen = 0; got < 200; seen += 1) {
    await eventually('more comes', () => client.frames.filter(({ type }) => type === 'data').length > seen)
    got = client.frames.reduce((sum, { type, payload }) => sum + (type === 'data' ? payload.length : 0), 0)
    client.send(frame('window', 0, 1, number(7)))
  }
  assert.equal(got, 200)
})
