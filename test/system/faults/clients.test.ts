import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, type Client, dial } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'

/* Clients that leave, close their side, send garbage or take nothing, wherever they are in a request or its answer. */

let peer: Backend
let front: Lab
/** Lets the peer go on where it waits in its script. */
let goOn: PromiseWithResolvers<void>

const part = Buffer.alloc(64 << 10, 'x')

const scripts: Record<string, (x: Exchange) => Promise<void>> = {
  '/ok': (x) => x.reply({ body: 'ok' }),
  '/held': async (x) => {
    await Promise.race([goOn.promise, x.gone])
    await x.reply({ body: 'late' })
  },
  '/begun': async (x) => {
    await x.body()
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': 4 }))
    await x.send('la')
    await Promise.race([goOn.promise, x.gone])
    x.done()
    await x.send('te')
  },
  '/chunks': async (x) => {
    await x.body()
    await x.send(`${headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' })}2\r\nla\r\n`)
    await Promise.race([goOn.promise, x.gone])
    x.done()
    await x.send('2\r\nte\r\n0\r\n\r\n')
  },
  '/stream': async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Transfer-Encoding': 'chunked' }))
    while (!x.inbox.ended) await Promise.race([x.send(`10000\r\n${part}\r\n`), x.gone])
  },
  '/ws': async (x) => {
    await x.upgrade()
    await x.gone
  },
}

before(async () => {
  peer = await backend((x) => scripts[x.target]!(x))
  front = await lab(
    `upstream up { server ${peer.address} max_fails=1; server 127.0.0.1:9 backup; keepalive 4; }
     send_timeout 600ms; client_max_body_size 0;
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://up; }
       location /stay/ { proxy_ignore_client_abort on; proxy_pass http://up/; }
       location /direct/ { proxy_pass http://up/; proxy_request_buffering off; proxy_buffering off; } }`,
    [peer],
  )
})

after(async () => {
  await front?.sidecar.stop()
  await peer?.stop()
})

beforeEach(async () => {
  goOn = Promise.withResolvers<void>()
  await front.begin()
})

