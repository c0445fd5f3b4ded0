import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, backends, type Script } from '../../support/backend.ts'
import { ask, Client, dial, webSocket } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually, lab, spread } from '../../support/invariants.ts'

/** Asks `count` times, `width` at once, and hands back what came in the order it was asked. */
async function load(
  port: number,
  count: number,
  width: number,
  target = '/',
): Promise<{ status: number; text: string }[]> {
  const replies: { status: number; text: string }[] = []
  let next = 0
  const worker = async () => {
    using client = await dial(port)
    while (next < count) {
      const i = next++
      const { status, text } = await client.ask(target)
      replies[i] = { status, text }
    }
  }
  await Promise.all(Array.from({ length: width }, worker))
  return replies
}

test('a peer that fails fast does not draw the traffic', async () => {
  await using good = await backend({ body: 'good', after: 20 })
  await using bad = await backend({ status: 500, body: 'bad' })
  await using front = await lab(
    `upstream peers { zone peers 64k; least_time header; server ${good.address}; server ${bad.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [good, bad],
  )
  const replies = await load(front.port, 400, 8)
  const share = (part: typeof replies) => part.filter((reply) => reply.status === 500).length / part.length
  assert.ok(share(replies) <= 0.5, `share of ${share(replies)} in all`)
  assert.ok(share(replies.slice(200)) <= 0.15, `share of ${share(replies.slice(200))} in the second half`)
  await front.settle(400)
})

test('attempts that failed do not make a peer look fast', async () => {
  await using good = await backend({ body: 'good', after: 10 })
  await using silent = await backend(async (x) => {
    await x.gone
  })
  const refusing = `127.0.0.1:${await freePort()}`
  await using front = await lab(
    `upstream peers { zone peers 64k; least_time header;
       server ${good.address} max_fails=0; server ${refusing} max_fails=0; server ${silent.address} max_fails=0; }
     proxy_read_timeout 400ms; proxy_next_upstream_budget off;
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [good, silent],
  )
  const replies = await load(front.port, 300, 6)
  assert.equal(spread(replies.map((reply) => reply.text)), 'good: 300')
  const records = await front.records()
  const first = (part: typeof records, address: string) =>
    part.filter((record) => record.addresses[0] === address).length / part.length
  for (const address of [refusing, silent.address]) {
    assert.ok(first(records, address) <= 1 / 3, `share of ${first(records, address)} in all`)
    const late = records.slice(200)
    assert.ok(first(late, address) <= 0.1, `share of ${first(late, address)} in the last third`)
    assert.equal((await front.peers('peers'))[address]?.health.header_time, 0)
  }
  await front.settle(300)
})

