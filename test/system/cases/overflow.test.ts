import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, type Script } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually, type Lab, lab, spread } from '../../support/invariants.ts'

/** How often requests of the group got no attempt, by reason. */
function denials(front: Lab): Promise<Record<string, number>> {
  return front.sidecar.json('/status/http/upstreams/peers/evenkeel/denials')
}

test('requests that find all peers full are refused at once, blame nobody, and end with the flood', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const script: Script = async (x) => {
    if (x.target === '/hold') await gate
    await x.reply({ body: 'ok' })
  }
  await using a = await backend(script)
  await using b = await backend(script)
  await using front = await lab(
    `upstream peers { zone peers 64k;
       server ${a.address} max_conns=3 max_fails=1 fail_timeout=30s;
       server ${b.address} max_conns=2 max_fails=1 fail_timeout=30s; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [a, b],
  )
  const held = Promise.all(Array.from({ length: 5 }, () => ask(front.port, '/hold')))
  // When something else fails first, that is what is to be told.
  held.catch(() => {})
  await eventually('both are full', () => a.busy === 3 && b.busy === 2)

  const took: number[] = []
  const statuses: number[] = []
  {
    using client = await dial(front.port)
    for (const end = performance.now() + 1000; performance.now() < end; await sleep(2)) {
      const from = performance.now()
      statuses.push((await client.ask('/')).status)
      took.push(performance.now() - from)
    }
  }
  assert.equal(spread(statuses.map(String)), `502: ${statuses.length}`)
  assert.ok(statuses.length >= 50, `${statuses.length} requests`)
  took.sort((one, other) => one - other)
  // The test machine may hold up a few of them.
  assert.ok(took[took.length >> 1]! < 10, `half of them took more than ${took[took.length >> 1]} ms`)
  assert.deepEqual(await denials(front), { overflow: statuses.length })
  const during = Object.values(await front.peers('peers'))
  assert.deepEqual(
    during.map(({ state, health, selected }) => [state, health.fails, health.unavailable, selected.current]),
    [
      ['busy', 0, 0, 3],
      ['busy', 0, 0, 2],
    ],
  )

  open()
  // The very next request after a place is free gets it.
  assert.equal(spread((await held).map((reply) => reply.text)), 'ok: 5')
  assert.equal((await ask(front.port)).status, 200)
  const after = Object.entries(await front.peers('peers'))
  for (const [, { state, health }] of after) {
    assert.deepEqual([state, health.fails, health.unavailable], ['up', 0, 0])
  }
  assert.equal(a.requests.length + b.requests.length, 6)
  assert.equal(a.peak, 3)
  assert.equal(b.peak, 2)
  assert.deepEqual(await denials(front), { overflow: statuses.length })
  const refused = (await front.records()).filter((record) => record.status === 502)
  assert.equal(refused.length, statuses.length)
  for (const { addresses, reasons } of refused)
    assert.deepEqual([addresses, reasons], [['peers'], ['overflow']])
  await front.settle(statuses.length + 6)
})

test('a peer that is full is passed over and not failed, while another has room', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  await using small = await backend(async (x) => {
    if (x.target === '/hold') await gate
    await x.reply({ body: 'small' })
  })
  await using large = await backend({ body: 'large' })
  await using front = await lab(
    `upstream peers { zone peers 64k; least_conn;
       server ${small.address} max_conns=1 max_fails=1 fail_timeout=30s; server ${large.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [small, large],
  )
  const held = ask(front.port, '/hold')
  held.catch(() => {})
  await eventually('the small one is full', () => small.busy === 1)
  const replies = await Promise.all(Array.from({ length: 40 }, () => ask(front.port)))
  assert.equal(spread(replies.map((reply) => reply.text)), 'large: 40')
  assert.deepEqual(await denials(front), {})
  open()
  assert.equal((await held).text, 'small')
  const next = await Promise.all([ask(front.port), ask(front.port)])
  assert.equal(spread(next.map((reply) => reply.text)), 'large: 1, small: 1')
  const { state, health } = (await front.peers('peers'))[small.address]!
  assert.deepEqual([state, health.fails, health.unavailable], ['up', 0, 0])
  await front.settle(43)
})
