import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { ask, exchange } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'

let peer: Backend
let front: Lab

before(async () => {
  peer = await backend({ body: 'ok' })
  front = await lab(
    `upstream peers { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
})

beforeEach(() => front.begin())

after(async () => {
  await front.sidecar.stop()
  await peer.stop()
})

const evil = 'GET /evil HTTP/1.1\r\nHost: x\r\n\r\n'

/** Sends a head (and what follows it) that must be refused: one answer, the connection closed, nobody asked. */
async function refused(bytes: string, statuses: readonly number[] = [400]): Promise<void> {
  const before = peer.requests.length
  const said = await exchange(front.port, bytes + evil)
  const heads = said.split('\r\n').filter((line) => line.startsWith('HTTP/1.'))
  assert.equal(heads.length, 1, said)
  const status = Number(heads[0]?.slice(9, 12))
  assert.ok(statuses.includes(status), `${heads[0]} to ${JSON.stringify(bytes)}`)
  assert.equal(peer.requests.length, before)
  const record = await front.record()
  assert.deepEqual([record.status, record.addresses], [status, []])
  await front.settle(1)
}

function post(...headers: string[]): string {
  return `POST / HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`
}

test('a length and chunks together are refused, and what follows is not taken for a request', async () => {
  await refused(`${post('Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\n`)
  await refused(`${post('Transfer-Encoding: chunked', 'Content-Length: 6')}0\r\n\r\n`)
})

test('lengths that differ are refused, in one line or in two', async () => {
  await refused(`${post('Content-Length: 3', 'content-length: 4')}abcd`)
  await refused(`${post('Content-Length: 3, 4')}abcd`)
})

test('a repeated length is refused or goes on as exactly one', async () => {
  for (const lines of [['Content-Length: 3', 'Content-Length: 3'], ['Content-Length: 3, 3']]) {
    const before = peer.requests.length
    const said = await exchange(front.port, `${post(...lines, 'Connection: close')}abc`)
    const forwarded = peer.requests.slice(before)
    if (said.startsWith('HTTP/1.1 400 ')) assert.equal(forwarded.length, 0)
    else {
      assert.ok(said.startsWith('HTTP/1.1 200 '), said)
      assert.deepEqual(forwarded[0]?.head.all('content-length'), ['3'])
      assert.equal((await forwarded[0]?.body())?.body.toString(), 'abc')
    }
    await front.settle(1)
  }
})

const lengths = ['+5', '-1', '0x5', '5 5', '5abc', '18446744073709551616', '1e3', '', '5;']

for (const length of lengths) {
  test(`a request of length "${length}" is refused`, async () => {
    await refused(`${post(`Content-Length: ${length}`)}hello`)
  })
}

test('chunks in an HTTP/1.0 request are refused', async () => {
  await refused('POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n')
})

for (const coding of [
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: "chunked"',
]) {
  test(`${JSON.stringify(coding)} is refused`, async () => {
    await refused(`${post(coding)}5\r\nhello\r\n0\r\n\r\n`, [400, 501])
  })
}

for (const [what, headers, body] of [
  ...lengths.map((length) => [`a length of "${length}"`, `Content-Length: ${length}`, 'hello'] as const),
  ['lengths that differ', 'Content-Length: 5\r\nContent-Length: 6', 'hello'],
  ['lengths that differ in one line', 'Content-Length: 5, 6', 'hello'],
  ['a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
  ['chunks and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 5', '5\r\nhello\r\n0\r\n\r\n'],
  ['no length and no chunks, both said', 'Content-Length: 0\r\nTransfer-Encoding: chunked', '0\r\n\r\n'],
  ['no length and chunks, nothing of either', 'Content-Length: 0\r\nTransfer-Encoding: chunked', ''],
  ['an unknown coding', 'Transfer-Encoding: xchunked', '5\r\nhello\r\n0\r\n\r\n'],
  ['chunks twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
] as const) {
  test(`a response with ${what} becomes 502, and its connection is not used again`, async () => {
    const script = peer.script
    let ended: Promise<string> | undefined
    peer.script = async (x) => {
      ended = x.gone
      await x.send(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n${body}`)
      await x.gone
    }
    const reply = await ask(front.port)
    peer.script = script
    assert.equal(reply.status, 502)
    assert.ok(await ended)
    assert.deepEqual((await front.record()).reasons, ['invalid_header'])
    assert.equal((await ask(front.port)).status, 200)
    await front.settle(2)
  })
}