test('a peer that was slow at first gets its share back', async () => {
  const scripts = ['a', 'b', 'c', 'd', 'e'].map((name): Script => {
    let slow = name === 'a' ? 3 : 0
    return (x) => x.reply({ body: name, after: slow-- > 0 ? 300 : 4 })
  })
  await using five = await backends(scripts)
  const peers = five.list
  const servers = peers.map((peer) => `server ${peer.address};`).join(' ')
  await using front = await lab(
    `upstream peers { zone peers 64k; least_time header factor=50 decay=200ms; ${servers} }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    peers,
  )
  await load(front.port, 1000, 10)
  const late = await load(front.port, 1000, 10)
  for (const name of 'abcde') {
    const share = late.filter((reply) => reply.text === name).length / late.length
    assert.ok(share >= 0.1, `share of ${share} for ${name}`)
  }
  await front.settle(2000)
})

test('the only peer of a group is asked whatever its failures', async () => {
  await using peer = await backend((x) => x.reset())
  await using front = await lab(
    `upstream peers { server ${peer.address} max_fails=2 fail_timeout=30s; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  for (let i = 0; i < 4; i++) assert.equal((await ask(front.port)).status, 502)
  peer.script = { body: 'back' }
  assert.equal((await ask(front.port)).text, 'back')
  assert.equal(peer.requests.length, 5)
  await front.settle(5)
})

test('max_conns is never exceeded, with clients that leave and with tunnels', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const script: Script = async (x) => {
    if (x.target === '/hold') await gate
    if (x.target !== '/ws') return x.reply({ body: 'ok', after: 5 + (x.connection % 7) })
    await x.upgrade()
    await x.inbox.some()
    x.done()
    x.end()
  }
  await using a = await backend(script)
  await using b = await backend(script)
  await using front = await lab(
    `upstream peers { zone peers 64k; least_conn; server ${a.address} max_conns=10; server ${b.address} max_conns=10; }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; }
       location /ws { proxy_pass http://peers;
         proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; }
     }`,
    [a, b],
  )
  let ended = 0
  const held = Array.from({ length: 40 }, async () => {
    const reply = await ask(front.port, '/hold')
    ended += 1
    return reply
  })
  await eventually('both are full, and the rest is refused', () => a.busy + b.busy === 20 && ended === 20)
  open()
  const first = (await Promise.all(held)).map((reply) => String(reply.status))
  assert.equal(spread(first), '200: 20, 502: 20')

  const leave = async (i: number) => {
    const client = await dial(front.port)
    await client.write(Client.bytes('/'))
    await sleep(i % 12)
    if (i % 2) client.reset()
    else client.close()
    return 499
  }
  const tunnel = async () => {
    const { client, status } = await webSocket(front.port, '/ws')
    if (status === 101) {
      await sleep(10)
      await client.write('bye')
      await client.closed
    }
    client.close()
    return status
  }
  const one = async (i: number) => {
    if (i % 5 === 0) return leave(i)
    if (i % 5 === 1) return tunnel()
    return (await ask(front.port)).status
  }
  const statuses = await Promise.all(Array.from({ length: 500 }, (_, i) => one(i)))
  assert.equal(a.peak, 10)
  assert.equal(b.peak, 10)
  assert.deepEqual(
    statuses.filter((status) => ![101, 200, 499, 502].includes(status)),
    [],
  )
  await front.settle(undefined, { seen: false })
  const after = await load(front.port, 100, 10)
  assert.equal(spread(after.map((reply) => reply.text)), 'ok: 100')
})

test('a peer that fails for ever is asked by one client each time its exclusion has passed', async () => {
  await using bad = await backend((x) => x.reset())
  await using good = await backend({ body: 'good' })
  await using front = await lab(
    `upstream peers { server ${bad.address} max_fails=3 fail_timeout=1s; server ${good.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [bad, good],
  )
  await load(front.port, 30, 1)
  assert.equal(bad.requests.length, 3)
  const from = bad.requests[2]!.at
  while (performance.now() - from < 2500) {
    const replies = await load(front.port, 4, 2)
    assert.equal(spread(replies.map((reply) => reply.text)), 'good: 4')
    await sleep(5)
  }
  const gaps = bad.requests.slice(3).map((request, i) => request.at - bad.requests[i + 2]!.at)
  assert.equal(gaps.length, 2)
  for (const gap of gaps) assert.ok(gap >= 995 && gap < 1200, String(gaps))
  await front.settle(undefined)
})

test('a full peer is not a failed one', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  await using peer = await backend(async (x) => {
    await gate
    await x.reply({ body: 'ok' })
  })
  await using front = await lab(
    `upstream peers { server ${peer.address} max_conns=2 max_fails=1; server 127.0.0.1:9 down; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  const statuses: string[] = []
  const asked = Array.from({ length: 20 }, async () => {
    statuses.push(String((await ask(front.port)).status))
  })
  await eventually('all others are refused', () => statuses.length === 18)
  open()
  await Promise.all(asked)
  assert.equal(spread(statuses), '200: 2, 502: 18')
  const { state, health } = (await front.peers('peers'))[peer.address]!
  assert.deepEqual({ state, fails: health.fails }, { state: 'up', fails: 0 })
  const metrics = await (await fetch(`${front.sidecar.admin}/metrics`)).text()
  assert.match(metrics, /^evenkeel_\w+\{[^}]*reason="overflow"[^}]*\} 18$/m)
  assert.equal((await ask(front.port)).status, 200)
  await front.settle(21)
})

test('of two random peers a busy one is left alone', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  await using a = await backend(async (x) => {
    if (x.target === '/hold') await gate
    await x.reply({ body: 'a' })
  })
  // The other peer is not there yet, so that the first one gets all that is held.
  const port = await freePort()
  await using front = await lab(
    `upstream peers { zone peers 64k; random two; server ${a.address}; server 127.0.0.1:${port} fail_timeout=1s; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; proxy_next_upstream_budget off; } }`,
    [a],
  )
  const held = Array.from({ length: 50 }, () => ask(front.port, '/hold'))
  await eventually('all are held', () => a.busy === 50)
  await using b = await backend({ body: 'b' }, { port })
  await eventually('the other peer answers', async () => (await ask(front.port)).text === 'b')
  const replies = await load(front.port, 200, 1)
  const idle = replies.filter((reply) => reply.text === 'b').length
  assert.ok(idle >= 198, `${idle} of 200`)
  assert.ok(b.requests.length >= 198)
  open()
  assert.equal(spread((await Promise.all(held)).map((reply) => reply.text)), 'a: 50')
  await front.settle(undefined, { seen: false })
})
