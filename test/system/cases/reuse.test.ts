import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, type Exchange, type Script } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually, lab } from '../../support/invariants.ts'

/** A peer that closes a connection once it has been idle for some milliseconds. */
function closing(idleMs: number): Script {
  return async (x) => {
    await x.reply({ body: 'ok' })
    const { total } = x.inbox
    setTimeout(() => {
      if (x.inbox.total === total) x.socket.destroy()
    }, idleMs)
  }
}

/** A peer that serves the first request of a connection, and closes it without an answer at the second. */
function closingOnReuse(): Script {
  const served = new Set<number>()
  return async (x: Exchange) => {
    await x.body()
    if (served.has(x.connection)) return x.end()
    served.add(x.connection)
    await x.reply({ body: 'ok' })
  }
}

test('connections that the peer closes just as they are used again cost the client nothing', async () => {
  const idleMs = 25
  await using peer = await backend(closing(idleMs))
  await using front = await lab(
    `upstream peers { server ${peer.address} max_fails=1; server 127.0.0.1:9 backup; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  using client = await dial(front.port)
  let wrong = 0
  for (let i = 0; i < 80; i++) {
    const started = performance.now()
    if ((await client.ask('/')).status !== 200) wrong += 1
    while (performance.now() - started < idleMs) await sleep(idleMs - (performance.now() - started))
  }
  assert.equal(wrong, 0)
  assert.equal(peer.requests.length, 80)
  assert.equal((await front.peers('peers'))[peer.address]?.health.fails, 0)
  await front.settle(80)
})

test('a request on a connection gone stale is sent once more on a fresh one, and nobody is blamed', async () => {
  await using peer = await backend(closingOnReuse())
  await using front = await lab(
    `upstream peers { server ${peer.address} max_fails=1; server 127.0.0.1:9 backup; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; proxy_next_upstream_tries 1; } }`,
    [peer],
  )
  using client = await dial(front.port)
  for (let i = 0; i < 3; i++) assert.equal((await client.ask('/')).status, 200)
  const record = await front.record(3)
  assert.deepEqual(record.addresses, [peer.address, peer.address])
  assert.equal(record.reasons[0], 'stale')
  assert.equal((await front.peers('peers'))[peer.address]?.health.fails, 0)
  assert.equal(peer.requests.length, 5)
  await front.settle(3, { seen: false })
})

test('a POST is never carried out twice, whatever becomes of its connection', async () => {
  await using peer = await backend(closingOnReuse())
  await using front = await lab(
    `upstream peers { server ${peer.address}; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) {
    statuses.push((await ask(front.port, `/${i}`, { method: 'POST', body: 'pay' })).status)
  }
  assert.deepEqual(peer.targets, [...new Set(peer.targets)])
  for (const status of statuses) assert.ok(status === 200 || status === 502, String(statuses))
  assert.ok(statuses.includes(200))
  await front.settle(6, { seen: false })
})

test('a POST whose idle connection the peer has closed before goes out on a fresh one', async () => {
  await using peer = await backend({ body: 'ok' })
  await using front = await lab(
    `upstream peers { server ${peer.address}; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  for (let i = 0; i < 5; i++) {
    assert.equal((await ask(front.port, `/${i}`, { method: 'POST', body: 'pay' })).status, 200)
    peer.endAll()
    await eventually('the idle connection is closed', () => peer.open === 0)
  }
  assert.deepEqual(peer.targets, ['/0', '/1', '/2', '/3', '/4'])
  await front.settle(5)
})
