import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, echo } from '../../support/backend.ts'
import { ask, Client, dial, webSocket } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'

let peer: Backend
let other: Backend
let front: Lab

before(async () => {
  peer = await backend()
  other = await backend()
  front = await lab(
    `upstream peers { server ${peer.address} max_fails=0; }
     upstream others { server ${other.address} max_fails=0; }
     server { listen 127.0.0.1:PORT; server_name no;
       location /chat/ { proxy_pass http://others; proxy_http_version 1.1; }
       location /news/ { proxy_pass http://peers; proxy_http_version 1.1; }
     }
     server { listen 127.0.0.1:PORT default_server;
       location / { proxy_pass http://peers; }
       location /plain { proxy_pass http://peers; proxy_set_header Upgrade ""; }
       location /ws { proxy_pass http://peers; proxy_http_version 1.1;
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; }
     }`,
    [peer, other],
  )
})

after(async () => {
  await front.sidecar.stop()
  await peer.stop()
  await other.stop()
})

beforeEach(async () => {
  await front.begin()
  peer.script = echo
  other.script = echo
})

test('a WebSocket is a tunnel for bytes in both directions, to the end of each', async () => {
  const { client, status, head, accepted } = await webSocket(front.port, '/ws')
  assert.equal(status, 101)
  assert.equal(head.header('sec-websocket-accept'), accepted)
  assert.equal(head.header('upgrade')?.toLowerCase(), 'websocket')
  for (const text of ['\x81\x85', '\xff'.repeat(70_000)]) {
    await client.write(text)
    assert.equal((await client.inbox.take(text.length))?.toString('latin1'), text)
  }
  assert.equal((await front.peers('peers'))[peer.address]?.selected.current, 1)
  client.end()
  assert.equal(await client.closed, 'fin')
  client.close()
  assert.equal((await front.record()).status, 101)
  await front.settle(1)
})

test('a peer that refuses the upgrade is heard to the end', async () => {
  for (const status of [404, 503]) {
    peer.script = { status, body: `no ${status}` }
    const { client, head } = await webSocket(front.port, '/ws')
    assert.equal(head.start.slice(9, 12), String(status))
    const length = Number(head.header('content-length'))
    assert.equal((await client.inbox.take(length))?.toString(), `no ${status}`)
    // Either the connection goes on, or it says that it does not.
    if (head.header('connection')?.toLowerCase() === 'close') assert.equal(await client.closed, 'fin')
    else assert.equal((await client.ask('/')).status, status)
    client.close()
    await front.settle(head.header('connection') ? 1 : 2)
  }
})

test('an upgrade that the location takes away is an ordinary request, its body included', async () => {
  peer.script = (x) => x.reply({ body: 'plain' })
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket' }
  for (const body of [undefined, 'with a body', ['in ', 'pieces']]) {
    const reply = await ask(front.port, '/plain', { method: 'POST', headers, ...(body ? { body } : {}) })
    assert.equal(reply.text, 'plain')
    const seen = peer.requests.at(-1)!
    assert.equal(seen.head.header('upgrade'), undefined)
    assert.equal((await seen.body()).body.toString(), [body ?? ''].flat().join(''))
  }
  await front.settle(3)
})

test('a client connection that became a tunnel is no longer counted once it has ended', async () => {
  const before = await front.sidecar.json<Record<string, number>>('/status/connections/')
  const { client } = await webSocket(front.port, '/ws')
  const during = await front.sidecar.json<Record<string, number>>('/status/connections/')
  assert.equal(during['active'], before['active']! + 1)
  client.close()
  await eventually('the counts are back', async () => {
    const { active, idle } = await front.sidecar.json<Record<string, number>>('/status/connections/')
    return active === before['active'] && idle === before['idle']
  })
  await front.settle(1)
})

