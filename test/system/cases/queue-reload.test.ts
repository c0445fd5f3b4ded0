// Requests that wait while the configuration changes, or while the program ends.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { Gate, queueStatus, wait } from '../../support/queued.ts'
import { start } from '../../support/sidecar.ts'
import { timed } from '../../support/undisturbed.ts'

interface Parts {
  readonly threads: number
  /** Undefined: there is no such group. */
  readonly group: string | undefined
}

function config({ threads, group }: Parts): string {
  const upstream = group === undefined ? '' : `upstream peers { zone peers 64k; ${group} }`
  const location = group === undefined ? 'return 204;' : 'proxy_pass http://peers;'
  return `worker_processes ${threads};
http {
  log_format queued '$request_uri $status $upstream_reason'; access_log queue.log queued;
  ${upstream}
  server { listen 127.0.0.1:PORT; location / { ${location} } }
}`
}

for (const threads of [1, 2]) {
  const plural = threads === 1 ? 'one thread' : `${threads} threads`

  test(
    `a peer that a reload adds is had by those that wait, and a limit that it raises too, in ${plural}`,
    timed(async () => {
      const gate = new Gate()
      await using a = await backend(gate.script)
      await using b = await backend({ body: 'b' })
      const old = `server ${a.address} max_conns=1;`
      await using sidecar = await start(config({ threads, group: `${old} queue 20;` }))
      const first = ask(sidecar.port, '/first')
      await eventually('the peer is full', () => a.busy === 1)
      const replies = Array.from({ length: 6 }, (_, i) => ask(sidecar.port, `/${i}`))
      await wait(sidecar, 6)
      await sidecar.reload(
        config({ threads, group: `${old} server ${b.address} max_conns=2; queue 20; keepalive 4;` }),
      )
      await eventually('nobody waits', async () => (await queueStatus(sidecar)).waiting === 0, 400)
      for (const { text } of await Promise.all(replies)) assert.equal(text, 'b')

      b.script = gate.script
      const more = Array.from({ length: 6 }, (_, i) => ask(sidecar.port, `/more-${i}`))
      await wait(sidecar, 4)
      await sidecar.reload(
        config({ threads, group: `${old} server ${b.address} max_conns=6; queue 20; keepalive 4;` }),
      )
      await eventually('all are with it', () => b.busy === 6, 400)
      gate.open()
      await Promise.all(more)
      await first
    }),
  )

  test(`a group that is no more has nobody wait for it, in ${plural}`, async () => {
    const gate = new Gate()
    await using a = await backend(gate.script)
    await using sidecar = await start(
      config({ threads, group: `server ${a.address} max_conns=1; queue 20;` }),
    )
    const first = ask(sidecar.port, '/first')
    await eventually('the peer is full', () => a.busy === 1)
    const clients = await Promise.all(Array.from({ length: 5 }, () => dial(sidecar.port)))
    const replies = clients.map((client, i) => client.ask(`/${i}`))
    await wait(sidecar, 5)
    await sidecar.reload(config({ threads, group: undefined }))
    for (const { status } of await Promise.all(replies)) assert.equal(status, 502)
    assert.equal((await clients[0]!.ask('/next')).status, 204)
    gate.open()
    assert.equal((await first).status, 200)
    assert.equal(a.requests.length, 1)
    for (const client of clients) client.close()
  })

  test(`those that wait when a reload takes the queue away, or makes it shorter, go on waiting, in ${plural}`, async () => {
    const gate = new Gate()
    await using a = await backend(gate.script)
    const server = `server ${a.address} max_conns=1;`
    await using sidecar = await start(config({ threads, group: `${server} queue 20;` }))
    const replies = [ask(sidecar.port, '/first')]
    await eventually('the peer is full', () => a.busy === 1)
    for (const i of [0, 1, 2]) {
      replies.push(ask(sidecar.port, `/${i}`))
      await wait(sidecar, i + 1)
    }
    await sidecar.reload(config({ threads, group: `${server} queue 1;` }))
    assert.equal((await queueStatus(sidecar)).waiting, 3)
    await sidecar.reload(config({ threads, group: server }))
    assert.equal((await ask(sidecar.port, '/refused')).status, 502)
    await sidecar.reload(config({ threads, group: `${server} queue 20;` }))
    assert.equal((await queueStatus(sidecar)).waiting, 3)
    gate.open()
    for (const { status } of await Promise.all(replies)) assert.equal(status, 200)
    assert.equal(a.requests.length, 4)
    assert.equal((await queueStatus(sidecar)).waiting, 0)
  })

  test(`a drain serves those that wait before it ends, in ${plural}`, async () => {
    const gate = new Gate()
    await using a = await backend(gate.script)
    await using sidecar = await start(
      config({ threads, group: `server ${a.address} max_conns=1; queue 20;` }),
    )
    const first = ask(sidecar.port, '/first')
    await eventually('the peer is full', () => a.busy === 1)
    const replies = [first, ...Array.from({ length: 4 }, (_, i) => ask(sidecar.port, `/${i}`))]
    await wait(sidecar, 4)
    sidecar.signal('SIGTERM')
    await sidecar.logged(/draining/)
    await sleep(300)
    gate.open()
    for (const reply of await Promise.all(replies)) {
      assert.equal(reply.status, 200)
      assert.equal(reply.header('connection'), 'close')
    }
    assert.equal((await sidecar.exited).code, 0)
    assert.match(sidecar.stderr, /drained, exiting/)
  })
}

test('those that still wait when a drain has no more time are cut off, and are counted as gone', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  const text = config({ threads: 2, group: `server ${a.address} max_conns=1; queue 20;` })
  await using sidecar = await start(`drain_timeout 500ms; ${text}`)
  const clients = await Promise.all(Array.from({ length: 4 }, () => dial(sidecar.port)))
  const replies = clients.map((client, i) => client.ask(`/${i}`).then(({ status }) => status, String))
  await wait(sidecar, 3)
  sidecar.signal('SIGTERM')
  const ends = await Promise.all(replies)
  for (const end of ends) assert.match(String(end), /without a response/)
  assert.equal((await sidecar.exited).code, 0)
  assert.equal(a.requests.length, 1)
  for (const client of clients) client.close()
})
