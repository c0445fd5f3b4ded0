// How long what a `proxy_pass` has looked up is kept, and what becomes of those who wait for it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { backend, type Exchange } from '../support/backend.ts'
import { ask, Client, dial } from '../support/client.ts'
import { anywhere, hasMembers, neighbours } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

test('each thread looks names up for itself', async () => {
  await using peers = await neighbours(1)
  await dns.has('threads.example', ['127.0.0.1'], 60)
  await using sidecar = await start(anywhere(dns, undefined, '', 'worker_processes 2;'))
  const all = Array.from({ length: 20 }, () => ask(sidecar.port, `/?to=threads.example:${peers.port}`))
  for (const { status } of await Promise.all(all)) assert.equal(status, 200)
  await until(() => dns.asked('threads.example') > 0)
  assert.ok(dns.asked('threads.example') <= 2)
})

for (const threads of [1, 2]) {
  test(`with ${threads} threads, a reload forgets what was found, and requests that are under way end as they would have`, async () => {
    const held = Promise.withResolvers<void>()
    await using peers = await neighbours(1, [
      async (x: Exchange) => {
        if (x.target.startsWith('/held')) await held.promise
        await x.reply({ body: 'one' })
      },
    ])
    await dns.has('reload.example', ['127.0.0.1'], 3600)
    await using sidecar = await start(anywhere(dns, undefined, '', `worker_processes ${threads};`))
    const where = `to=reload.example:${peers.port}`
    assert.equal((await ask(sidecar.port, `/?${where}`)).text, 'one')
    const under = ask(sidecar.port, `/held?${where}`)
    await until(() => peers.at(1).busy === 1)
    await sidecar.reload()
    await until(() => peers.at(1).open === 1)
    await dns.has('reload.example', ['127.0.0.9'], 3600)
    assert.equal((await ask(sidecar.port, `/?${where}`)).status, 502)
    held.resolve()
    assert.equal((await under).text, 'one')
    await until(() => peers.at(1).open === 0)
  })
}

test('what was found stays while peers of a group come and go', async () => {
  await using peers = await neighbours(1)
  await dns.has('stays.example', ['127.0.0.1'], 3600)
  await dns.has('group.example', ['127.0.0.1'], 1)
  await using sidecar = await start(
    anywhere(dns).replace('server 127.0.0.1:1;', 'server group.example:1 resolve;'),
  )
  assert.equal((await ask(sidecar.port, `/?to=stays.example:${peers.port}`)).text, '1')
  await dns.has('group.example', ['127.0.0.2'], 60)
  await hasMembers(sidecar, '127.0.0.2', 10_000, 'named')
  assert.equal((await ask(sidecar.port, `/?to=stays.example:${peers.port}`)).text, '1')
  assert.deepEqual([peers.at(1).connections, dns.asked('stays.example')], [1, 1])
})

test('only so many connections are kept to all that was found', async () => {
  const go = Promise.withResolvers<void>()
  await using peer = await backend(async (x) => {
    await go.promise
    await x.reply({ body: 'one' })
  })
  const names = Array.from({ length: 10 }, (_, i) => `kept${i}.example`)
  for (const name of names) await dns.has(name, ['127.0.0.1'], 3600)
  await using sidecar = await start(anywhere(dns, undefined, 'access_log off;'))
  const all = names.flatMap((name) =>
    Array.from({ length: 30 }, () => ask(sidecar.port, `/?to=${name}:${peer.port}`)),
  )
  await until(() => peer.busy === all.length)
  go.resolve()
  assert.ok((await Promise.all(all)).every(({ status }) => status === 200))
  await until(() => peer.open === 256)
})

for (const threads of [1, 2]) {
  test(`with ${threads} threads, a name server may itself be a name, which is looked up at the start`, async () => {
    await using peers = await neighbours(1)
    await dns.has('served.example', ['127.0.0.1'], 60)
    await using sidecar = await start(
      anywhere(dns, `resolver localhost:${dns.port} ipv6=off;`, '', `worker_processes ${threads};`),
    )
    assert.equal((await ask(sidecar.port, `/?to=served.example:${peers.port}`)).text, '1')
  })
}

test('a client that leaves is served all the same where the location says so', async () => {
  await using peers = await neighbours(1)
  const answers = [{ type: 'A', name: 'patient.example', ttl: 60, data: '127.0.0.1' } as const]
  await dns.set({ 'A patient.example': { answers, after: 300 } })
  await using sidecar = await start(anywhere(dns, undefined, 'proxy_ignore_client_abort on;'))
  const client = await dial(sidecar.port)
  await client.write(Client.bytes(`/left?to=patient.example:${peers.port}`))
  await until(() => dns.asked('patient.example') > 0)
  client.close()
  await until(() => peers.at(1).requests.length === 1)
})

test('a client that leaves while its name is looked up is a 499, and nothing is left of it', async () => {
  await dns.instead('slow.example', { how: 'drop' })
  await using sidecar = await start(`
    http {
      resolver ${dns.address} ipv6=off;
      server { listen 127.0.0.1:PORT; status_zone s; location / { proxy_pass http://$arg_to; } }
    }`)
  const client = await dial(sidecar.port)
  await client.write(Client.bytes('/gone?to=slow.example'))
  await until(() => dns.asked('slow.example') > 0)
  client.close()
  const [, line = ''] = await sidecar.logged(/^(\{.*"path":"\/gone\?.*\})$/m)
  // The program writes a line of JSON.
  const record = JSON.parse(line) as { status: number; upstream: unknown; attempts: unknown[] }
  assert.deepEqual([record.status, record.upstream, record.attempts], [499, null, []])
  const zone = await sidecar.json<{ requests: { processing: number } }>('/status/http/server_zones/s')
  assert.equal(zone.requests.processing, 0)
})
