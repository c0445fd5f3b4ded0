import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import { dial } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'
import { dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const a = issuer.issue('a.test')

const sidecar = await start(
  `
error_log stderr info;
http {
  access_log off;
  client_header_timeout 1s;
  ssl_certificate ${a.certFile};
  ssl_certificate_key ${a.keyFile};
  server { listen 127.0.0.1:PORT ssl; status_zone a; location / { return 200 a; } }
  server { listen 127.0.0.1:PORT2 ssl proxy_protocol; location / { return 200 $proxy_protocol_addr; } }
  server { listen unix:UNIX ssl; location / { return 200 $scheme; } }
}`.replace('UNIX', `${issuer.folder}/socket`),
)
after(() => sidecar[Symbol.asyncDispose]())

type Counts = Readonly<Record<'handshaked' | 'reuses' | 'timedout' | 'failed', number>>
const counts = () => sidecar.json<Counts>('/status/http/server_zones/a/ssl')
const open = async () => {
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  return Number(/^evenkeel_connections_idle (\d+)$/m.exec(text)![1])
}

/** What a client says first. */
async function firstWords(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  const secure = connect({ port: address.port, host: '127.0.0.1' }).on('error', () => {})
  const [accepted] = await once(server, 'connection')
  const [bytes] = await once(accepted, 'data')
  secure.destroy()
  accepted.destroy()
  server.close()
  return bytes
}
const hello = await firstWords()

test('a handshake that comes byte by byte is one', async () => {
  const client = await dial(sidecar.port)
  for (let at = 0; at < hello.length; at += 40) {
    await client.write(hello.subarray(at, at + 40))
    await sleep(1)
  }
  // The server's first message.
  assert.equal((await client.inbox.some())?.[0], 22)
  client.close()
})

test('clients that say nothing, or stop in the middle, are closed in time, and are counted', async () => {
  const before = await counts()
  const silent = await Promise.all(Array.from({ length: 20 }, () => dial(sidecar.port)))
  const halves = await Promise.all(Array.from({ length: 20 }, () => dial(sidecar.port)))
  const begun = await Promise.all(Array.from({ length: 20 }, () => dial(sidecar.port)))
  await Promise.all([
    ...halves.map((one) => one.write(hello.subarray(0, 100))),
    ...begun.map((one) => one.write(hello)),
  ])
  await eventually('they are connections', async () => (await open()) === 60)
  const at = performance.now()
  await Promise.all([...silent, ...halves, ...begun].map((client) => client.closed))
  assert.ok(performance.now() - at < 3000)
  const now = await counts()
  assert.equal(now.timedout - before.timedout, 60)
  assert.equal(now.handshaked, before.handshaked)
  assert.equal(await open(), 0)
  for (const client of [...silent, ...halves, ...begun]) client.close()
})

test('whoever leaves in the middle, in order or not, leaves nothing behind', async () => {
  const before = await counts()
  for (const leave of ['end', 'reset', 'close'] as const) {
    for (const length of [1, 50, hello.length]) {
      const client = await dial(sidecar.port)
      await client.write(hello.subarray(0, length))
      // A reset would take along what has not been read yet.
      if (length === hello.length) await client.inbox.some()
      else await sleep(20)
      client[leave]()
      if (leave === 'end') await client.closed
      client.close()
    }
  }
  await eventually('all are gone', async () => (await open()) === 0)
  assert.equal((await counts()).failed - before.failed, 9)
})

test('garbage gets an alert or an answer without TLS, and no more', async () => {
  const replies: string[] = []
  for (const bytes of [
    Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]),
    Buffer.concat([hello.subarray(0, 60), Buffer.alloc(hello.length - 60, 0xff)]),
    Buffer.from([22, 3, 3, 255, 255]),
    Buffer.from('\x80.garbage\r\n\r\n', 'latin1'),
  ]) {
    const client = await dial(sidecar.port)
    await client.write(bytes)
    replies.push((await client.inbox.some())?.toString('latin1', 0, 12) ?? '')
    await client.closed
    client.close()
  }
  assert.deepEqual(
    replies.map((text) => (text.startsWith('HTTP/1.1 400') ? 400 : text.charCodeAt(0))),
    [21, 21, 21, 400],
  )
})

test('garbage after the handshake ends the connection, and nothing else', async () => {
  const client = await dialTls(sidecar.port)
  assert.equal((await client.ask('/')).text, 'a')
  const other = await dialTls(sidecar.port)
  const below = await dial(sidecar.port)
  await below.write(hello)
  await below.inbox.some()
  await below.write(Buffer.alloc(200, 0x41))
  await below.closed
  below.close()
  assert.equal((await client.ask('/')).text, 'a')
  assert.equal((await other.ask('/')).text, 'a')
  client.close()
  other.close()
})

test('a client that asks for another handshake does not get one', async () => {
  const client = await dialTls(sidecar.port, { maxVersion: 'TLSv1.2' })
  assert.equal((await client.ask('/')).text, 'a')
  const before = await counts()
  client.secure.on('error', () => {})
  client.secure.renegotiate({}, () => {})
  await Promise.race([client.closed, sleep(200)])
  assert.equal((await counts()).handshaked, before.handshaked)
  client.close()
})

test('a flood of handshakes that are broken off keeps nobody from being served', async () => {
  let over = false
  const flood = async () => {
    while (!over) {
      const client = await dial(sidecar.port)
      await client.write(hello)
      client.reset()
    }
  }
  const floods = Promise.all(Array.from({ length: 10 }, flood))
  for (let i = 0; i < 10; i++) {
    using client = await dialTls(sidecar.port)
    assert.equal((await client.ask('/')).text, 'a')
  }
  over = true
  await floods
  await eventually('all are gone', async () => (await open()) === 0)
})

test('a PROXY header comes before the handshake', async () => {
  const below = await dial(sidecar.ports['PORT2']!)
  await below.write('PROXY TCP4 192.0.2.7 192.0.2.8 1000 2000\r\n')
  below.socket.removeAllListeners('data')
  const secure = connect({ socket: below.socket, rejectUnauthorized: false })
  secure.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  let text = ''
  for await (const piece of secure) text += piece
  assert.match(text, /\r\n\r\n192\.0\.2\.7$/)
})

test('TLS is spoken over Unix sockets too', async () => {
  const below = await dial(`${issuer.folder}/socket`)
  below.socket.removeAllListeners('data')
  const secure = connect({ socket: below.socket, rejectUnauthorized: false })
  secure.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  let text = ''
  for await (const piece of secure) text += piece
  assert.match(text, /\r\n\r\nhttps$/)
})
