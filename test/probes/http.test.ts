import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { http } from '../../probes/http.ts'
import type { Answer, Asking, Question, Target } from '../../probes/probe.ts'
import {
  asking,
  openSockets,
  question,
  socketsBackTo,
  tcpTarget,
  told,
  unixTarget,
} from '../support/asking.ts'
import { type Backend, backend, type Exchange } from '../support/backend.ts'
import { deafPeer } from '../support/deaf-peer.ts'
import { chunk, headText } from '../support/message.ts'

interface Asked extends Partial<Question> {
  readonly max_body?: string
  readonly signal?: AbortSignal
}

function ask(target: Target | number, { max_body, signal, ...over }: Asked = {}): Promise<Answer> {
  const how: Partial<Asking> = { question: question(over), ...(signal ? { signal } : {}) }
  const to = typeof target === 'number' ? tcpTarget(target) : target
  return http.check(to, max_body === undefined ? {} : { max_body }, asking(how))
}

type Ending = (exchange: Exchange) => unknown

/** A peer that answers with these bytes and then does as told: it closes, or leaves that to the other side. */
function saying(bytes: string | Buffer, then: Ending = end): Promise<Backend> {
  return backend(async (exchange) => {
    await exchange.send(bytes)
    await then(exchange)
  })
}

const end: Ending = (exchange) => exchange.end()
const reset: Ending = (exchange) => exchange.reset()
const stay: Ending = (exchange) => exchange.gone
/** Lets the other side have what was written before the connection is reset. */
const resetLater: Ending = (exchange) => sleep(20).then(() => exchange.reset())

test('the request goes out with its method, target and headers, and Host as given', async () => {
  await using peer = await backend({ status: 204 })
  const headers = ['Host', 'shop.example:99', 'X-One', 'é', 'X-Two', '', 'x-one', 'again']
  const answer = await ask(peer.port, { method: 'OPTIONS', target: '/health?deep=1', headers })
  assert.equal(told(answer), 'open, status 204')
  const [seen] = peer.requests
  assert.equal(seen?.head.start, 'OPTIONS /health?deep=1 HTTP/1.1')
  assert.equal(seen?.head.header('host'), 'shop.example:99')
  assert.deepEqual(seen?.head.all('x-one'), ['\xe9', 'again'])
  assert.equal(seen?.head.header('x-two'), '')
  assert.deepEqual(seen?.head.names.toSorted(), ['connection', 'host', 'x-one', 'x-one', 'x-two'])
})

test('an empty Host stays empty', async () => {
  await using peer = await backend()
  await ask(peer.port, { headers: ['Host', ''] })
  assert.deepEqual(peer.requests[0]?.head.all('host'), [''])
})

test('what belongs to the connection or to a body is not sent', async () => {
  await using peer = await backend()
  const headers = ['Host', 'shop', 'Connection', 'upgrade', 'Upgrade', 'websocket', 'Keep-Alive', 'timeout=5']
  headers.push('Transfer-Encoding', 'chunked', 'Content-Length', '9', 'Expect', '100-continue', 'X-Kept', '1')
  assert.equal(told(await ask(peer.port, { headers })), 'open, status 200')
  assert.deepEqual(peer.requests[0]?.head.names.toSorted(), ['connection', 'host', 'x-kept'])
  assert.equal(peer.requests[0]?.head.header('connection'), 'close')
})

test('each question has a connection of its own, which is closed after it', async () => {
  const before = openSockets()
  await using peer = await backend()
  await ask(peer.port)
  await ask(peer.port)
  assert.equal(peer.connections, 2)
  await socketsBackTo(before)
})

test('status, headers, body and trailers come as they are', async () => {
  const head = headText('HTTP/1.1 503 Busy', {
    'X-Load': '0.5',
    'Set-Cookie': ['a', 'b'],
    'Transfer-Encoding': 'chunked',
  })
  const end = '0\r\nX-Sum: \xe9\r\n\r\n'
  await using peer = await saying(
    Buffer.concat([Buffer.from(head), chunk('caf\xe9'), Buffer.from(end, 'latin1')]),
  )
  const answer = await ask(peer.port)
  assert.equal(answer.status, 503)
  assert.equal(answer.detail, 'status 503')
  assert.equal(answer.passed, undefined)
  assert.equal(answer.failure, undefined)
  assert.deepEqual(answer.headers.slice(0, 6), ['X-Load', '0.5', 'Set-Cookie', 'a', 'Set-Cookie', 'b'])
  assert.equal(Buffer.from(answer.body, 'latin1').toString(), 'caf\xe9')
  assert.deepEqual(answer.trailers, ['X-Sum', '\xe9'])
})

