import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import {
  dialFrames,
  endHeaders,
  type Frames,
  fields,
  frame,
  get,
  preface,
  statusIn,
} from '../../support/http2-frames.ts'
import { type Lab, lab } from '../../support/invariants.ts'

let peer: Backend
let it: Lab

before(async () => {
  peer = await backend((x) => x.reply())
  it = await lab(
    `upstream up { server ${peer.address}; }
     server {
       listen 127.0.0.1:PORT; http2 on;
       client_header_timeout 1s; large_client_header_buffers 4 2k;
       location / { proxy_pass http://up; }
     }`,
    [peer],
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

type List = Readonly<Record<string, string | readonly string[]>>

/** What becomes of a head, on a connection that goes on afterwards. */
async function outcome(list: List): Promise<string> {
  using client = await dialFrames(it.port)
  client.headers(1, list)
  client.headers(3, get)
  await client.frame('headers', 3)
  const found = client.frames.find(({ stream }) => stream === 1)
  if (found?.type === 'reset') return `reset ${found.payload.readUInt32BE(0)}`
  return found?.type === 'headers' ? 'answered' : 'nothing'
}

const malformed: Readonly<Record<string, List>> = {
  'a name in capitals': { ...get, 'X-One': '1' },
  'a pseudo-field of responses': { ...get, ':status': '200' },
  'an unknown pseudo-field': { ...get, ':more': '1' },
  'two paths': { ...get, ':path': ['/', '/a'] },
  'no path': { ':method': 'GET', ':scheme': 'http', ':authority': 'a' },
  'an empty path': { ...get, ':path': '' },
  'a path with a line break': { ...get, ':path': '/a\r\nb' },
  'no host at all': { ':method': 'GET', ':scheme': 'http', ':path': '/' },
  'an authority with a blank': { ...get, ':authority': 'a b' },
  'user and password in its authority': { ...get, ':authority': 'u:p@a.example' },
  'no method': { ':path': '/', ':scheme': 'http', ':authority': 'a' },
  'no scheme': { ':path': '/', ':method': 'GET', ':authority': 'a' },
  Connection: { ...get, connection: 'close' },
  'Transfer-Encoding': { ...get, 'transfer-encoding': 'chunked' },
  Upgrade: { ...get, upgrade: 'websocket' },
  'Keep-Alive': { ...get, 'keep-alive': '1' },
  'a TE of other than trailers': { ...get, te: 'gzip' },
  'a length without a body': { ...get, 'content-length': '5' },
  'two lengths': { ...get, 'content-length': ['0', '0'] },
  'a length that is no number': { ...get, 'content-length': '+5' },
  'a path that is none': { ...get, ':path': 'a' },
}

for (const [what, list] of Object.entries(malformed)) {
  test(`a head with ${what} resets its stream, and others go on`, async () => {
    assert.equal(await outcome(list), 'reset 1')
  })
}

test('a field with what no field may hold goes no further', async () => {
  const lists = [{ 'x one': '1' }, { 'x-one': '1\r\nx-two: 2' }, { 'x-one': 'a\0b' }, { 'x-one': ' a ' }]
  for (const list of lists) {
    using client = await dialFrames(it.port)
    const before = peer.requests.length
    client.headers(1, { ...get, ...list, 'x-last': 'z' })
    await client.frame('headers', 1)
    const { head } = peer.requests[before]!
    assert.doesNotMatch(head.raw, /x-two|x.one/)
    assert.equal(head.header('x-last'), 'z')
  }
})

test('a pseudo-field after others is refused', async () => {
  using client = await dialFrames(it.port)
  client.send(frame('headers', 5, 1, Buffer.concat([fields({ 'x-a': '1' }), fields(get)])))
  assert.equal(await client.resetOf(1), 1)
})

const answered: Readonly<Record<string, readonly [status: number, list: Record<string, string | string[]>]>> =
  {
    'another host beside its authority': [400, { ':authority': 'a.example', host: 'b.example' }],
    'the same host twice': [200, { ':authority': 'a.example', host: 'A.example' }],
    'a host alone': [200, { host: 'a.example' }],
    'a path above the root': [400, { ':authority': 'a.example', ':path': '/../a' }],
    'one field that is too long': [431, { ':authority': 'a.example', 'x-long': 'a'.repeat(2100) }],
    'a path that is too long': [414, { ':authority': 'a.example', ':path': `/${'a'.repeat(2100)}` }],
    'fields that are too long together': [
      431,
      { ':authority': 'a.example', 'x-long': Array.from({ length: 6 }, () => 'a'.repeat(1500)) },
    ],
    'too many fields': [431, { ':authority': 'a.example', 'x-a': Array.from({ length: 1000 }, () => '') }],
    'a method in small letters': [400, { ':authority': 'a.example', ':method': 'get' }],
  }

/** The status of the answer to a head. */
async function statusOf(list: List): Promise<number> {
  using client = await dialFrames(it.port)
  client.headers(1, { ':method': 'GET', ':scheme': 'http', ':path': '/', ...list })
  return statusIn((await client.frame('headers', 1)).payload)
}

for (const [what, [status, list]] of Object.entries(answered)) {
  test(`a request with ${what} is answered with ${status}`, async () => {
    assert.equal(await statusOf(list), status)
  })
}

test('a head that is far too large is not read on, and its connection is not kept busy', async () => {
  using client = await dialFrames(it.port)
  const list = { ...get, 'x-long': Array.from({ length: 60 }, () => 'a'.repeat(2000)) }
  const bytes = fields(list)
  // Settings hold once they are acknowledged.
  client.headers(1, get)
  await client.frame('headers', 1)
  client.send(frame('headers', 1, 3, bytes.subarray(0, 16_000)))
  for (let at = 16_000; at < bytes.length; at += 16_000) {
    const flags = at + 16_000 >= bytes.length ? endHeaders : 0
    client.send(frame('continuation', flags, 3, bytes.subarray(at, at + 16_000)))
  }
  const end = await Promise.race([client.resetOf(3), client.end()])
  assert.equal(end, 11)
})

const broken: Readonly<Record<string, (client: Frames) => void>> = {
  'data on no stream': (client) => client.send(frame('data', 0, 0, Buffer.from('x'))),
  'an even stream': (client) => client.headers(2, get),
  'a frame that is too long': (client) => client.send(frame('data', 0, 1, Buffer.alloc(17_000))),
  'a window that overflows': (client) =>
    client.send(frame('window', 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff]))),
  'a head that cannot be decompressed': (client) =>
    client.send(frame('headers', 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]))),
  'something between the parts of a head': (client) => {
    client.send(frame('headers', 1, 1, fields(get)), frame('ping', 0, 0, Buffer.alloc(8)))
  },
}

