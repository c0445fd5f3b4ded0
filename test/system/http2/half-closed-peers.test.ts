import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import { ask, Client, dial } from '../../support/client.ts'
import { framePeer } from '../../support/frame-peer.ts'
import { endHeaders, endStream, fields, frame } from '../../support/http2-frames.ts'
import { start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const { cert, key } = issuer.issue('peer.test')
/** What a peer needs to be asked by HTTP/2, and to end one side of a connection alone. */
const tls = { cert, key, ALPNProtocols: ['h2'], allowHalfOpen: true }

const configuration = (port: number) => `
  worker_processes 1;
  http {
    upstream up { server 127.0.0.1:${port} max_fails=0; }
    server {
      listen 127.0.0.1:PORT; explain_header X-Why; proxy_connect_timeout 20s;
      location / { proxy_http_version 2; proxy_pass https://up; }
    }
  }`

test('a peer that ends its side after the handshake is not waited for', async () => {
  const server = createServer(tls, (secure) => secure.on('error', () => {}).end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A listening TCP server has an address.
  const { port } = server.address() as { port: number }
  try {
    await using it = await start(configuration(port))
    const reply = await ask(it.port, '/')
    assert.equal(reply.header('x-why'), `127.0.0.1:${port} 502 reset (single), tries`)
  } finally {
    server.close()
  }
})

test('what should not be sent twice is not sent on a connection that was just closed at rest', async () => {
  await using peer = await framePeer((connection, { type, flags, stream }) => {
    if ((type === 'headers' || type === 'data') && (flags & endStream) !== 0)
      connection.send(frame('headers', endHeaders | endStream, stream, fields({ ':status': '200' })))
  })
  await using it = await start(configuration(peer.port).replace('https:', 'http:'))
  using client = await dial(it.port)
  assert.equal((await client.ask('/')).status, 200)
  // So long that it may have been closed for its rest.
  await sleep(700)
  it.process.kill('SIGSTOP')
  await client.write(Client.bytes('/', { method: 'POST', body: 'x' }))
  peer.connections[0]!.socket.end()
  // Both have come before the program goes on.
  await sleep(50)
  it.process.kill('SIGCONT')
  assert.equal((await client.reply()).header('x-why'), `${peer.address} 200 (single)`)
  assert.equal(peer.connections.length, 2)
})

test('a connection that its peer has ended its side of is closed, at rest and in use', async () => {
  let answers = true
  await using peer = await framePeer(
    (connection, { type, stream }) => {
      if (type !== 'headers') return
      if (answers)
        connection.send(frame('headers', endHeaders | endStream, stream, fields({ ':status': '200' })))
      else connection.socket.end()
    },
    undefined,
    tls,
  )
  await using it = await start(configuration(peer.port))
  assert.equal((await ask(it.port, '/')).status, 200)
  peer.connections[0]!.socket.end()
  await until(() => peer.connections[0]!.ended)
  assert.equal((await ask(it.port, '/')).header('x-why'), `${peer.address} 200 (single)`)
  answers = false
  const reply = await ask(it.port, '/', { method: 'POST', body: 'x' })
  assert.equal(reply.status, 502)
  await until(() => peer.connections.every(({ ended }) => ended))
})
