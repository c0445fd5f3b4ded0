import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

/** A peer that begins an answer of unknown length and keeps its client waiting for the rest. */
function endless(beginning: number) {
  return backend(async (exchange) => {
    await exchange.send('HTTP/1.1 200 OK\r\n\r\n')
    await exchange.send(Buffer.alloc(beginning, 'x'))
    exchange.done()
    await exchange.gone
  })
}

test('a client of HTTP/1.0 that half-closes is told by a reset that its answer is not whole', async () => {
  await using peer = await endless(5)
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  await client.write(Client.bytes('/', { version: '1.0' }))
  await client.inbox.until('xxxxx')
  client.end()
  assert.equal(await client.closed, 'reset')
  await it.settle(1, { seen: false })
})

test('a client of HTTP/1.0 that takes too long to read is told by a reset that its answer is not whole', async () => {
  await using peer = await endless(8 << 20)
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; send_timeout 300ms; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  client.socket.pause()
  await client.write(Client.bytes('/', { version: '1.0' }))
  await it.record()
  client.socket.resume()
  assert.equal(await client.closed, 'reset')
  await it.settle(1, { seen: false })
})

test('a client on a Unix socket, which knows no reset, loses its connection with the rest of its answer', async () => {
  await using peer = await endless(5)
  await using sidecar = await start(
    `http { server { listen unix:front.sock; location / { proxy_pass http://${peer.address}; } } }`,
  )
  const client = await dial(`${sidecar.folder}/front.sock`)
  await client.write(Client.bytes('/', { version: '1.0' }))
  await client.inbox.until('xxxxx')
  client.end()
  await client.closed
  await sidecar.logged(/"status":499/)
})

for (const [what, signal] of [
  ['a program that is stopped at once', 'SIGINT'],
  ['a drain that takes too long', 'SIGTERM'],
] as const) {
  test(`${what} resets answers that would look whole`, async () => {
    await using peer = await endless(5)
    await using sidecar = await start(`drain_timeout 200ms;
      http { server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } } }`)
    const client = await dial(sidecar.port)
    await client.write(Client.bytes('/', { version: '1.0' }))
    await client.inbox.until('xxxxx')
    sidecar.signal(signal)
    assert.equal(await client.closed, 'reset')
    assert.equal((await sidecar.exited).code, 0)
  })
}