for (const [what, say] of Object.entries(broken)) {
  test(`a client that says ${what} is told so, and closed`, async () => {
    using client = await dialFrames(it.port)
    say(client)
    const code = await client.end()
    assert.ok(code !== undefined && code > 0, `${code}`)
  })
}

test('what is no preface after all is a request of HTTP/1.1, whatever its pieces', async () => {
  const client = await dial(it.port)
  for (const piece of ['P', 'R', 'I * HTTP/2.0\r', '\n\r\nXX\r\n\r\n']) {
    await client.write(piece)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.equal((await client.reply()).status, 505)
  client.close()
  const other = await dial(it.port)
  for (const piece of ['P', 'OST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no', 'k']) {
    await other.write(piece)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.equal((await other.reply()).status, 200)
  other.close()
})

test('a preface that comes byte by byte is one', async () => {
  const client = await dialFrames(it.port, [], true)
  client.socket.destroy()
  const slow = await dial(it.port)
  for (const byte of preface) await slow.write(byte)
  await slow.write(frame('settings', 0, 0))
  await slow.write(Buffer.concat([frame('headers', 5, 1, fields(get))]))
  const { promise, resolve } = Promise.withResolvers<void>()
  let seen = 0
  slow.socket.on('data', (piece: Buffer) => {
    seen += piece.length
    if (seen > 60) resolve()
  })
  await promise
  slow.close()
})

test('a connection on which nothing, or half a preface, comes is closed in time', async () => {
  const close = async (first: string) => {
    const client = await dial(it.port)
    if (first !== '') await client.write(first)
    const from = performance.now()
    client.socket.resume()
    await new Promise((resolve) => client.socket.once('end', resolve))
    const took = performance.now() - from
    assert.ok(took > 800 && took < 3000, `${took} ms`)
    client.close()
  }
  await Promise.all(['', 'PRI * HT', preface].map(close))
})
