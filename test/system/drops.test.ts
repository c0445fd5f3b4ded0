import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, type Exchange, echo } from '../support/backend.ts'
import { change } from '../support/changing.ts'
import { ask, Client, dial, webSocket } from '../support/client.ts'
import { followed, neighbours } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { http2Peer } from '../support/http2-peer.ts'
import { eventually } from '../support/invariants.ts'
import { headText } from '../support/message.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { echoPeer } from '../support/tcp-peer.ts'
import { udpClient } from '../support/udp-client.ts'
import { named } from '../support/udp-lab.ts'
import { udpPeer } from '../support/udp-peer.ts'
import { until } from '../support/until.ts'

/** What is under way with peers that leave, where `proxy_connection_drop` ends it. */

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** Never answers, nor closes. */
const silent = async (x: Exchange) => {
  await x.gone
}

/** A group of two, the second one a backup, and a location. */
function group(a: string, b: string, location: string, main = ''): string {
  return `error_log stderr info; worker_processes 2; ${main}
    http {
      log_format a '$status $upstream_status $upstream_reason'; access_log /dev/stdout a;
      upstream u { zone u 64k; server ${a}; server ${b} backup; }
      server { listen 127.0.0.1:PORT; explain_header X-Why; location / { proxy_pass http://u; ${location} } }
    }`
}

const failsOf = async (sidecar: Sidecar, address: string) => {
  const peers = await sidecar.json<Record<string, { health: { fails: number } }>>(
    '/status/http/upstreams/u/peers/',
  )
  return peers[address]?.health.fails
}

test('a request that waits for a peer that is removed goes on to another one, and nobody has failed', async () => {
  await using a = await backend(silent)
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(group(a.address, b.address, 'proxy_connection_drop on;'))
  const reply = ask(sidecar.port)
  await until(() => a.requests.length === 1)
  await change(sidecar, 'POST', 'u/peers', { server: b.address.replace('127.0.0.1', '127.0.0.2') })
  assert.equal((await change(sidecar, 'DELETE', `u/peers/${a.address}`)).status, 200)
  const { status, text, head } = await reply
  assert.deepEqual([status, text.trim()], [200, 'b'], `${head.header('x-why')}`)
  assert.match(`${head.header('x-why')}`, new RegExp(`^${a.address} 502 dropped `))
  await sidecar.logged(
    /\[info\] .* upstream has left its group, its connection is closed while reading response header/,
  )
})

test('who has left while another one was asked, or while the body came, is not asked any more', async () => {
  for (const leave of ['down', 'delete'] as const) {
    const told = Promise.withResolvers<void>()
    await using a = await backend(async (x) => {
      await told.promise
      await x.reply({ status: 503 })
    })
    await using b = await backend({ body: 'b' })
    await using c = await backend({ body: 'c' })
    await using sidecar = await start(`worker_processes 1;
      http {
        access_log off;
        upstream u { zone u 64k; server ${a.address} weight=9; server ${b.address}; server ${c.address}; }
        server {
          listen 127.0.0.1:PORT;
          location / { proxy_pass http://u; proxy_next_upstream error http_503; proxy_connection_drop 1h; }
        }
      }`)
    const gone = ({ address }: { readonly address: string }) =>
      leave === 'delete'
        ? change(sidecar, 'DELETE', `u/peers/${address}`)
        : change(sidecar, 'PATCH', `u/peers/${address}`, { state: 'down' })
    const retried = ask(sidecar.port)
    await until(() => a.requests.length === 1)
    using slow = await dial(sidecar.port)
    await slow.write('PUT /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1')
    assert.equal((await gone(b)).status, 200)
    told.resolve()
    assert.equal((await retried).text, 'c', leave)
    assert.equal((await gone(a)).status, 200)
    await slow.write('2')
    assert.equal((await slow.reply()).text, 'c', leave)
    assert.deepEqual([a.requests.length, b.requests.length], [1, 0], leave)
  }
})

