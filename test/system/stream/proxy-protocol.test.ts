import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { proxyHeader } from '../../../sidecar/net/proxy-protocol.ts'
import { Client, dial } from '../../support/client.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { until } from '../../support/until.ts'

let peer: TcpPeer
let sidecar: Sidecar

before(async () => {
  peer = await tcpPeer()
  sidecar = await start(`
    error_log stderr info;
    stream {
      log_format own '$server_port $status $remote_addr:$remote_port $realip_remote_addr '
        '[$proxy_protocol_addr:$proxy_protocol_port $proxy_protocol_server_addr:$proxy_protocol_server_port] $bytes_received '
        '$proxy_protocol_tlv_0xEA,$proxy_protocol_tlv_ssl_cn,$proxy_protocol_tlv_ssl_verify';
      access_log /dev/stdout own;
      proxy_protocol_timeout 200ms;
      server { listen 127.0.0.1:PORT proxy_protocol; proxy_pass ${peer.address}; }
      server { listen 127.0.0.1:PORT2 proxy_protocol; proxy_pass ${peer.address}; set_real_ip_from 127.0.0.0/8; proxy_protocol on; }
      server { listen 127.0.0.1:PORT3; proxy_pass ${peer.address}; proxy_protocol v2; }
    }
    http {
      server {
        listen 127.0.0.1:PORT4 proxy_protocol;
        client_header_timeout 600ms;
        location / { return 200 "$remote_addr:$remote_port [$proxy_protocol_addr] $realip_remote_addr"; }
        location /real {
          set_real_ip_from 127.0.0.1;
          real_ip_header proxy_protocol;
          return 200 "$remote_addr:$remote_port $proxy_protocol_server_addr:$proxy_protocol_server_port $realip_remote_addr";
        }
      }
    }`)
})

