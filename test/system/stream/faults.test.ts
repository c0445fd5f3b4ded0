import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Client, dial } from '../../support/client.ts'
import { deafPeer } from '../../support/deaf-peer.ts'
import { start } from '../../support/sidecar.ts'
import { echoPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { until } from '../../support/until.ts'

test('clients and peers that leave at any moment, in order or not, leave nothing behind', async () => {
  await using peer = await tcpPeer()
  await using echo = await echoPeer()
  await using sidecar = await start(`
    worker_processes 2;
    stream {
      access_log off;
      upstream u { zone u 64k; server ${echo.address}; server 127.0.0.1:1 max_fails=0; server ${peer.address}; }
      server { listen 127.0.0.1:PORT; proxy_pass u; status_zone off; }
      server { listen 127.0.0.1:PORT2; proxy_pass u; proxy_half_close on; status_zone on; }
      server { listen 127.0.0.1:PORT3 proxy_protocol; proxy_pass u; status_zone off; }
    }`)
  const ports = ['PORT', 'PORT2', 'PORT3'].map((word) => sidecar.ports[word]!)
  const leave = async (i: number) => {
    const socket = connect({ port: ports[i % 3]!, host: '127.0.0.1', allowHalfOpen: true })
    const client = new Client(socket)
    if (i % 5 > 0) await new Promise((resolve) => socket.once('connect', resolve))
    if (i % 5 > 1) await client.write(i % 3 === 2 && i % 2 === 0 ? 'PROXY UNKNOWN\r\n' : randomBytes(200))
    if (i % 5 > 2) await wait((i * 7) % 11)
    if (i % 4 === 0) client.end()
    if (i % 4 === 1) client.reset()
    if (i % 4 > 1) client.close()
    await wait(20)
    client.close()
  }
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 24 }, (_, i) => leave(24 * round + i)))
    peer.resetAll()
  }
  await until(() => echo.open === 0)
  peer.resetAll()
  type Zones = Record<
    string,
    { connections: { processing: number; total: number }; sessions: Record<string, number> }
  >
  await until(async () => {
    peer.resetAll()
    const zones = await sidecar.json<Zones>('/status/stream/server_zones/')
    return Object.values(zones).every(({ connections }) => connections.processing === 0)
  })
  const { off } = await sidecar.json<Zones>('/status/stream/server_zones/')
  assert.equal(
    off!.connections.total,
    Object.values(off!.sessions).reduce((sum, count) => sum + count, 0),
  )
})

test('whoever reads nothing is not told that the other side has ended when it was cut off', async () => {
  await using peer = await tcpPeer()
  await using sidecar = await start(`
    stream { server { listen 127.0.0.1:PORT; proxy_pass ${peer.address}; proxy_buffer_size 64m; } }`)
  const client = await dial(sidecar.port)
  const at = await peer.next()
  at.inbox.pause()
  // More than the system takes, and less than is held for the peer before the client is read no more.
  await client.write(Buffer.alloc(32 << 20))
  await wait(50)
  client.reset()
  await sidecar.logged(/client_abort/)
  // Longer than a session waits for its last bytes to be taken.
  await wait(1300)
  while ((await at.inbox.some()) !== undefined);
  assert.equal(at.inbox.ended, 'reset')
})

test('a peer that stands still is connected to, and its session waits for it', async () => {
  await using still = await deafPeer()
  await using sidecar = await start(`
    stream { upstream u { zone u 64k; server 127.0.0.1:${still.port}; }
      server { listen 127.0.0.1:PORT; proxy_pass u; proxy_connect_timeout 200ms; proxy_timeout 500ms; } }`)
  const client = await dial(sidecar.port)
  await client.write('anybody?')
  const from = performance.now()
  assert.equal(await client.closed, 'fin')
  assert.ok(performance.now() - from > 450)
  await sidecar.logged(/"status":200,.*"ending":"ok","reason":null,"connect_ms":[\d.]+,"first_byte_ms":null/)
})

test('with no descriptor left for a peer it is no peer’s failure', async () => {
  await using echo = await echoPeer()
  await using sidecar = await start(
    `worker_processes 1; stream { upstream u { zone u 64k; server ${echo.address}; server ${echo.address}; }
      server { listen 127.0.0.1:PORT; proxy_pass u; } }`,
    { descriptors: 128 },
  )
  const clients: Client[] = []
  for (let i = 0; i < 60; i++) {
    const client = new Client(connect(sidecar.port, '127.0.0.1'))
    clients.push(client)
  }
  await wait(200)
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  assert.match(text, /^evenkeel_connections_dropped_total [1-9]/m)
  assert.match(text, /^evenkeel_peer_failures_total\{upstream="stream\/u",.*\} 0$/m)
  for (const client of clients) client.close()
})

test('clients and peers on Unix sockets', async () => {
  await using sidecar = await start(`
    stream {
      upstream u { zone u 64k; server unix:/tmp/evenkeel-PORT2.sock; }
      server { listen unix:front.sock; proxy_pass u; proxy_protocol on; }
      server { listen unix:/tmp/evenkeel-PORT2.sock proxy_protocol; return "$remote_addr $proxy_protocol_addr."; }
      server { listen unix:back.sock; proxy_pass unix:/tmp/evenkeel-PORT3.sock; }
      server { listen unix:/tmp/evenkeel-PORT3.sock; proxy_pass 127.0.0.1:PORT; }
    }`)
  const client = await dial(`${sidecar.folder}/front.sock`)
  assert.equal(await client.closed, 'fin')
  assert.equal(`${client.inbox.unread}`, 'unix: .')
  await using peer = await tcpPeer(undefined, sidecar.port)
  for (const how of ['reset', 'end'] as const) {
    const [one, at] = await Promise.all([dial(`${sidecar.folder}/back.sock`), peer.next()])
    await one.write('x')
    await at.inbox.take(1)
    at[how]()
    assert.ok(await one.closed)
  }
})
