import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../../support/backend.ts'
import { Client, exchange } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'

test('what comes of an answer before its fault is passed on, also when both come at once', async () => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  await using peer = await backend(async (exchange) => {
    const end = exchange.target === '/part' ? '5\r\nhello\r\nnonsense' : 'nonsense'
    await exchange.send(`${head}${end}\r\n`)
    exchange.done()
    await exchange.gone
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const nothing = await exchange(it.port, Client.bytes('/nothing'))
  assert.match(nothing, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s)
  const part = await exchange(it.port, Client.bytes('/part'))
  assert.match(part, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n5\r\nhello\r\n$/s)
  await it.settle(2)
})
