// Sessions that one instance has learnt, at the others.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backends, type Exchange } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { instances } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { redisServer } from '../../support/redis.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

const interval = 200

const named = (letter: string) => (exchange: Exchange) =>
  exchange.target.includes('fail') && sick === letter
    ? exchange.reply({ status: 503 })
    : exchange.reply({ body: letter })
/** Fails requests that ask for it. */
let sick = ''

async function get({ port }: Sidecar, target: string): Promise<string> {
  const reply = await ask(port, target)
  return `${reply.status === 200 ? reply.text : reply.status} ${reply.header('x-sticky')}`
}

test('a session goes to its peer at whatever instance it arrives, over threads, restarts and moves', async () => {
  await using redis = await redisServer()
  await using peers = await backends([named('a'), named('b'), named('c')])
  const servers = peers.list.map(({ address }) => `server ${address} max_fails=0;`).join(' ')
  const learn = (zone: string) => `sticky learn zone=${zone}:64k create=$arg_new lookup=$arg_id;`
  const text = `fleet ${redis.url} interval=${interval}ms ttl=2s;
worker_processes 2;
http {
  access_log off;
  add_header X-Sticky $upstream_sticky_status always;
  upstream u { zone u 64k; ${learn('ids')} ${servers} }
  upstream own { zone own 64k; fleet off; ${learn('other')} ${servers} }
  proxy_next_upstream error timeout http_503;
  proxy_next_upstream_budget off;
  server { listen 127.0.0.1:PORT;
    location / { proxy_pass http://u; }
    location /own { proxy_pass http://own; } }
}`
  await using fleet = await instances(2, text)
  const [one, other] = [fleet.at(0), fleet.at(1)]
  const at = new Map<string, string>()
  for (let i = 0; i < 12; i++) at.set(`id${i}`, (await get(one, `/?new=id${i}`))[0]!)
  assert.equal(new Set(at.values()).size, 3)
  for (const [id, peer] of at) {
    await eventually(`${id} is heard`, async () => (await get(other, `/?id=${id}`)) === `${peer} HIT`)
  }

  // One that its peer fails is bound to another by the one, and found there by the other.
  sick = at.get('id0')!
  const [moved] = await get(other, '/?id=id0&fail')
  assert.ok(moved !== sick && 'abc'.includes(moved!))
  await eventually(
    'the other instance has heard',
    async () => (await get(one, '/?id=id0')) === `${moved} HIT`,
  )
  at.set('id0', moved!)

  // Who comes later knows them all.
  await using late = await start(text)
  await eventually('it has heard', async () => (await get(late, '/?id=id11')) === `${at.get('id11')} HIT`)
  for (const [id, peer] of at) {
    await eventually(`${id} is heard`, async () => (await get(late, `/?id=${id}`)) === `${peer} HIT`)
  }

  // A group that is out of it keeps to itself.
  await get(one, '/own?new=x')
  // A thread learns a session a moment after its answer has gone.
  await eventually('it is known', async () => / HIT$/.test(await get(one, '/own?id=x')))
  await sleep(2.5 * interval)
  assert.match(await get(other, '/own?id=x'), / NEW$/)

  // Without Redis each goes by what it knows.
  redis.pause()
  const [peer] = await get(one, '/?new=during')
  await eventually('it is known here', async () => (await get(one, '/?id=during')) === `${peer} HIT`)
  assert.equal(await get(other, '/?id=id3'), `${at.get('id3')} HIT`)
  redis.resume()
  await eventually('it is told', async () => (await get(other, '/?id=during')) === `${peer} HIT`)
})
