import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'

test('clients that dribble a head or a body are let go in time, and others do not feel them', async () => {
  await using peer = await backend({ body: 'ok' })
  await using front = await lab(
    `client_header_timeout 500ms; client_body_timeout 500ms;
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } }`,
    [peer],
  )
  const dribble = async (text: string, paceMs: number) => {
    const client = await dial(front.port)
    const started = performance.now()
    for (const byte of text) {
      if (client.inbox.ended) break
      await client.write(byte)
      await Promise.race([sleep(paceMs), client.closed])
    }
    await client.closed
    client.close()
    return { afterMs: performance.now() - started, said: client.inbox.unread.toString('latin1') }
  }
  const head = `GET /slow HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(100)}\r\n\r\n`
  const heads = Array.from({ length: 100 }, () => dribble(head, 100))
  const bodies = Array.from({ length: 5 }, async () => {
    const client = await dial(front.port)
    await client.write('POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx')
    const started = performance.now()
    await client.closed
    client.close()
    return { afterMs: performance.now() - started, said: client.inbox.unread.toString('latin1') }
  })
  const times: number[] = []
  for (let i = 0; i < 40; i++) {
    const started = performance.now()
    assert.equal((await ask(front.port)).status, 200)
    times.push(performance.now() - started)
    await sleep(10)
  }
  times.sort((one, other) => one - other)
  assert.ok(times.at(-3)! < 300, `${times.at(-3)} ms`)
  for (const { afterMs, said } of [...(await Promise.all(heads)), ...(await Promise.all(bodies))]) {
    assert.ok(afterMs > 400 && afterMs < 2600, `let go after ${afterMs} ms`)
    assert.ok(said === '' || said.startsWith('HTTP/1.1 408 '), said)
  }
  const timedOut = (await front.records()).filter((record) => record.status === 408)
  assert.ok(timedOut.length >= 5, `${timedOut.length} records of those that sent a head`)
  for (const { addresses } of timedOut) assert.deepEqual(addresses, [])
  assert.ok(peer.requests.every((request) => request.target !== '/slow' || request.method === 'POST'))
  await front.settle(undefined, { seen: false })
})

test('a body that dribbles, though never for too long, is waited for, and no peer with it', async () => {
  await using peer = await backend(async (x) => x.reply({ body: String((await x.body()).body) }))
  await using front = await lab(
    `client_body_timeout 500ms;
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } }`,
    [peer],
  )
  using client = await dial(front.port)
  await client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n')
  for (const byte of 'from A to Z.') {
    assert.equal(peer.connections, 0)
    await sleep(80)
    await client.write(byte)
  }
  assert.equal((await client.reply()).text, 'from A to Z.')
  await front.settle(1)
})