const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`

interface Phase {
  readonly name: string
  readonly request: string
  /** Records that it must have; 0 where there was no request. */
  readonly records: number
  /** The client is there once this has come about. */
  reached(client: Client, asked: number): Promise<unknown>
}

const isAsked = (_: Client, asked: number) => eventually('asked', () => peer.requests.length > asked)
const hasHead = (client: Client) => client.head()
const reads = (count: number) => (client: Client) => client.inbox.take(count)

const phases: readonly Phase[] = [
  { name: 'before it has said anything', request: '', records: 0, reached: async () => {} },
  { name: 'in its head', request: 'GET / HTTP/1.1\r\nHost', records: 0, reached: async () => {} },
  {
    name: 'in a body with a length that is passed on as it comes',
    request: 'POST /direct/held HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nbeg',
    records: 1,
    reached: isAsked,
  },
  {
    name: 'in a body with chunks that is passed on as it comes',
    request: 'POST /direct/held HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbeg',
    records: 1,
    reached: isAsked,
  },
  { name: 'as it waits for the answer', request: get('/held'), records: 1, reached: isAsked },
  { name: 'in the answer', request: get('/begun'), records: 1, reached: hasHead },
  { name: 'in an answer with chunks', request: get('/chunks'), records: 1, reached: hasHead },
  { name: 'in a stream', request: get('/stream'), records: 1, reached: reads(100_000) },
  { name: 'in an unbuffered stream', request: get('/direct/stream'), records: 1, reached: reads(100_000) },
  {
    name: 'with more requests sent ahead',
    request: get('/held') + get('/ok').repeat(5),
    records: 1,
    reached: isAsked,
  },
  {
    name: 'after a tunnel has begun',
    request: `GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n`,
    records: 1,
    reached: hasHead,
  },
]

test('clients that leave, by FIN and by RST, at every phase: each has one record, and nobody is blamed', async () => {
  let records = 0
  for (const { name, request, reached, records: own } of phases) {
    for (const how of ['close', 'reset'] as const) {
      const client = await dial(front.port)
      const asked = peer.requests.length
      await client.write(request)
      await reached(client, asked)
      client[how]()
      await eventually(`the peer is let go: ${how} ${name}`, () => peer.busy === 0, 3000)
      records += own
    }
  }
  const asked = async () => (await front.records()).filter(({ addresses }) => addresses.length > 0)
  await eventually('all have a record', async () => (await asked()).length >= records)
  const lost = (await front.records()).filter(({ reasons }) => reasons.some((one) => one !== 'client_abort'))
  assert.deepEqual(
    lost.map(({ reasons }) => reasons.join()).filter((one) => one !== '-'),
    [],
  )
  assert.equal((await front.peers('up'))[peer.address]!.health.fails, 0)
  await front.left()
  // What had not become a request has a record of its own where anything of it had come.
  await front.settle(undefined, { seen: false })
  assert.equal((await asked()).length, records)
})

test('a client that closes its side after its request is gone', async () => {
  for (const target of ['/held', '/begun', '/chunks', '/direct/held', '/direct/chunks']) {
    const client = await dial(front.port)
    const asked = peer.requests.length
    await client.write(get(target))
    await isAsked(client, asked)
    client.end()
    await client.closed
    client.close()
    await eventually('the peer is let go', () => peer.busy === 0)
  }
  await front.settle(5)
})

test('a client that closes its side has its answer where proxy_ignore_client_abort is on', async () => {
  for (const target of ['/held', '/begun', '/chunks']) {
    const client = await dial(front.port)
    const asked = peer.requests.length
    await client.write(get(`/stay${target}`))
    client.end()
    await isAsked(client, asked)
    // The end of its side has been read by now: a second request is answered meanwhile.
    assert.equal((await ask(front.port, '/ok')).status, 200)
    goOn.resolve()
    const reply = await client.reply()
    assert.ok(reply.complete, target)
    assert.equal(reply.text, 'late')
    assert.equal(await client.closed, 'fin')
    client.close()
    goOn = Promise.withResolvers<void>()
  }
  await front.settle(6)
})

test('a client that closes its side in the middle of its request is gone', async () => {
  for (const request of [
    'POST /direct/held HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nbeg',
    'POST /direct/held HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbeg',
    'POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nbeg',
  ]) {
    const client = await dial(front.port)
    await client.write(request)
    client.end()
    await client.closed
    client.close()
    await eventually('the peer is let go', () => peer.busy === 0)
    await eventually('it has a record', async () => (await front.record()).status >= 400)
  }
  assert.equal((await front.peers('up'))[peer.address]!.health.fails, 0)
  await front.settle(3, { seen: false })
})

test('garbage after a request does not touch its answer, and is refused after it', async () => {
  let records = 0
  for (const garbage of ['\0\0\0\0\r\n\r\n', 'GET\r\n\r\n', '\x16\x03\x01\x02\x00', 'x'.repeat(100_000)]) {
    for (const target of ['/ok', '/held', '/begun']) {
      const client = await dial(front.port)
      await client.write(get(target) + garbage)
      goOn.resolve()
      const reply = await client.reply()
      assert.ok(reply.status === 200 && reply.complete, target)
      const refusal = await client.reply()
      assert.ok(refusal.status >= 400 && refusal.status < 500, String(refusal.status))
      await client.closed
      client.close()
      records += 2
      goOn = Promise.withResolvers<void>()
    }
  }
  await front.settle(records)
})

test('a client that takes nothing is given up after send_timeout, and its peer with it', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => dial(front.port)))
  const began = performance.now()
  for (const [i, client] of clients.entries()) {
    client.socket.pause()
    await client.write(get(i % 2 === 0 ? '/stream' : '/direct/stream'))
  }
  await eventually('each is asked', () => peer.busy === clients.length)
  await eventually('each is given up', () => peer.busy === 0, 6000)
  assert.ok(performance.now() - began > 500)
  for (const client of clients) client.close()
  await front.settle(clients.length, { seen: false })
  assert.equal((await front.peers('up'))[peer.address]!.health.fails, 0)
})

test('clients that send many requests ahead and leave cost one attempt each, and leave nothing behind', async () => {
  const ahead = get('/held') + get('/ok').repeat(200)
  for (let round = 0; round < 3; round++) {
    const asked = peer.requests.length
    const clients = await Promise.all(Array.from({ length: 20 }, () => dial(front.port)))
    for (const client of clients) await client.write(ahead)
    await eventually('all are asked', () => peer.requests.length - asked === clients.length)
    for (const [i, client] of clients.entries()) i % 2 === 0 ? client.close() : client.reset()
    await eventually('the peer is let go', () => peer.busy === 0)
    assert.equal(peer.requests.length - asked, clients.length, 'what was sent ahead went nowhere')
  }
  await front.left()
  assert.equal((await front.peers('up'))[peer.address]!.health.fails, 0)
  await front.settle(60, { seen: false })
})
