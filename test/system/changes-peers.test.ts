import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { backend } from '../support/backend.ts'
import { change } from '../support/changing.ts'
import { dial } from '../support/client.ts'
import { answer, followed, hasMembers, neighbours } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { eventually } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { echoPeer } from '../support/tcp-peer.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** What one request is answered, over a connection of its own. */
async function asked(sidecar: Sidecar, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const client = await dial(sidecar.port)
  const reply = await client.ask('/', { headers })
  client.close()
  return `${reply.status} ${reply.text}`
}

test('a draining peer keeps the sessions that are bound to it, and a peer that is down does not', async () => {
  await using a = await backend({ body: 'a' })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(`
    worker_processes 2;
    http {
      access_log off;
      upstream u { zone u 64k; sticky cookie s; server ${a.address} sid=a; server ${b.address} sid=b; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
    }`)
  const bound = { cookie: 's=a' }
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'drain' })
  for (let i = 0; i < 4; i += 1) {
    assert.equal(await asked(sidecar, bound), '200 a')
    assert.equal(await asked(sidecar), '200 b')
  }
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'down' })
  assert.equal(await asked(sidecar, bound), '200 b')
})

test('a request that waits in the queue is served as soon as a peer is brought up, or one is added', async () => {
  await using a = await backend({ body: 'a' })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(`
    worker_processes 2;
    http {
      access_log off;
      upstream u { zone u 64k; queue 10 timeout=20s; server ${a.address} down; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
    }`)
  const waiting = async () => (await sidecar.json<number>('/status/http/upstreams/u/queue/waiting')) === 1
  const first = asked(sidecar)
  await eventually('it waits', waiting)
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: 'up' })
  assert.equal(await first, '200 a')
  await change(sidecar, 'PATCH', `u/peers/${a.address}`, { state: null })
  const second = asked(sidecar)
  await eventually('it waits', waiting)
  await change(sidecar, 'POST', 'u/peers', { server: b.address })
  assert.equal(await second, '200 b')
})

test('an added peer gets nothing until its essential probe has passed', async () => {
  let health = 503
  await using a = await backend({ body: 'a' })
  await using b = await backend(async (x) =>
    x.reply(x.target === '/health' ? { status: health } : { body: 'b' }),
  )
  await using sidecar = await start(`
    worker_processes 2;
    http {
      access_log off;
      upstream u { zone u 64k; server ${a.address} backup; server ${a.address.replace('127.0.0.1', '127.0.0.3')} down; }
      server {
        listen 127.0.0.1:PORT;
        location / {
          proxy_pass http://u; proxy_next_upstream http_503;
          upstream_probe p uri=/health interval=100ms essential;
        }
      }
    }`)
  await eventually('the backup has passed', async () => (await asked(sidecar)) === '200 a')
  const added = await change(sidecar, 'POST', 'u/peers', { server: b.address })
  assert.match(added.peers![0]!.state, /^(checking|unhealthy)$/)
  for (let i = 0; i < 4; i += 1) assert.equal(await asked(sidecar), '200 a')
  health = 200
  await eventually('it has passed', async () => (await asked(sidecar)) === '200 b')
  assert.ok(b.requests.some(({ target }) => target === '/health'))
})

test('sessions of stream stay where they are, whatever becomes of their peer', async () => {
  await using a = await echoPeer()
  await using b = await echoPeer()
  await using sidecar = await start(`
    worker_processes 2;
    stream {
      upstream u { zone u 64k; server ${a.address}; server ${b.address} backup; }
      server { listen 127.0.0.1:PORT; proxy_pass u; }
    }`)
  const old = await dial(sidecar.port)
  await old.write('one')
  assert.equal((await old.inbox.take(3))?.toString(), 'one')
  assert.equal(a.accepted, 1)
  const peer = `stream/u/peers/${a.address}`
  assert.equal((await change(sidecar, 'PATCH', peer, { state: 'drain' })).status, 200)
  const young = await dial(sidecar.port)
  await young.write('two')
  assert.equal((await young.inbox.take(3))?.toString(), 'two')
  assert.equal(b.accepted, 1)
  await change(sidecar, 'PATCH', peer, { state: null })
  const added = await change(sidecar, 'POST', 'stream%2Fu/peers', {
    server: b.address.replace('127.0.0.1', '127.0.0.2'),
  })
  assert.equal(added.status, 200)
  assert.equal((await change(sidecar, 'DELETE', peer)).peers![0]!.state, 'draining')
  await old.write('three')
  assert.equal((await old.inbox.take(5))?.toString(), 'three')
  old.close()
  young.close()
})

test('the text of a line that is followed means the addresses that it will have, too', async () => {
  await using peers = await neighbours(3)
  await dns.has('changed.example', ['127.0.0.1'], 1)
  const line = `changed.example:${peers.port}`
  await using sidecar = await start(
    followed(dns, `${line} resolve; server ${peers.at(3).address}`, { main: 'worker_processes 2;' }),
  )
  assert.equal((await change(sidecar, 'PATCH', `u/peers/${line}`, { state: 'drain' })).status, 200)
  for (let i = 0; i < 4; i += 1) assert.equal(await answer(sidecar), '3')
  await dns.has('changed.example', ['127.0.0.2'], 1)
  await hasMembers(sidecar, '127.0.0.2 127.0.0.3')
  for (let i = 0; i < 4; i += 1) assert.equal(await answer(sidecar), '3')
  await change(sidecar, 'PATCH', `u/peers/127.0.0.2:${peers.port}`, { state: 'up' })
  const answers = new Set([await answer(sidecar), await answer(sidecar), await answer(sidecar)])
  assert.deepEqual(answers, new Set(['2', '3']))
})

test('the text of a line of services means all its targets, and their weights may be changed', async () => {
  await using peers = await neighbours(3)
  const { port } = peers
  const name = '_http._tcp.services.example'
  const answers = ['a', 'b'].map((target) => {
    const data = { priority: 10, weight: 1, port, target: `${target}.services.example` }
    return { type: 'SRV' as const, name, ttl: 60, data }
  })
  await dns.set({ [`SRV ${name}`]: { answers } })
  await dns.has('a.services.example', ['127.0.0.1'], 60)
  await dns.has('b.services.example', ['127.0.0.2'], 60)
  const server = `services.example service=http resolve; server ${peers.at(3).address} backup`
  await using sidecar = await start(followed(dns, server))
  const spread = async (count: number) => {
    const given: string[] = []
    for (let i = 0; i < count; i += 1) given.push(await answer(sidecar))
    return given.sort().join('')
  }
  assert.equal(await spread(6), '111222')
  await change(sidecar, 'PATCH', `u/peers/127.0.0.1:${port}`, { weight: 5 })
  assert.equal(await spread(6), '111112')
  const drained = await change(sidecar, 'PATCH', 'u/peers/services.example', { state: 'drain' })
  assert.deepEqual(
    drained.peers!.map(({ state }) => state),
    ['draining', 'draining'],
  )
  assert.equal(await spread(3), '333')
  await change(sidecar, 'DELETE', 'u/changes')
  assert.equal(await spread(6), '111222')
})