test('a redirect is not followed, and a packed body stays packed', async () => {
  const packed = gzipSync('hello')
  await using peer = await backend({
    status: 302,
    headers: { Location: '/elsewhere', 'Content-Encoding': 'gzip' },
    body: packed,
  })
  const answer = await ask(peer.port)
  assert.equal(answer.status, 302)
  assert.deepEqual(Buffer.from(answer.body, 'latin1'), packed)
  assert.deepEqual(peer.targets, ['/health'])
})

test('an answer to HEAD has no body, whatever its length says', async () => {
  await using peer = await backend({ headers: { 'X-A': '1' }, body: 'twelve bytes' })
  const answer = await ask(peer.port, { method: 'HEAD' })
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body, '')
})

test('early hints are no answer yet', async () => {
  await using peer = await saying(
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  )
  const answer = await ask(peer.port)
  assert.equal(answer.status, 200)
  assert.equal(answer.body, 'ok')
  assert.deepEqual(answer.headers, ['Content-Length', '2'])
})

test('a body without a length ends with the connection', async () => {
  await using peer = await saying('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it')
  const answer = await ask(peer.port)
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body, 'all of it')
})

test('connection, header and end are timed one after the other', async () => {
  await using peer = await backend(async (exchange) => {
    await sleep(40)
    await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no')
    await sleep(200)
    await exchange.send('k')
  })
  const { connectMs = 0, headerMs = 0, responseMs } = await ask(peer.port)
  assert.ok(connectMs > 0 && connectMs < headerMs, `connected after ${connectMs} ms`)
  assert.ok(headerMs >= 39 && headerMs <= responseMs, `header after ${headerMs} ms`)
  assert.ok(responseMs >= 239, `end after ${responseMs} ms`)
})

test('of an endless body no more is read than was asked for, and the answer counts', async () => {
  let written = 0
  const piece = Buffer.alloc(16_384, 'x')
  await using peer = await backend(async (exchange) => {
    await exchange.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    while (!exchange.socket.destroyed) {
      await Promise.race([exchange.send(chunk(piece)), exchange.gone])
      written += piece.length
    }
  })
  const before = openSockets()
  const answer = await ask(peer.port, { max_body: '100k' })
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body.length, 102_400)
  await socketsBackTo(before)
  // The rest is what the kernel's buffers of both sides hold.
  assert.ok(written < 16 * 1024 * 1024, `${written} bytes written`)
  assert.ok(answer.responseMs < 1000)
})

test('a body of 10 GiB is left after the default of 256k', async () => {
  await using peer = await saying(
    Buffer.concat([
      Buffer.from(headText('HTTP/1.1 200 OK', { 'Content-Length': 10 * 1024 ** 3 })),
      Buffer.alloc(300 * 1024, 'y'),
    ]),
    stay,
  )
  const answer = await ask(peer.port)
  assert.equal(told(answer), 'open, status 200')
  assert.equal(answer.body.length, 256 * 1024)
})

test('a body of exactly the limit is whole, and with a limit of 0 none is read', async () => {
  await using peer = await saying('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789', stay)
  assert.equal((await ask(peer.port, { max_body: '10' })).body, '0123456789')
  assert.equal((await ask(peer.port, { max_body: '9' })).body, '012345678')
  const none = await ask(peer.port, { max_body: '0' })
  assert.equal(told(none), 'open, status 200')
  assert.equal(none.body, '')
})

test('a Unix-domain socket and IPv6 are asked likewise', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'evenkeel-probe-'))
  try {
    const path = join(folder, 'socket')
    await using unix = await backend({ body: 'unix' }, { path })
    assert.equal((await ask(unixTarget(path))).body, 'unix')
    assert.equal(unix.requests[0]?.head.header('host'), 'shop')
    while (unix.open > 0) await sleep(1)
  } finally {
    rmSync(folder, { recursive: true })
  }
  await using six = await backend({ body: 'six' }, { host: '::1' })
  assert.equal((await ask(tcpTarget(six.port, '::1'))).body, 'six')
})