test('an upgrade that comes while an answer is still due waits for its turn', async () => {
  peer.script = async (x) => {
    if (x.target === '/ws') await echo(x)
    else await x.reply({ body: 'first', after: 50 })
  }
  using client = await dial(front.port)
  const headers = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  await client.write(Buffer.concat([Client.bytes('/'), Client.bytes('/ws', { headers })]))
  assert.equal((await client.reply()).text, 'first')
  assert.match((await client.head()).head.start, /^HTTP\/1.1 101 /)
  await client.write('hello')
  assert.equal((await client.inbox.take(5))?.toString(), 'hello')
  client.close()
  await front.settle(2)
})

test('whoever resets a tunnel ends it on both sides', async () => {
  const one = await webSocket(front.port, '/ws')
  await eventually('the tunnel stands', () => peer.busy === 1)
  one.client.reset()
  await eventually('the peer sees the end', () => peer.busy === 0, 1000)

  peer.script = async (x) => {
    await x.send(
      headText('HTTP/1.1 101 Switching Protocols', { Connection: 'Upgrade', Upgrade: 'websocket' }),
    )
    await x.inbox.some()
    x.reset()
  }
  const other = await webSocket(front.port, '/ws')
  await other.client.write('x')
  assert.ok(await other.client.closed)
  other.client.close()
  await front.settle(2)
})

test('a peer that leaves instead of answering the handshake is 502', async () => {
  peer.script = async (x) => {
    await x.gone
  }
  const waiting = webSocket(front.port, '/ws').catch((error: Error) => error)
  await eventually('the peer is asked', () => peer.busy === 1)
  await sleep(50)
  peer.cut()
  const refused = await waiting
  assert.ok(!(refused instanceof Error) && refused.status === 502)
  refused.client.close()
  await front.settle(1)
})

test('a client that leaves before the handshake is answered leaves nothing behind', async () => {
  peer.script = async (x) => {
    await x.gone
  }
  const client = await dial(front.port)
  const headers = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  await client.write(Client.bytes('/ws', { headers }))
  await eventually('the peer is asked', () => peer.busy === 1)
  client.reset()
  await eventually('the peer is let go', () => peer.busy === 0, 1000)
  assert.equal((await front.record()).status, 499)
  await front.settle(1)
})

test('an upgrade that nobody asked for is 502, and the connection to the peer is closed', async () => {
  let gone: Promise<string> | undefined
  peer.script = async (x) => {
    gone = x.gone
    await x.send(
      headText('HTTP/1.1 101 Switching Protocols', { Connection: 'Upgrade', Upgrade: 'websocket' }),
    )
    await x.gone
  }
  assert.equal((await ask(front.port)).status, 502)
  assert.ok(await gone)
  assert.deepEqual((await front.record()).reasons, ['invalid_header'])
  await front.settle(1)
})

test('each prefix has its own peer for upgrades, and a prefix of nobody is 404 once', async () => {
  const headers = { Host: 'no' }
  for (const [target, one] of [
    ['/chat/1', other],
    ['/news/1', peer],
    ['/chat/2', other],
  ] as const) {
    const before = one.requests.length
    const { client, status } = await webSocket(front.port, target, headers)
    assert.equal(status, 101)
    await client.write(target)
    assert.equal((await client.inbox.take(target.length))?.toString(), target)
    assert.deepEqual(one.targets.slice(before), [target])
    client.close()
  }
  await front.settle(3)
  const before = peer.requests.length + other.requests.length
  const { client, head, status } = await webSocket(front.port, '/nobody', headers)
  assert.equal(status, 404)
  assert.equal(head.header('upgrade'), undefined)
  await client.inbox.take(Number(head.header('content-length')))
  // Nobody took the connection over: it goes on as one of HTTP, or says that it ends.
  if (head.header('connection')?.toLowerCase() === 'close') assert.equal(await client.closed, 'fin')
  else assert.equal((await client.ask('/nobody', { headers })).status, 404)
  assert.equal(client.inbox.unread.length, 0)
  assert.equal(peer.requests.length + other.requests.length, before)
  client.close()
  await front.settle(head.header('connection')?.toLowerCase() === 'close' ? 1 : 2)
})