test('one that may not be sent again gets 502, and so does one where errors are no reason to go on', async () => {
  for (const [location, method] of [
    ['proxy_connection_drop on;', 'POST'],
    ['proxy_connection_drop on; proxy_next_upstream off;', 'GET'],
  ] as const) {
    await using a = await backend(silent)
    await using b = await backend({ body: 'b' })
    await using sidecar = await start(group(a.address, b.address, location))
    const reply = ask(sidecar.port, '/', { method, headers: { 'Content-Length': '0' } })
    await until(() => a.requests.length === 1)
    await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'down' })
    assert.equal((await reply).status, 502)
    assert.equal(await failsOf(sidecar, a.address), 0)
    await eventually('it is written down', () => /^502 502 dropped$/m.test(sidecar.stdout))
  }
})

test('an answer under way breaks off, and without the directive all goes on', async () => {
  const released = Promise.withResolvers<void>()
  await using a = await backend(async (x) => {
    await x.send(headText('HTTP/1.1 200 OK', { 'Content-Length': '6' }))
    await x.send('abc')
    await Promise.race([released.promise, x.gone])
    await x.send('def')
  })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(`worker_processes 2;
    http {
      log_format a '$uri $status $upstream_reason'; access_log /dev/stdout a;
      upstream u { zone u 64k; server ${a.address}; server ${b.address} backup; }
      server {
        listen 127.0.0.1:PORT;
        location /on { proxy_pass http://u; proxy_connection_drop 100ms; }
        location /off { proxy_pass http://u; }
      }
    }`)
  const on = await dial(sidecar.port)
  await on.write(Client.bytes('/on'))
  const off = ask(sidecar.port, '/off')
  await until(() => a.requests.length === 2)
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'down' })
  await on.closed
  assert.match(`${await on.inbox.some()}`, /\r\n\r\nabc$/)
  released.resolve()
  assert.equal((await off).text, 'abcdef')
  await eventually('it is written down', () => /^\/on 200 dropped$/m.test(sidecar.stdout))
})

test('a peer that is back before the time is over has not left', async () => {
  let release = () => {}
  await using a = await backend(async (x) => {
    await new Promise<void>((resolve) => {
      release = resolve
    })
    await x.reply({ body: 'a' })
  })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(group(a.address, b.address, 'proxy_connection_drop 300ms;'))
  const reply = ask(sidecar.port)
  await until(() => a.requests.length === 1)
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'down' })
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'up' })
  await sleep(500)
  release()
  assert.equal((await reply).text, 'a')
})

test('a name that has a peer no more ends requests and tunnels with it, and a reload does not', async () => {
  await using peers = await neighbours(2, [echo])
  await dns.has('left.example', ['127.0.0.1'])
  const upgrade = 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;'
  const text = followed(dns, `left.example:${peers.port} resolve`, {
    location: `${upgrade} proxy_connection_drop on;`,
  })
  await using sidecar = await start(text)
  const { client } = await webSocket(sidecar.port)
  await dns.has('left.example', ['127.0.0.2'])
  assert.equal(await client.closed, 'fin')
  await until(async () => (await ask(sidecar.port)).text === '2')
  const other = await neighbours(1, [silent])
  await using _ = other
  await sidecar.reload(text.replace(/server left[^;]*;/, `server ${other.at(1).address};`))
  const waiting = ask(sidecar.port).then(({ text }) => text)
  await until(() => other.at(1).requests.length === 1)
  await sidecar.reload(text.replace(/server left[^;]*;/, `server 127.0.0.2:${peers.port};`))
  await until(async () => (await ask(sidecar.port)).text === '2')
  // Nor does a change of the group after that.
  await change(sidecar, 'PATCH', `u/peers/127.0.0.2:${peers.port}`, { weight: 2 })
  const first = await Promise.race([waiting, sleep(300, 'goes on')])
  assert.equal(first, 'goes on')
  other.at(1).script = { body: 'late' }
  await other.at(1).stop()
  await waiting
})

