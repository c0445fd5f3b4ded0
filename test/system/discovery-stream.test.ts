import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { dial } from '../support/client.ts'
import { hasMembers, members, neighbours, peersOf } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { redisServer } from '../support/redis.ts'
import { start } from '../support/sidecar.ts'
import { tcpPeer } from '../support/tcp-peer.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** A session of its own: what it is told first. */
async function greeting(port: number): Promise<string | undefined> {
  const client = await dial(port)
  const told = await client.inbox.some()
  client.close()
  return told?.toString()
}

for (const threads of [1, 2]) {
  test(`with ${threads} threads, sessions go to the addresses that a name has, and those to one that it has no more go on`, async () => {
    const heard: string[] = []
    await using first = await tcpPeer((session) => {
      void session.write('1')
      session.socket.on('data', (bytes) => heard.push(`${bytes}`))
    })
    await using second = await tcpPeer((session) => void session.write('2'), first.port, '127.0.0.2')
    const { port } = first
    await dns.has('tcp.example', ['127.0.0.1'])
    await using sidecar = await start(`
      worker_processes ${threads};
      drain_timeout 200ms;
      stream {
        resolver ${dns.address} ipv6=off;
        upstream u { zone u 64k; server tcp.example:${port} resolve; }
        server { listen 127.0.0.1:PORT; proxy_pass u; }
      }`)
    const stays = await dial(sidecar.port)
    assert.equal((await stays.inbox.some())?.toString(), '1')
    await dns.has('tcp.example', ['127.0.0.2'])
    await hasMembers(sidecar, '127.0.0.2 127.0.0.1', 5000, 'u', 'stream')
    for (let i = 0; i < 4; i++) assert.equal(await greeting(sidecar.port), '2')
    await sleep(400)
    await stays.write('still here')
    await until(() => heard.join('') === 'still here')
    stays.close()
    await until(async () => (await members(sidecar, 'u', 'stream')) === '127.0.0.2')
    assert.equal(second.accepted, 4)
  })
}

test('instances that share a group do so while the addresses of a name change', async () => {
  await using redis = await redisServer()
  const probed = (number: string) => (x: { reply(answer: object): Promise<void> }) =>
    x.reply({ body: number })
  await using peers = await neighbours(3, ['1', '2', '3'].map(probed))
  await dns.has('fleet.example', ['127.0.0.1', '127.0.0.2'])
  const text = `
    fleet ${redis.url} interval=50ms ttl=1s;
    http {
      access_log off;
      keepalive_requests 1000000;
      resolver ${dns.address} ipv6=off;
      upstream u { zone u 64k; least_time header; server fleet.example:${peers.port} resolve max_conns=4 max_conns_scope=fleet; }
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://u; upstream_probe p uri=/p interval=100ms essential; }
      }
    }`
  await using one = await start(text)
  await using other = await start(text)
  const load = { over: false, bad: [] as number[] }
  const asking = [one, one, other, other].map(async (sidecar) => {
    const client = await dial(sidecar.port)
    while (!load.over) {
      const { status } = await client.ask('/')
      if (status !== 200) load.bad.push(status)
    }
    client.close()
  })
  for (const set of [
    ['127.0.0.2', '127.0.0.3'],
    ['127.0.0.1', '127.0.0.2', '127.0.0.3'],
  ]) {
    await dns.has('fleet.example', set)
    for (const sidecar of [one, other]) {
      await hasMembers(sidecar, set.join(' '))
      await until(async () =>
        Object.values(await peersOf(sidecar)).every(({ state }) => state === 'up' || state === 'busy'),
      )
    }
  }
  load.over = true
  await Promise.all(asking)
  assert.deepEqual(load.bad, [])
})