after(async () => {
  await sidecar[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

const from = { remoteAddr: '192.0.2.1', remotePort: '4711', serverAddr: '198.51.100.2', serverPort: '443' }
const logged = (text: string) => until(() => sidecar.stdout.includes(text))

async function joined(word: string, ...bytes: (Buffer | string)[]): Promise<{ client: Client; at: Client }> {
  const client = await dial(sidecar.ports[word]!)
  for (const each of bytes) await client.write(each)
  return { client, at: await peer.next() }
}

test('a PROXY header is taken off, and the rest passes as it is', async () => {
  const port = sidecar.ports['PORT']
  for (const header of [proxyHeader('v1', from), proxyHeader('v2', from)]) {
    const { client, at } = await joined(
      'PORT',
      header.subarray(0, 5),
      Buffer.concat([header.subarray(5), Buffer.from('hello')]),
    )
    assert.equal(`${await at.inbox.take(5)}`, 'hello')
    client.end()
    assert.equal(await at.closed, 'fin')
    await until(() => sidecar.stdout.includes(`[192.0.2.1:4711 198.51.100.2:443] 5`))
    const line = sidecar.stdout.trim().split('\n').at(-1)!
    assert.match(line, new RegExp(`^${port} 200 127\\.0\\.0\\.1:\\d+ 127\\.0\\.0\\.1 \\[192`))
  }
})

test('what a header of version 2 says besides is told too', async () => {
  const tlv = (type: number, value: Buffer | string) =>
    Buffer.concat([Buffer.from([type, 0, value.length]), Buffer.from(value)])
  const ssl = tlv(0x20, Buffer.concat([Buffer.from([1, 0, 0, 0, 18]), tlv(0x21, 'TLSv1.3'), tlv(0x22, 'me')]))
  const header = Buffer.concat([proxyHeader('v2', from), tlv(0x04, '\0\0'), tlv(0xea, 'vpce-1'), ssl])
  header.writeUInt16BE(header.length - 16, 14)
  const { client, at } = await joined('PORT', header, 'hello')
  assert.equal(`${await at.inbox.take(5)}`, 'hello')
  client.end()
  await logged('[192.0.2.1:4711 198.51.100.2:443] 5 vpce-1,me,18\n')
})

test('it is the client’s address where its writer is trusted, and peers are told so', async () => {
  const { client, at } = await joined('PORT2', proxyHeader('v2', from), 'x')
  assert.equal(
    `${await at.inbox.until('\n')}`,
    `PROXY TCP4 192.0.2.1 127.0.0.1 4711 ${sidecar.ports['PORT2']}\r\n`,
  )
  assert.equal(`${await at.inbox.take(1)}`, 'x')
  client.end()
  await logged(`${sidecar.ports['PORT2']} 200 192.0.2.1:4711 127.0.0.1 [192.0.2.1:4711`)
})

test('a header that says nothing of addresses leaves them as they are', async () => {
  for (const header of ['PROXY UNKNOWN\r\n', Buffer.from('\r\n\r\n\0\r\nQUIT\n\x20\0\0\0', 'latin1')]) {
    const { client, at } = await joined('PORT2', header, 'x')
    assert.equal(
      `${await at.inbox.until('\n')}`,
      `PROXY TCP4 127.0.0.1 127.0.0.1 ${client.socket.localPort} ${sidecar.ports['PORT2']}\r\n`,
    )
    client.end()
    await logged(`${sidecar.ports['PORT2']} 200 127.0.0.1:${client.socket.localPort} 127.0.0.1 [-:- -:-] 1`)
  }
})

test('peers get a header of version 2 where that is asked for', async () => {
  const { client, at } = await joined('PORT3', 'x')
  const wanted = proxyHeader('v2', {
    remoteAddr: '127.0.0.1',
    remotePort: `${client.socket.localPort}`,
    serverAddr: '127.0.0.1',
    serverPort: `${sidecar.ports['PORT3']}`,
  })
  assert.deepEqual(await at.inbox.take(wanted.length + 1), Buffer.concat([wanted, Buffer.from('x')]))
  client.end()
  await at.closed
})

test('what is no header, or is not whole in time, ends the session with 400', async () => {
  const { accepted } = peer
  const port = sidecar.ports['PORT']!
  const count = () => sidecar.stdout.split(`${port} 400 `).length
  for (const bytes of [
    'GET / HTTP/1.1\r\n\r\n',
    'PROXY TCP4 x y 1 2\r\n',
    Buffer.alloc(70_000),
    'PROXY TCP4 1',
    '',
  ]) {
    const before = count()
    const client = await dial(port)
    await client.write(bytes)
    assert.ok(await client.closed)
    client.close()
    await until(() => count() > before)
  }
  for (const how of ['end', 'reset'] as const) {
    const before = count()
    const client = await dial(port)
    await client.write('PROXY ')
    await wait(30)
    client[how]()
    await until(() => count() > before)
  }
  assert.equal(peer.accepted, accepted)
  await sidecar.logged(
    /\[error\] .* broken header while reading PROXY protocol, client: 127\.0\.0\.1, server: 127/,
  )
  await sidecar.logged(/\[info\] .* client timed out while sending its PROXY header/)
})

test('requests may come on a connection that begins with a PROXY header too', async () => {
  for (const version of ['v1', 'v2'] as const) {
    const client = await dial(sidecar.ports['PORT4']!)
    const header = proxyHeader(version, from)
    await client.write(header.subarray(0, 3))
    await client.write(Buffer.concat([header.subarray(3), Client.bytes('/')]))
    const own = `127.0.0.1:${client.socket.localPort}`
    assert.equal((await client.reply()).text, `${own} [192.0.2.1] 127.0.0.1`)
    assert.equal((await client.ask('/real')).text, '192.0.2.1:4711 198.51.100.2:443 127.0.0.1')
    client.end()
    assert.equal(await client.closed, 'fin')
  }
  const unknown = await dial(sidecar.ports['PORT4']!)
  await unknown.write('PROXY UNKNOWN\r\n')
  assert.equal((await unknown.ask('/real')).text, `127.0.0.1:${unknown.socket.localPort} : 127.0.0.1`)
  unknown.end()
})

test('a request without the header that is expected gets no answer', async () => {
  const count = () => sidecar.stdout.split('"status":400').length
  const before = count()
  const refused = async (bytes: Buffer | string) => {
    const client = await dial(sidecar.ports['PORT4']!)
    await client.write(bytes)
    assert.ok(await client.closed)
    assert.equal(client.inbox.total, 0)
    client.close()
  }
  await Promise.all([Client.bytes('/'), 'PROXY ', ''].map(refused))
  await until(() => count() === before + 3)
  await sidecar.logged(/\[info\] .* PROXY header not complete in time/)
  await sidecar.logged(
    /\[error\] .* that can be served: broken header while reading PROXY protocol, client: 127/,
  )
})
