import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ask, dial } from '../../support/client.ts'
import { type FrameAnswer, type FramePeer, framePeer } from '../../support/frame-peer.ts'
import { endHeaders, endStream, fields, frame, number } from '../../support/http2-frames.ts'
import { http2Peer } from '../../support/http2-peer.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

let peer: FramePeer
let answer: FrameAnswer
let it: Sidecar

/** A good answer without a body. */
const good: FrameAnswer = (connection, { type, stream }) => {
  if (type === 'headers') connection.send(head(stream, '200'))
}

function head(stream: number, status: string, flags = endHeaders | endStream): Buffer {
  return frame('headers', flags, stream, fields({ ':status': status }))
}

const configuration = (server: string, more = '') => `
  worker_processes 1;
  http {
    upstream up { server ${server} max_fails=0; ${more} }
    server {
      listen 127.0.0.1:PORT; explain_header X-Why;
      location / { proxy_http_version 2; proxy_pass http://up; proxy_set_header Host $http_host; }
    }
  }`

before(async () => {
  peer = await framePeer((connection, one) => answer(connection, one))
  it = await start(configuration(peer.address))
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

/** What became of a request: status, and the attempt. */
async function asked(of: Sidecar, path = '/'): Promise<string> {
  const reply = await ask(of.port, path)
  return `${reply.status}, ${reply.header('x-why')!.replace(/\S+:\d+ /g, '')}`
}

for (const [what, says, becomes] of [
  ['a status that is none', (id: number) => head(id, '600'), '502, 502 invalid_header (single)'],
  [
    'interim answers without end',
    (id: number) =>
      Buffer.concat([...Array.from({ length: 40 }, () => head(id, '103', endHeaders)), head(id, '200')]),
    '502, 502 invalid_header (single)',
  ],
  [
    'an interim answer that is too large',
    (id: number) =>
      Buffer.concat([
        frame('headers', endHeaders, id, fields({ ':status': '103', 'x-a': 'a'.repeat(9000) })),
        head(id, '200'),
      ]),
    '502, 502 header_overflow (single)',
  ],
  [
    'a stream that nobody asked for',
    () => frame('data', endStream, 2, Buffer.from('x')),
    '502, 502 invalid_header (single), tries',
  ],
  [
    'what is no HTTP/2 any more',
    () => Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
    '502, 502 invalid_header (single), tries',
  ],
] as const) {
  test(`a peer that answers ${what} has failed, and is asked again after that`, async () => {
    answer = (connection, { type, stream }) => {
      if (type === 'headers') connection.send(says(stream))
    }
    assert.equal(await asked(it), becomes)
    answer = good
    assert.equal(await asked(it), '200, 200 (single)')
  })
}

test('some interim answers are none too many', async () => {
  answer = (connection, { type, stream }) => {
    if (type !== 'headers') return
    for (let i = 0; i < 32; i += 1) connection.send(head(stream, '103', endHeaders))
    connection.send(head(stream, '200'))
  }
  const reply = await ask(it.port, '/')
  assert.equal(reply.status, 200)
  assert.equal(reply.interim.length, 32)
})

test('a peer that speaks no HTTP/2 is told from one that is not there', async () => {
  await using old = await framePeer(
    () => {},
    (connection) => connection.send('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'),
  )
  await using it = await start(configuration(old.address))
  assert.equal(await asked(it), '502, 502 invalid_header (single), tries')
  await it.logged(/upstream sent invalid header \(peer broke HTTP\/2: Protocol error\)/)
})

test('fields that a client sends twice go on twice, whatever they are', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    stream.respond({ ':status': 200 }, { endStream: true })
  })
  await using it = await start(configuration(peer.address))
  for (const name of ['user-agent', 'if-none-match', 'range', 'content-type', 'authorization']) {
    using client = await dial(it.port)
    client.write(`GET / HTTP/1.1\r\nHost: a\r\n${name}: 1\r\n${name}: 2\r\n\r\n`)
    const reply = await client.reply()
    assert.equal(`${reply.status}, ${reply.header('x-why')}`, `200, ${peer.address} 200 (single)`, name)
    assert.deepEqual(
      seen.filter((_, i) => seen[i - (i % 2)] === name),
      [name, '1', name, '2'],
    )
  }
})

test('a request that names no host is for the peer’s address', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    stream.respond({ ':status': 200 }, { endStream: true })
  })
  await using it = await start(configuration(peer.address))
  using client = await dial(it.port)
  client.write('GET / HTTP/1.0\r\n\r\n')
  assert.equal((await client.reply()).status, 200)
  assert.equal(seen[seen.indexOf(':authority') + 1], peer.address)
})

test('trailers that are too long are no end of an answer', async () => {
  const trailers = (bytes: number) => fields({ 'x-a': 'a'.repeat(bytes / 2), 'x-b': 'b'.repeat(bytes / 2) })
  const says = (bytes: number): FrameAnswer => {
    return (connection, { type, stream }) => {
      if (type !== 'headers') return
      connection.send(head(stream, '200', endHeaders), frame('data', 0, stream, Buffer.from('abc')))
      const block = trailers(bytes)
      connection.send(frame('headers', endStream, stream, block.subarray(0, 10_000)))
      connection.send(frame('continuation', endHeaders, stream, block.subarray(10_000)))
    }
  }
  answer = says(15_000)
  assert.equal((await ask(it.port, '/')).complete, true)
  answer = says(17_000)
  const reply = await ask(it.port, '/')
  assert.equal(`${reply.text} ${reply.complete}`, 'abc false')
  await it.logged(/upstream prematurely closed connection \(trailers too long\) while reading upstream/)
  answer = good
})

test('what one stream breaks off is no other one’s end', async () => {
  answer = (connection, { type, stream }) => {
    if (type !== 'headers') return
    if (stream % 4 === 1) connection.send(frame('reset', 0, stream, number(2)))
    else connection.send(head(stream, '200'))
  }
  const all = await Promise.all(Array.from({ length: 8 }, () => asked(it)))
  assert.equal(all.filter((one) => one.startsWith('200')).length, 4, all.join('\n'))
  answer = good
})
