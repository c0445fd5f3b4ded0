import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'

let a: Backend
let b: Backend
let front: Lab

before(async () => {
  a = await backend()
  b = await backend()
  front = await lab(
    `upstream peers { server ${a.address} max_fails=0; }
     upstream both { server ${a.address} max_fails=0; server ${b.address} max_fails=0; }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_set_header X-Real-IP $remote_addr; }
       location /both { proxy_pass http://both; proxy_next_upstream error timeout invalid_header; }
     }`,
    [a, b],
  )
})

after(async () => {
  await front.sidecar.stop()
  await a.stop()
  await b.stop()
})

beforeEach(async () => {
  await front.begin()
  a.script = {}
  b.script = {}
})

test('headers that Connection names stay on their side, in both directions', async () => {
  a.script = {
    headers: { Connection: 'X-Inner, keep-alive', 'X-Inner': '1', 'Keep-Alive': 'timeout=9', 'X-Outer': '2' },
  }
  const reply = await ask(front.port, '/', {
    headers: {
      Connection: 'close, X-Secret, keep-alive',
      'X-Secret': '1',
      'Keep-Alive': 'timeout=5',
      'Proxy-Connection': 'keep-alive',
      'X-Kept': 'yes',
    },
  })
  const { head } = a.requests.at(-1)!
  assert.deepEqual(
    head.names.filter((name) => ['connection', 'keep-alive', 'proxy-connection', 'x-secret'].includes(name)),
    [],
  )
  assert.equal(head.header('x-kept'), 'yes')
  assert.equal(reply.header('x-inner'), undefined)
  assert.equal(reply.header('keep-alive'), undefined)
  assert.equal(reply.header('x-outer'), '2')
  assert.ok(!/x-inner/i.test(reply.header('connection') ?? ''))
  await front.settle(1)
})

test('a client cannot name away what the proxy adds', async () => {
  await ask(front.port, '/', { headers: { Connection: 'X-Real-IP, Host', 'X-Real-IP': '6.6.6.6' } })
  const { head } = a.requests.at(-1)!
  assert.deepEqual(head.all('x-real-ip'), ['127.0.0.1'])
  assert.deepEqual(head.all('host'), ['peers'])
  await front.settle(1)
})

test('a header that comes several times stays several lines, in order', async () => {
  const cookies = [1, 2, 3].map((i) => `c${i}=${i}; Expires=Thu, 0${i} Jan 2026 00:00:00 GMT`)
  const challenges = ['Basic realm="a, b"', 'Bearer']
  a.script = { status: 401, headers: { 'Set-Cookie': cookies, 'WWW-Authenticate': challenges } }
  const reply = await ask(front.port, '/', { headers: { 'X-Many': ['one', 'two, three'] } })
  assert.deepEqual(reply.head.all('set-cookie'), cookies)
  assert.deepEqual(reply.head.all('www-authenticate'), challenges)
  assert.deepEqual(a.requests.at(-1)!.head.all('x-many'), ['one', 'two, three'])
  await front.settle(1)
})

test('bytes beyond ASCII arrive as they were sent', async () => {
  a.script = (x) => x.send('HTTP/1.1 200 OK\r\nX-N: caf\xe9\r\nContent-Length: 0\r\n\r\n')
  const reply = await ask(front.port, '/', { headers: { 'X-N': '\xe9\xff' } })
  assert.equal(a.requests.at(-1)!.head.header('x-n'), '\xe9\xff')
  assert.equal(reply.header('x-n'), 'caf\xe9')
  await front.settle(1)
})

test('a request head that is too large or has too many fields gets 431', async () => {
  const before = a.requests.length
  for (const headers of [
    { 'X-Long': 'x'.repeat(17 * 1024) },
    Object.fromEntries(Array.from({ length: 1500 }, (_, i) => [`X-${i}`, '1'])),
  ]) {
    const reply = await ask(front.port, '/', { headers })
    assert.equal(reply.status, 431)
    assert.equal(reply.header('connection'), 'close')
  }
  assert.equal(a.requests.length, before)
  const record = await front.record(2)
  assert.deepEqual([record.status, record.addresses], [431, []])
  await front.settle(2)
})

test('a response head that is too large is 502, and is not asked for again and again', async () => {
  const head = headText('HTTP/1.1 200 OK', { 'X-Long': 'x'.repeat(100 * 1024), 'Content-Length': 0 })
  for (const one of [a, b]) one.script = (x) => x.send(head)
  assert.equal((await ask(front.port, '/one')).status, 502)
  assert.deepEqual((await front.record()).reasons, ['header_overflow'])
  assert.equal((await ask(front.port, '/both')).status, 502)
  assert.deepEqual((await front.record(2)).reasons, ['header_overflow', 'header_overflow'])
  const metrics = await (await fetch(`${front.sidecar.admin}/metrics`)).text()
  const counted = [...metrics.matchAll(/attempt_reasons_total\{.*reason="header_overflow"\} ([1-9]\d*)$/gm)]
  assert.equal(
    counted.reduce((sum, [, count]) => sum + Number(count), 0),
    3,
  )
  await front.settle(2)
})

test('a folded header of a peer is 502, and never goes on', async () => {
  a.script = (x) => x.send('HTTP/1.1 200 OK\r\nX-A: 1\r\n  2\r\nContent-Length: 0\r\n\r\n')
  const reply = await ask(front.port)
  assert.equal(reply.status, 502)
  assert.deepEqual((await front.record()).reasons, ['invalid_header'])
  assert.ok(reply.complete)
  await front.settle(1)
})

for (const line of [
  'HTTP/1.1 1000 X',
  'HTTP/1.1 099 X',
  'HTTP/1.1 abc X',
  'ICY 200 OK',
  'HTTP/1.1',
  'HTTP/3.0 200 X',
]) {
  test(`the status line "${line}" is 502`, async () => {
    a.script = (x) => x.send(`${line}\r\nContent-Length: 0\r\n\r\n`)
    assert.equal((await ask(front.port)).status, 502)
    assert.deepEqual((await front.record()).reasons, ['invalid_header'])
    await front.settle(1)
  })
}

for (const line of ['HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.0 200 OK']) {
  test(`the status line "${line}" is accepted`, async () => {
    a.script = (x) => x.send(`${line}\r\nContent-Length: 2\r\n\r\nok`)
    using client = await dial(front.port)
    const reply = await client.ask('/')
    assert.equal(reply.status, 200)
    assert.equal(reply.text, 'ok')
    assert.equal(reply.version, 'HTTP/1.1')
    await front.settle(1)
  })
}
