import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { Client, dial } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'

test('what a client sends ahead of the last response that keepalive_requests allows is not answered', async () => {
  await using peer = await backend({ body: 'b' })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; keepalive_requests 2; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const client = await dial(it.port)
  const bytes = ['/1', '/2', '/3', '/4'].map((target) => Client.bytes(target))
  await client.write(Buffer.concat(bytes))
  assert.notEqual((await client.reply()).header('connection'), 'close')
  assert.equal((await client.reply()).header('connection'), 'close')
  client.end()
  await client.closed
  assert.equal(client.inbox.unread.toString('latin1'), '')
  assert.deepEqual(peer.targets, ['/1', '/2'])
  await it.settle(2)
})

test('a client that expects 100 gets one, also when an error page leads to a second peer', async () => {
  await using second = await backend(async (exchange) => {
    const { body } = await exchange.body()
    await exchange.reply({ body: `${body.length}`, after: 250 })
  })
  await using first = await backend(async (exchange) => {
    await exchange.body()
    exchange.reset()
  })
  await using it = await lab(
    `upstream up { server ${first.address}; } upstream other { server ${second.address}; }
     server {
       listen 127.0.0.1:PORT;
       location / { proxy_pass http://up; error_page 502 = @other; }
       location @other { proxy_pass http://other; }
     }`,
    [first, second],
  )
  const client = await dial(it.port)
  await client.write('PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
  assert.match(String(await client.inbox.until('\r\n\r\n')), /^HTTP\/1\.1 100 /)
  await client.write('12345')
  const reply = await client.reply('PUT')
  assert.equal(reply.text, '5')
  assert.equal(reply.interim.length, 0)
  client.close()
  await it.settle(1)
})

test('an answer that breaks off takes none before it from a client that is still sending', async () => {
  let broken = () => {}
  const cut = new Promise<void>((resolve) => {
    broken = resolve
  })
  await using peer = await backend(async (exchange) => {
    if (exchange.target === '/1') return exchange.reply({ body: 'the first' })
    await exchange.send('HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf')
    exchange.end()
    broken()
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const socket = connect({ host: '127.0.0.1', port: it.port, noDelay: true })
  const chunks: Buffer[] = []
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => {})
  socket.pause()
  socket.write(Buffer.concat([Client.bytes('/1'), Client.bytes('/2')]))
  await cut
  // What it sends from now on comes to a connection that has said its last word.
  for (let i = 0; i < 10; i++) {
    socket.write(Client.bytes('/3'))
    await wait(5)
  }
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.resume()
  socket.end()
  await closed
  const text = Buffer.concat(chunks).toString('latin1')
  assert.match(text, /the first/)
  assert.ok(text.endsWith('half'), text)
  await it.settle(2)
})
