// Requests that stay with the list of peers in which somebody was found last.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, backends } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

const port = (peer: Backend) => Number(peer.address.split(':')[1])

function config(primary: Backend, backup: Backend, line: string, threads: number): string {
  return `worker_processes ${threads};
error_log stderr notice;
http {
  access_log off;
  add_header X-Pick $upstream_pick always;
  proxy_next_upstream_budget off;
  upstream u { zone u 64k; server ${primary.address} max_fails=0; server ${backup.address} backup; ${line} }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
}`
}

async function answers(sidecar: Sidecar, count: number): Promise<string> {
  let said = ''
  for (let i = 0; i < count; i++) said += (await ask(sidecar.port, '/')).text
  return said
}

const switches = ({ stderr }: Sidecar) =>
  Array.from(
    stderr.matchAll(/\[(warn|notice)\] [\d#]+: upstream "u" switched to its (\w+)/g),
    ([, level, list]) => `${level} ${list}`,
  )

test('backup_switch permanent keeps to the backups over threads and reloads, until it is taken away', async () => {
  await using peers = await backends([{ body: 'p' }, { body: 'b' }])
  const [primary, backup] = peers.list as [Backend, Backend]
  await using sidecar = await start(config(primary, backup, 'backup_switch permanent;', 2))
  assert.equal(await answers(sidecar, 4), 'pppp')
  await primary.stop()
  assert.equal(await answers(sidecar, 6), 'bbbbbb')
  await using back = await backend({ body: 'p' }, { port: port(primary) })
  await sleep(100)
  // From connections of their own, so that every thread has some.
  assert.equal(await answers(sidecar, 12), 'b'.repeat(12))
  assert.deepEqual(switches(sidecar), ['warn backups'])
  await sidecar.reload()
  assert.equal(await answers(sidecar, 6), 'bbbbbb')
  await sidecar.reload(config(back, backup, '', 2))
  assert.equal(await answers(sidecar, 6), 'pppppp')
})

test('after the time one request tries the primaries, and brings the others back where it has an answer', async () => {
  await using peers = await backends([{ body: 'p' }, { body: 'b' }])
  const [primary, backup] = peers.list as [Backend, Backend]
  await using sidecar = await start(config(primary, backup, 'backup_switch permanent=400ms;', 2))
  await primary.stop()
  assert.equal(await answers(sidecar, 4), 'bbbb')
  await sleep(450)
  // It finds nobody who answers, and the time begins anew.
  assert.equal(await answers(sidecar, 4), 'bbbb')
  await using _back = await backend({ body: 'p' }, { port: port(primary) })
  assert.equal(await answers(sidecar, 2), 'bb')
  await eventually('the primary is used again', async () => (await answers(sidecar, 1)) === 'p')
  assert.equal(await answers(sidecar, 6), 'pppppp')
  assert.deepEqual(switches(sidecar), ['warn backups', 'notice primaries'])
})

test('without the directive a primary that is back is used at once', async () => {
  await using peers = await backends([{ body: 'p' }, { body: 'b' }])
  const [primary, backup] = peers.list as [Backend, Backend]
  await using sidecar = await start(config(primary, backup, '', 1))
  await primary.stop()
  assert.equal(await answers(sidecar, 3), 'bbb')
  await using _back = await backend({ body: 'p' }, { port: port(primary) })
  await sleep(100)
  assert.equal(await answers(sidecar, 3), 'ppp')
  assert.deepEqual(switches(sidecar), [])
})
