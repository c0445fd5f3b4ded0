import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../support/backend.ts'
import { dial } from '../support/client.ts'
import { mortal, replaced } from '../support/dying-threads.ts'
import { eventually, type PeerStatus } from '../support/invariants.ts'
import { start } from '../support/sidecar.ts'

interface Parts {
  readonly top?: string
  readonly groups: string
  readonly server?: string
}

function config({ top = '', groups, server = '' }: Parts): string {
  return `worker_processes 4; ${top}
http {
  access_log off;
  ${groups}
  server { listen 127.0.0.1:PORT; ${server} location / { proxy_pass http://u; } }
}`
}

test('what threads held of a group that a reload has removed is given back when they die', async () => {
  await using a = await backend(({ gone }) => gone.then(() => {}))
  await using b = await backend({ body: 'b' })
  const groups = `upstream u { server ${b.address}; }`
  const old = `upstream old { keepalive 0; server ${a.address}; }`
  const location = 'location /old { proxy_pass http://old; }'
  await using sidecar = await start(config({ groups: groups + old, server: location }), mortal)
  const clients = await Promise.all(Array.from({ length: 12 }, () => dial(sidecar.port)))
  const replies = clients.map((client) => client.ask('/old').catch(() => undefined))
  await eventually('all are under way', () => a.requests.length === clients.length)
  await sidecar.reload(config({ groups }))
  const removed = async () =>
    Object.keys(await sidecar.json<Record<string, PeerStatus>>('/status/http/upstreams/'))
  assert.deepEqual(await removed(), ['u', 'old'])
  for (let count = 1; count <= 4; count++) {
    sidecar.signal('SIGUSR2')
    await replaced(sidecar, count)
  }
  await Promise.all(replies)
  assert.deepEqual(await removed(), ['u'])
})

test('a thread that dies when the listeners have closed is not replaced, and nobody is let in', async () => {
  await using a = await backend({ after: 2500, body: 'a' })
  await using sidecar = await start(config({ groups: `upstream u { server ${a.address}; }` }), mortal)
  const clients = await Promise.all(Array.from({ length: 16 }, () => dial(sidecar.port)))
  const replies = clients.map((client) => client.ask('/').then(({ status }) => status, String))
  await eventually('all are under way', () => a.requests.length === clients.length)
  sidecar.signal('SIGTERM')
  await sidecar.logged(/draining/)
  await sleep(250)
  sidecar.signal('SIGUSR2')
  await sidecar.logged(/thread 0 died/)
  const end = performance.now() + 800
  while (performance.now() < end) {
    await assert.rejects(dial(sidecar.port))
    await sleep(20)
  }
  const statuses = await Promise.all(replies)
  assert.ok(statuses.every((status) => status === 200 || /connection ended/.test(String(status))))
  assert.ok(statuses.includes(200))
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  assert.doesNotMatch(sidecar.stderr, /replaced/)
})

test('a thread that dies before the listeners close is replaced by one that drains too', async () => {
  await using a = await backend({ body: 'a' })
  const text = config({
    top: 'drain_delay 60s; drain_timeout 60s;',
    groups: `upstream u { server ${a.address}; }`,
  })
  await using sidecar = await start(text, mortal)
  sidecar.signal('SIGTERM')
  await sidecar.logged(/draining/)
  for (let count = 1; count <= 4; count++) {
    sidecar.signal('SIGUSR2')
    await replaced(sidecar, count)
  }
  for (let i = 0; i < 20; i++) {
    using client = await dial(sidecar.port)
    const reply = await client.ask('/')
    assert.deepEqual([reply.status, reply.header('connection')], [200, 'close'])
  }
  sidecar.signal('SIGTERM')
  assert.deepEqual(await sidecar.exited, { code: 1, signal: null })
})

test('a reload waits for a thread that has only just begun', async () => {
  await using a = await backend({ body: 'a' })
  await using b = await backend({ body: 'b' })
  const texts = [a, b].map(({ address }) => config({ groups: `upstream u { server ${address}; }` }))
  await using sidecar = await start(texts[0]!, mortal)
  for (let count = 1; count <= 4; count++) {
    sidecar.signal('SIGUSR2')
    // It may be about to die, dead, or just begun.
    await sleep(40 * (count - 1))
    await sidecar.reload(texts[count % 2])
    const answers = await Promise.all(
      Array.from({ length: 24 }, async () => {
        using client = await dial(sidecar.port)
        return (await client.ask('/')).text
      }),
    )
    assert.deepEqual([...new Set(answers)], [count % 2 === 0 ? 'a' : 'b'])
    await replaced(sidecar, count)
  }
  await eventually('each is told of', () => sidecar.stderr.match(/thread \d was replaced/g)?.length === 4)
})

test('the program goes on when all its threads die at once, with nobody else to keep it alive', async () => {
  await using a = await backend({ body: 'a' })
  const text = config({ top: '\nadmin off;', groups: `upstream u { server ${a.address}; }` })
  await using sidecar = await start(text, mortal)
  for (let i = 0; i < 4; i++) {
    sidecar.signal('SIGUSR2')
    await sleep(15)
  }
  await eventually('all are replaced', () => sidecar.stderr.match(/was replaced/g)?.length === 4)
  using client = await dial(sidecar.port)
  assert.equal((await client.ask('/')).text, 'a')
})

test('a Unix socket that cannot be listened on is refused, though one thread alone would do so', async () => {
  await using a = await backend({ body: 'a' })
  const groups = `upstream u { server ${a.address}; }`
  await using sidecar = await start(config({ groups }))
  const path = `${sidecar.folder}/nowhere/x.sock`
  await sidecar.rewrite(config({ groups, server: `listen unix:${path};` }))
  sidecar.signal('SIGHUP')
  await sidecar.logged(/\[emerg\] .*bind\(\) to unix:\S+ failed/)
  await sidecar.logged(/generation 1 goes on/)
  const good = `${sidecar.folder}/x.sock`
  await sidecar.reload(config({ groups, server: `listen unix:${good};` }))
  using client = await dial(good)
  assert.equal((await client.ask('/')).text, 'a')
})