test('calls of gRPC and streams of HTTP/2 are ended one by one, others on their connection go on', async () => {
  let first: (() => void) | undefined
  await using a = await http2Peer((stream, fields) => {
    if (fields[':path'] === '/on') return
    first = () => {
      stream.respond({ ':status': 200 })
      stream.end('kept')
    }
  })
  await using sidecar = await start(`http {
    access_log off;
    upstream u { zone u 64k; server ${a.address}; server 127.0.0.1:1 down; }
    server {
      listen 127.0.0.1:PORT;
      location /on { grpc_pass grpc://u; grpc_connection_drop on; }
      location /off { proxy_http_version 2; proxy_pass http://u; }
    }
  }`)
  const off = ask(sidecar.port, '/off')
  await until(() => a.requests === 1)
  const on = ask(sidecar.port, '/on')
  await until(() => a.requests === 2)
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'down' })
  assert.equal((await on).status, 502)
  await until(() => a.resets.length === 1)
  assert.deepEqual(a.resets, [8])
  first?.()
  assert.equal((await off).text, 'kept')
})

test('sessions of TCP end with their peer, in order, and those of a server without the directive go on', async () => {
  await using a = await echoPeer()
  await using b = await echoPeer()
  await using sidecar = await start(
    `error_log stderr info; worker_processes 2;
    stream {
      log_format s '$server_port $status $upstream_reason';
      upstream u { zone u 64k; server ${a.address}; server ${b.address} backup; }
      server { listen 127.0.0.1:PORT; proxy_pass u; proxy_connection_drop on; }
      server { listen unix:SOCKET; proxy_pass u; }
    }`.replace('SOCKET', `/tmp/evenkeel-drop-${process.pid}.sock`),
  )
  const on = await dial(sidecar.port)
  const off = await dial(`/tmp/evenkeel-drop-${process.pid}.sock`)
  for (const client of [on, off]) {
    await client.write('one')
    assert.equal((await client.inbox.take(3))?.toString(), 'one')
  }
  await change(sidecar, 'PATCH', `stream/u/peers/${a.address}`, { state: 'down' })
  assert.equal(await on.closed, 'fin')
  await off.write('two')
  assert.equal((await off.inbox.take(3))?.toString(), 'two')
  await sidecar.logged(/upstream has left its group, its connection is closed while proxying/)
  off.close()
})

test('the next datagram of a client whose peer has left goes to another one', async () => {
  await using a = await udpPeer(named('a'))
  await using b = await udpPeer(named('b'))
  await using sidecar = await start(`worker_processes 2;
    stream {
      upstream u { zone u 64k; server ${a.address}; server ${b.address} backup; }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; proxy_timeout 1s; proxy_connection_drop on; }
    }`)
  await using client = await udpClient(sidecar.port)
  assert.equal(await client.ask('1'), 'a1')
  assert.equal(await client.ask('2'), 'a2')
  await change(sidecar, 'PATCH', `stream/u/peers/${a.address}`, { state: 'down' })
  await until(async () => (await client.ask('3')) === 'b3')
})

test('a client that leaves while its peer is still connected to has done so itself, whoever else has left', async () => {
  await using a = await backend(silent)
  await using b = await echoPeer()
  await using sidecar = await start(`error_log stderr info; worker_processes 1;
    stream {
      log_format s '$status $upstream_reason'; access_log /dev/stdout s;
      upstream u { zone u 64k; server ${a.address}; server ${b.address} backup; }
      server { listen 127.0.0.1:PORT; proxy_pass u; proxy_ssl on; proxy_connection_drop on; }
    }`)
  const client = await dial(sidecar.port)
  await until(() => a.connections === 1)
  await change(sidecar, 'PATCH', `stream/u/peers/${a.address}`, { state: 'down' })
  // In the program's one thread it is known by now; what comes of that is a turn later.
  await sleep(100)
  client.close()
  await eventually('it is written down', () => /^\d+ \w+$/m.test(sidecar.stdout))
  assert.match(sidecar.stdout, /^\d+ client_abort$/m)
})
