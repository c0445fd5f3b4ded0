import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { change } from '../../support/changing.ts'
import { type Client, dial } from '../../support/client.ts'
import { hasMembers } from '../../support/discovered.ts'
import { type DnsServer, dnsServer } from '../../support/dns-server.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { tcpPeer } from '../../support/tcp-peer.ts'
import { udpClient } from '../../support/udp-client.ts'
import { named, quick, streamPeers } from '../../support/udp-lab.ts'
import { udpPeer } from '../../support/udp-peer.ts'
import { until } from '../../support/until.ts'

/** Sessions with peers that a name brings, or a change. */

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** The peers' own numbers, by address. */
function numbers(
  sidecar: Sidecar,
): Promise<Record<string, { selected: { total: number }; health: { fails: number } }>> {
  return sidecar.json('/status/stream/upstreams/u/peers/')
}

test('of a name with three addresses, two of them dead, the third one is connected to', async () => {
  await using peer = await tcpPeer((session) => void session.write('1'))
  await dns.has('three.example', ['127.0.0.8', '127.0.0.9', '127.0.0.1'])
  await using sidecar = await start(`
    stream {
      resolver ${dns.address} ipv6=off;
      upstream u { zone u 64k; server three.example:${peer.port} resolve; }
      server { listen 127.0.0.1:PORT; proxy_pass u; proxy_next_upstream_tries 3; }
    }`)
  for (let i = 0; i < 6; i++) {
    const client = await dial(sidecar.port)
    assert.equal(`${await client.inbox.take(1)}`, '1')
    client.close()
  }
  const own = Object.entries(await numbers(sidecar)).map(
    ([name, { selected, health }]) => `${name.split(':')[0]} ${selected.total} ${health.fails}`,
  )
  assert.deepEqual(own, ['127.0.0.1 6 0', '127.0.0.8 1 1', '127.0.0.9 1 1'])
})

test('datagrams of new clients go to the addresses that a name has, and those of others where they went', async () => {
  await using one = await udpPeer(named('1'))
  await using two = await udpPeer(named('2'), { host: '127.0.0.2', port: one.port })
  await dns.has('udp.example', ['127.0.0.1'])
  await using sidecar = await start(`
    worker_processes 2;
    stream {
      resolver ${dns.address} ipv6=off;
      upstream u { zone u 64k; server udp.example:${one.port} resolve; }
      server { listen 127.0.0.1:PORT udp; proxy_pass u; ${quick.replace('700ms', '2s')} }
    }`)
  await using before = await udpClient(sidecar.port)
  assert.equal(await before.ask('x'), '1x')
  await dns.has('udp.example', ['127.0.0.2'])
  // What has left is shown as long as it has a session.
  await hasMembers(sidecar, '127.0.0.2 127.0.0.1', 5000, 'u', 'stream')
  await using since = await udpClient(sidecar.port)
  assert.equal(await since.ask('y'), '2y')
  assert.equal(await before.ask('z'), '1z')
  await until(async () => (await streamPeers(sidecar)).length === 1)
  assert.deepEqual([one.came, two.came], [['x', 'z'], ['y']])
})

test('of two random peers one with many sessions is left alone', async () => {
  await using busy = await tcpPeer((session) => void session.write('1'))
  await using idle = await tcpPeer((session) => void session.write('2'))
  await using sidecar = await start(`
    worker_processes 2;
    stream {
      upstream u { zone u 64k; random two least_conn; server ${busy.address}; }
      server { listen 127.0.0.1:PORT; proxy_pass u; }
    }`)
  const greeted = async (client: Client) => `${await client.inbox.take(1)}`
  const held = await Promise.all(Array.from({ length: 50 }, () => dial(sidecar.port)))
  for (const client of held) assert.equal(await greeted(client), '1')
  const { status } = await change(sidecar, 'POST', 'stream/u/peers', { server: idle.address })
  assert.equal(status, 200)
  for (let i = 0; i < 40; i++) {
    const client = await dial(sidecar.port)
    assert.equal(await greeted(client), '2')
    client.close()
  }
  for (const client of held) client.close()
})

test('what comes in small pieces is with the other side at once', async () => {
  await using peer = await tcpPeer()
  await using sidecar = await start(
    `stream { server { listen 127.0.0.1:PORT; proxy_pass ${peer.address}; } }`,
  )
  const client = await dial(sidecar.port)
  const at = await peer.next()
  let late = 0
  for (let i = 0; i < 20; i++) {
    const [from, to] = i % 2 === 0 ? [client, at] : [at, client]
    const sentAt = performance.now()
    await from.write(`data: ${i}\n\n`)
    assert.equal(`${await to.inbox.until('\n\n')}`, `data: ${i}\n\n`)
    if (performance.now() - sentAt > 50) late += 1
    await sleep(20)
  }
  // The machine has other work, too.
  assert.ok(late <= 2, `${late} of 20 pieces took more than 50 ms`)
  client.close()
})