const heads: readonly (readonly [string, string | Buffer, Ending, string])[] = [
  ['closes without a word', '', end, 'error closed, connection closed by the peer'],
  ['closes within the header', 'HTTP/1.1 200 OK\r\nX-A', end, 'error closed, connection closed by the peer'],
  ['resets', '', reset, 'error reset, read ECONNRESET'],
  ['resets within the header', 'HTTP/1.1 200 OK\r\nX-A', resetLater, 'error reset, read ECONNRESET'],
]
for (const [what, bytes, then, expected] of heads) {
  test(`a peer that ${what} gave no answer`, async () => {
    await using peer = await saying(bytes, then)
    const answer = await ask(peer.port)
    assert.equal(told(answer), `open, ${expected}`)
    assert.equal(answer.status, undefined)
    assert.notEqual(answer.connectMs, undefined)
    assert.equal(answer.headerMs, undefined)
  })
}

for (const bytes of [
  'HTTP/1.1 abc OK\r\n\r\n',
  'SIP/2.0 200 OK\r\n\r\n',
  'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
  'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
]) {
  test(`a malformed head is told from a missing one: ${JSON.stringify(bytes)}`, async () => {
    await using peer = await saying(bytes, stay)
    const answer = await ask(peer.port)
    assert.deepEqual(answer.failure, { ending: 'invalid_header', reason: 'invalid_header' })
    assert.notEqual(answer.detail, '')
  })
}

test('a head that is too large is given up', async () => {
  await using peer = await saying(`HTTP/1.1 200 OK\r\nX-Long: ${'a'.repeat(5000)}\r\n\r\n`, stay)
  const answer = await ask(peer.port, { maxHead: 4096 })
  assert.deepEqual(answer.failure, { ending: 'invalid_header', reason: 'header_overflow' })
  assert.equal((await ask(peer.port, { maxHead: 8192, max_body: '0' })).status, 200)
})

const bodies: readonly (readonly [string, string, Ending])[] = [
  ['short of its length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234', end],
  ['short of its length by a reset', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234', resetLater],
  ['without its last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n', end],
  ['with a broken chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234x', end],
  ['that a reset ends', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n01234', resetLater],
]
for (const [what, bytes, then] of bodies) {
  test(`a body ${what} is cut, and what came is kept`, async () => {
    await using peer = await saying(bytes, then)
    const answer = await ask(peer.port)
    assert.deepEqual(answer.failure, { ending: 'error', reason: 'body_cut' })
    assert.equal(answer.status, 200)
    assert.equal(answer.body, '01234')
    assert.notEqual(answer.headerMs, undefined)
  })
}

test('a header that does not come, and a body that does not end, run into the time-out', async () => {
  await using silent = await saying('', stay)
  const none = await ask(silent.port, { signal: AbortSignal.timeout(50) })
  assert.equal(told(none), 'open, timeout timeout_read, no header in time')
  await using slow = await saying('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234', stay)
  const part = await ask(slow.port, { signal: AbortSignal.timeout(50) })
  assert.equal(told(part), 'open, timeout body_timeout, no end of the body in time')
  assert.equal(part.status, 200)
  assert.equal(part.body, '01234')
})

test('connecting has a time-out of its own', async () => {
  await using peer = await deafPeer({ backlog: 1 })
  await peer.fill(2)
  const answer = await ask(peer.port, { connectTimeout: 50 })
  assert.equal(told(answer), 'open, timeout timeout_connect, connecting took too long')
  assert.ok(answer.responseMs >= 49 && answer.responseMs < 1000, `${answer.responseMs} ms`)
})

test('a name that nobody knows is a failure of its own', async () => {
  const answer = await ask(tcpTarget(80, 'no..name'))
  assert.deepEqual(answer.failure, { ending: 'error', reason: 'dns' })
})

test('a request that cannot be sent is no fault of the peer', async () => {
  await using peer = await backend()
  const answer = await ask(peer.port, { headers: ['Host', 'a', 'X-Bad', 'line\nbreak'] })
  assert.deepEqual(answer.failure, { ending: 'error', reason: 'unreachable', local: true })
  assert.equal(answer.detail, 'invalid X-Bad header')
  assert.deepEqual(peer.targets, [])
})

test('programs that do not ask over HTTP do not load its library', () => {
  const program = `
    import { createRequire } from 'node:module'
    const { cache } = createRequire(import.meta.url)
    const loaded = () => Object.keys(cache).some((path) => path.includes('/undici/'))
    const { kindOf } = await import('./probes/kinds.ts')
    const before = loaded()
    await kindOf('http').caveat({})
    console.log(before, loaded())`
  const root = new URL('../..', import.meta.url).pathname
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
  })
  assert.equal(String(stdout), 'false true\n', String(stderr))
})
