import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Issuer } from '../../support/authority.ts'
import { dial } from '../../support/client.ts'
import { firstMessage, inRecords } from '../../support/first-message.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { dialTls } from '../../support/tls-client.ts'
import { tlsPeer } from '../../support/tls-peer.ts'

/** What clients ask of TLS, read before a peer is chosen and passed on as it came. */

let one: TcpPeer
let other: TcpPeer
let sidecar: Sidecar
const first = await firstMessage({ servername: 'One.example.com', ALPNProtocols: ['h2', 'x'] })

/** Says who it is, and back what it is told. */
const named = (name: string) =>
  tcpPeer((client) => {
    client.socket.write(`${name}:`)
    client.socket.pipe(client.socket)
  })

before(async () => {
  one = await named('1')
  other = await named('2')
  sidecar = await start(`
    stream {
      log_format own '$status [$ssl_preread_server_name] [$ssl_preread_protocol] [$ssl_preread_alpn_protocols] $bytes_received';
      access_log /dev/stdout own;
      map $ssl_preread_server_name $backend { default ${other.address}; one.example.com one; }
      upstream one { server ${one.address}; }
      ssl_preread on;
      proxy_buffer_size 1k;
      server { listen 127.0.0.1:PORT; proxy_pass $backend; }
      server { listen 127.0.0.1:PORT2; proxy_pass $backend; preread_timeout 200ms; preread_buffer_size 100; }
      server { listen 127.0.0.1:PORT3; return "$ssl_preread_server_name $ssl_preread_protocol"; }
      server { listen 127.0.0.1:PORT4 proxy_protocol; proxy_pass $backend; }
    }`)
})

after(async () => {
  await sidecar[Symbol.asyncDispose]()
  await Promise.all([one, other].map((each) => each[Symbol.asyncDispose]()))
})

/** What comes back of what is sent, in parts. */
async function passed(port: number, parts: readonly Buffer[]): Promise<Buffer> {
  const client = await dial(port)
  for (const part of parts) {
    await client.write(part)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const back = await client.inbox.take(2 + Buffer.concat(parts).length)
  client.end()
  await client.closed
  client.close()
  return back!
}

const port = (word: string) => sidecar.ports[word]!

test('the name that a client asks for chooses the group, and every byte is passed on', async () => {
  const rest = Buffer.from('more of it')
  const all = Buffer.concat([first, rest])
  assert.deepEqual(await passed(sidecar.port, [first, rest]), Buffer.concat([Buffer.from('1:'), all]))
  await sidecar.logged(/200 \[one\.example\.com\] \[TLSv1\.3\] \[h2,x\] \d+\n/)
  const records = inRecords(first, 20)
  assert.deepEqual(await passed(sidecar.port, [records]), Buffer.concat([Buffer.from('1:'), records]))
  const bytes = Array.from({ length: first.length }, (_, i) => first.subarray(i, i + 1))
  assert.deepEqual(await passed(sidecar.port, bytes), Buffer.concat([Buffer.from('1:'), first]))
})

test('it is read behind a PROXY header too, and a text of the server’s own may tell it', async () => {
  const header = Buffer.from('PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n')
  const client = await dial(port('PORT4'))
  await client.write(header)
  await client.write(first.subarray(0, 50))
  await wait(20)
  await client.write(first.subarray(50))
  assert.deepEqual(await client.inbox.take(2 + first.length), Buffer.concat([Buffer.from('1:'), first]))
  client.close()
  const told = await dial(port('PORT3'))
  await told.write(first)
  assert.equal(`${await told.inbox.take(23)}`, 'one.example.com TLSv1.3')
  told.close()
})

test('what is no TLS goes on without a name', async () => {
  assert.equal(`${await passed(sidecar.port, [Buffer.from('SSH-2.0-x\r\n')])}`, '2:SSH-2.0-x\r\n')
  const broken = Buffer.concat([first.subarray(0, 5), Buffer.alloc(300, 1)])
  assert.deepEqual(await passed(sidecar.port, [broken]), Buffer.concat([Buffer.from('2:'), broken]))
  const old = Buffer.from([0x80, 0x2e, 1, 3, 1, 0, 0x15])
  assert.deepEqual(await passed(sidecar.port, [old]), Buffer.concat([Buffer.from('2:'), old]))
  await sidecar.logged(/200 \[-\] \[TLSv1\] \[-\] 7\n/)
})

test('clients that say too much, nothing, or not all of it are not waited for, and no peer is asked', async () => {
  const before = one.accepted + other.accepted
  const much = await dial(port('PORT2'))
  await much.write(first)
  assert.equal(await much.closed, 'fin')
  await sidecar.logged(/400 \[-\] \[-\] \[-\] \d{4}\n/)
  for (const part of [first.subarray(0, 50), Buffer.alloc(0)]) {
    const slow = await dial(port('PORT2'))
    await slow.write(part)
    const from = performance.now()
    assert.equal(await slow.closed, 'fin')
    assert.ok(performance.now() - from > 150)
    slow.close()
  }
  const left = await dial(port('PORT2'))
  await left.write(first.subarray(0, 50))
  left.end()
  assert.equal(await left.closed, 'fin')
  await sidecar.logged(/200 \[-\] \[-\] \[-\] 50\n/)
  for (const client of [much, left]) client.close()
  const cut = await dial(port('PORT2'))
  await cut.write(first.subarray(0, 50))
  cut.reset()
  await wait(20)
  assert.equal(one.accepted + other.accepted, before)
})

test('a real client speaks with the server behind as if nobody were between', async () => {
  using issuer = new Issuer()
  const authority = issuer.root()
  await using secure = await tlsPeer(issuer.issue('one.example.com', { by: authority }))
  await using front = await start(`
    stream {
      map $ssl_preread_server_name $backend { one.example.com ${secure.address}; }
      upstream ${secure.address} { server ${secure.address}; }
      server { listen 127.0.0.1:PORT; ssl_preread on; proxy_pass $backend; }
    }`)
  const client = await dialTls(front.port, {
    servername: 'one.example.com',
    ca: authority.cert,
    rejectUnauthorized: true,
  })
  await client.write('hello')
  assert.equal(`${await client.inbox.take(5)}`, 'hello')
  client.end()
  assert.equal(await client.closed, 'fin')
  client.close()
})
