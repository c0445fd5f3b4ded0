import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually, lab, residentBytes } from '../../support/invariants.ts'
import { headText } from '../../support/message.ts'

test('a client that leaves before the answer ends the attempt, and says nothing of the peer', async () => {
  const waits: number[] = []
  let left = Number.POSITIVE_INFINITY
  await using peer = await backend(async (x) => {
    await Promise.race([sleep(500), x.gone])
    waits.push(performance.now() - left)
    await x.reply({ body: 'late' })
  })
  await using front = await lab(
    `upstream peers { server ${peer.address} max_fails=1; server 127.0.0.1:9 backup; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  for (const how of ['reset', 'close'] as const) {
    const client = await dial(front.port)
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually('the peer is asked', () => peer.busy === 1)
    await sleep(50)
    left = performance.now()
    client[how]()
    await eventually('the attempt is over', () => peer.busy === 0)
  }
  assert.ok(waits.length === 2 && Math.max(...waits) < 100, `the peer was let go after ${waits} ms`)
  await front.record(2)
  for (const { status, reasons } of await front.records()) {
    assert.deepEqual([status, reasons], [499, ['client_abort']])
  }
  const { health, state } = (await front.peers('peers'))[peer.address]!
  assert.deepEqual(
    { state, fails: health.fails, header: health.header_time, response: health.response_time },
    { state: 'up', fails: 0, header: 0, response: 0 },
  )
  assert.equal((await ask(front.port)).text, 'late')
  // An answer is a sample, so that none was none.
  await front.record(3)
  assert.ok((await front.peers('peers'))[peer.address]!.health.header_time >= 480)
  await front.settle(3)
})

test('clients that leave in the middle of a large download let the peer go, and leave nothing behind', async () => {
  const piece = Buffer.alloc(256 * 1024, 'x')
  await using peer = await backend(async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': 32 << 20 }))
    for (let sent = 0; sent < 32 << 20 && !x.inbox.ended; sent += piece.length) {
      await Promise.race([x.send(piece), x.gone])
    }
  })
  await using front = await lab(
    `upstream peers { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  const download = async () => {
    const client = await dial(front.port)
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.head()
    for (let read = 0; read < 512 * 1024; ) read += (await client.inbox.some())?.length ?? 1 << 20
    client.reset()
  }
  const round = async (count: number) => {
    for (let i = 0; i < count; i += 8) await Promise.all(Array.from({ length: 8 }, download))
    await eventually('the peer sees every connection closed', () => peer.open === 0, 1000)
  }
  await round(40)
  const before = await residentBytes(front.sidecar.pid)
  await round(160)
  const grown = (await residentBytes(front.sidecar.pid)) - before
  assert.ok(grown < 64 << 20, `${grown >> 20} MiB more after 160 downloads`)
  const statuses = (await front.records()).map((record) => record.reasons.join())
  assert.deepEqual([...new Set(statuses)], ['client_abort'])
  assert.equal((await front.peers('peers'))[peer.address]?.health.fails, 0)
  await front.settle(200)
})

test('a response that the peer cuts off counts as a failure of the peer, although its status was sent', async () => {
  await using bad = await backend(async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': 4096 }))
    await x.send(Buffer.alloc(1024, 'x'))
    await sleep(10)
    x.reset()
  })
  await using good = await backend({ body: 'good' })
  await using front = await lab(
    `upstream peers { server ${bad.address} max_fails=3; server ${good.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [bad, good],
  )
  let cut = 0
  for (let i = 0; i < 10; i++) {
    const reply = await ask(front.port)
    assert.equal(reply.status, 200)
    if (!reply.complete) {
      cut += 1
      assert.equal(reply.body.length, 1024)
    }
  }
  assert.equal(cut, 3)
  assert.equal(bad.requests.length, 3)
  const { state, health } = (await front.peers('peers'))[bad.address]!
  assert.deepEqual({ state, fails: health.fails }, { state: 'unavailable', fails: 3 })
  await front.settle(10)
})
