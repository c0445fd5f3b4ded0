// Many requests that wait at once: a peer that comes back is not overrun, and nobody is left behind.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, type Script } from '../../support/backend.ts'
import { Checked } from '../../support/checked.ts'
import { ask, dial } from '../../support/client.ts'
import { mortal } from '../../support/dying-threads.ts'
import { eventually, lab, spread } from '../../support/invariants.ts'
import { queueStatus, wait } from '../../support/queued.ts'
import { start } from '../../support/sidecar.ts'
import { timed } from '../../support/undisturbed.ts'

/** How many wait, and how many of them the peer may have at once. */
const [herd, most] = process.env['TEST_LONG'] === '1' ? [1000, 100] : [300, 30]

const refusing: Script = (x) => x.reset()

for (const threads of [1, 2]) {
  test(`a herd that waits for a dead peer does not overrun it when it is back, with ${threads} threads`, async () => {
    let alive = false
    let busy = 0
    let peak = 0
    await using a = await backend(async (x) => {
      if (x.target === '/health') return x.reply({ status: alive ? 200 : 503 })
      busy += 1
      peak = Math.max(peak, busy)
      await sleep(5 + 5 * Math.random())
      busy -= 1
      await x.reply({ body: 'ok' })
    })
    await using front = await lab(
      `map $upstream_status $good { 200 1; }
       upstream peers { zone peers 64k; server ${a.address} max_conns=${most}; queue ${herd}; }
       server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers;
         upstream_probe check uri=/health interval=50ms test=$good essential; } }`,
      [a],
      { main: `worker_processes ${threads};` },
    )
    const replies = Array.from({ length: herd }, (_, i) => ask(front.port, `/${i}`))
    await wait(front.sidecar, herd)
    alive = true
    assert.equal(spread((await Promise.all(replies)).map(({ status }) => String(status))), `200: ${herd}`)
    assert.ok(peak <= most, `${peak} at once`)
    assert.ok(peak > most / 2, `${peak} at once`)
    assert.deepEqual(await queueStatus(front.sidecar), {
      queued: herd,
      waiting: 0,
      dropped: 0,
      timedout: 0,
      overflows: 0,
    })
    // Probes are none of the requests.
    await front.settle(herd, { seen: false })
  })
}

test('a herd of which many leave is served to the last one that stays', async () => {
  await using a = await backend({ body: 'ok', after: 10 })
  await using front = await lab(
    `upstream peers { zone peers 64k; server ${a.address} max_conns=5; queue ${herd}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [a],
    { main: 'worker_processes 2;' },
  )
  const clients = await Promise.all(Array.from({ length: herd }, () => dial(front.port)))
  const replies = clients.map((client, i) =>
    client.ask(`/${i}`).then(
      ({ status }) => String(status),
      () => 'left',
    ),
  )
  for (const [i, client] of clients.entries()) if (i % 2 === 1) setTimeout(() => client.close(), i / 2)
  const ends = spread(await Promise.all(replies))
  assert.match(ends, /^200: \d+, left: \d+$/)
  assert.ok(a.peak <= 5, `${a.peak} at once`)
  const stayed = clients.filter((_, i) => i % 2 === 0).length
  assert.ok(Number(/200: (\d+)/.exec(ends)?.[1]) >= stayed, ends)
  for (const client of clients) client.close()
  await front.settle(herd, { seen: false })
  const { queued, waiting, dropped } = await queueStatus(front.sidecar)
  assert.equal(waiting, 0)
  assert.ok(dropped > 0 && dropped < queued, `${dropped} of ${queued}`)
})

test(
  'requests wait for a peer that is set aside, and the first that it answers lets the others in',
  timed(async () => {
    await using a = await backend(refusing)
    await using front = await lab(
      `upstream peers { zone peers 64k; server ${a.address} max_fails=1 fail_timeout=1s;
       server 127.0.0.1:1 down; queue 10; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
      [a],
    )
    assert.equal((await ask(front.port)).status, 502)
    const failed = performance.now()
    a.script = { body: 'ok' }
    // Whoever waits looks by itself every half second: that would be later.
    await sleep(250)
    const replies = await Promise.all(Array.from({ length: 6 }, () => ask(front.port)))
    const took = performance.now() - failed
    assert.equal(spread(replies.map(({ status }) => String(status))), '200: 6')
    assert.ok(took > 900 && took < 1200, `${took} ms`)
    await front.settle(7)
  }),
)

test(
  'a peer that its probe finds healthy again is had by those that wait, at once',
  timed(async () => {
    const checked = new Checked('A')
    checked.status = 503
    await using a = await backend(checked.script)
    await using sidecar = await start(
      `worker_processes 2;
     http { map $upstream_status $good { 200 1; }
       upstream peers { zone peers 64k; server ${a.address}; queue 10; }
       server { listen 127.0.0.1:PORT;
         location / { proxy_pass http://peers; upstream_probe check uri=/health interval=50ms test=$good essential; } } }`,
    )
    const replies = Array.from({ length: 8 }, () => ask(sidecar.port))
    await wait(sidecar, 8)
    checked.held = true
    await checked.answer(503)
    const last = checked.answer(200)
    await last
    const from = performance.now()
    for (const { text } of await Promise.all(replies)) assert.equal(text, 'A')
    const took = performance.now() - from
    assert.ok(took < 400, `${took} ms`)
    checked.held = false
  }),
)

test('those that wait in one thread go on when another one dies', async () => {
  await using a = await backend(({ gone }) => gone.then(() => {}))
  await using sidecar = await start(
    `worker_processes 2; http { access_log off;
       upstream peers { zone peers 64k; server ${a.address} max_conns=4; queue 50; }
       server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } } }`,
    mortal,
  )
  const clients = await Promise.all(Array.from({ length: 40 }, () => dial(sidecar.port)))
  const replies = clients.map((client, i) => client.ask(`/${i}`).then(({ status }) => status, String))
  await wait(sidecar, 36)
  sidecar.signal('SIGUSR2')
  // Its clients are gone, and what they had of the peer is free.
  await eventually('only those of the other thread wait', async () => {
    return (await queueStatus(sidecar)).waiting < 36 && clients.some((client) => client.inbox.ended)
  })
  a.script = { body: 'ok' }
  a.cut()
  const ends = await Promise.all(replies)
  const served = ends.filter((end) => end === 200).length
  assert.ok(served > 0, `${ends}`)
  assert.ok(a.peak <= 4)
  assert.equal((await queueStatus(sidecar)).waiting, 0)
  for (const [i, client] of clients.entries()) {
    // Whoever was not cut off has an answer: its peer may have been cut, but none is left without.
    if (ends[i] !== 200 && ends[i] !== 502) assert.ok(client.inbox.ended, `${ends[i]}`)
    client.close()
  }
})
