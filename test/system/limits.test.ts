import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../support/backend.ts'
import { type Client, dial } from '../support/client.ts'
import { eventually } from '../support/invariants.ts'
import { start } from '../support/sidecar.ts'

test('a flood of connections is closed as it comes, said once, and those before it are served', async () => {
  await using a = await backend({ body: 'x' })
  await using sidecar = await start(
    `http {
      access_log off;
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://${a.address}; } }
    }`,
    { descriptors: 140 },
  )
  // (140 - 64) / 2, see limits.ts.
  const limit = 38
  const clients: Client[] = []
  for (let i = 0; i < limit; i++) clients.push(await dial(sidecar.port))
  for (const client of clients) assert.equal((await client.ask('/')).status, 200)
  for (let i = 0; i < 5; i++) {
    const late = await dial(sidecar.port)
    await late.closed
  }
  for (const client of clients) assert.equal((await client.ask('/')).status, 200)
  const counts = await sidecar.json<{ dropped: number }>('/status/connections/')
  assert.equal(counts.dropped, 5)
  assert.equal(
    sidecar.stderr.match(/\[crit\] .*38 connections are open, new ones are closed at once/g)?.length,
    1,
  )
  clients.pop()?.close()
  // Until the program has seen that, a new one is closed too.
  let next: Client | undefined
  await eventually('there is room for one', async () => {
    const client = await dial(sidecar.port)
    const reply = await client.ask('/').catch(() => undefined)
    if (reply?.status === 200) next = client
    else client.close()
    return next !== undefined
  })
  for (const client of [...clients, next!]) client.close()
})

test('what threads need for themselves is kept free of connections', async () => {
  await using a = await backend({ after: 300, body: 'x' })
  await using sidecar = await start(
    `worker_processes 8;
    http {
      access_log off;
      server { listen 127.0.0.1:PORT; listen 127.0.0.1:PORT2; location / { proxy_pass http://${a.address}; } }
    }`,
    { descriptors: 240 },
  )
  const clients = await Promise.all(Array.from({ length: 100 }, () => dial(sidecar.port)))
  const replies = await Promise.all(clients.map((client) => client.ask('/').catch(() => undefined)))
  const served = replies.filter((reply) => reply !== undefined)
  assert.ok(served.length >= 30 && served.length < 60, `${served.length} served`)
  assert.ok(served.every(({ status }) => status === 200))
  for (const client of clients) client.close()
})
