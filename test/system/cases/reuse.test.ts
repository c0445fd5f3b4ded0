import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, backends, type Exchange, type Script } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'
import { undisturbed } from '../../support/undisturbed.ts'

/** A peer that closes a connection once it has been idle for some milliseconds. */
function closing(idleMs: number): Script {
  return async (x) => {
    await x.reply({ body: 'ok' })
    const { total } = x.inbox
    setTimeout(() => {
      if (x.inbox.total === total) x.socket.destroy()
    }, idleMs)
  }
}

/** A peer that serves the first request of a connection, and closes it without an answer at the second. */
function closingOnReuse(): Script {
  const served = new Set<number>()
  return async (x: Exchange) => {
    await x.body()
    if (served.has(x.connection)) return x.end()
    served.add(x.connection)
    await x.reply({ body: 'ok' })
  }
}

/** A counter of the program's, summed over the peers; 0 where there is none yet. */
async function counter(front: Lab, series: RegExp): Promise<number> {
  const text = await (await fetch(`${front.sidecar.admin}/metrics`)).text()
  return text
    .split('\n')
    .filter((line) => series.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

test('connections that the peer closes just as they are used again cost the client nothing', async () => {
  const idleMs = 25
  const [groups, each] = [6, 84]
  await using all = await backends(Array.from({ length: groups }, () => closing(idleMs)))
  const upstreams = all.list.map(
    ({ address }, i) =>
      `upstream peers${i} { server ${address} max_fails=1; server 127.0.0.1:9 backup; keepalive 4; }`,
  )
  const locations = all.list.map((_, i) => `location /${i} { proxy_pass http://peers${i}; }`)
  await using front = await lab(
    `${upstreams.join(' ')} proxy_next_upstream_budget 0% min=0;
     server { listen 127.0.0.1:PORT; ${locations.join(' ')} }`,
    all.list,
  )
  const wrong: number[] = []
  const visit = async (i: number) => {
    using client = await dial(front.port)
    for (let asked = 0; asked < each; asked++) {
      const started = performance.now()
      const { status } = await client.ask(`/${i}`)
      if (status !== 200) wrong.push(status)
      while (performance.now() - started < idleMs) await sleep(idleMs - (performance.now() - started))
    }
  }
  await Promise.all(all.list.map((_, i) => visit(i)))
  assert.deepEqual(wrong, [])
  // What met a connection that was closing has not been carried out there, and once on a fresh one.
  for (const peer of all.list) assert.equal(peer.requests.length, each)
  const stale = await counter(front, /^evenkeel_peer_attempt_reasons_total\{.*reason="stale"\}/)
  const attempts = await counter(front, /^evenkeel_peer_attempts_total\{/)
  assert.equal(attempts, groups * each + stale)
  // Neither a failure of the peer, nor a retry that the budget knows of.
  assert.equal(await counter(front, /^evenkeel_peer_failures_total\{/), 0)
  assert.equal(await counter(front, /^evenkeel_upstream_retries_total\{/), 0)
  assert.equal(await counter(front, /^evenkeel_upstream_denials_total\{/), 0)
  for (const record of await front.records()) {
    assert.ok(['-', 'stale, -'].includes(record.reasons.join(', ')), record.reasons.join(', '))
  }
  await front.settle(groups * each)
})

test('a request on a connection gone stale is sent once more on a fresh one, and nobody is blamed', async () => {
  await using peer = await backend(closingOnReuse())
  await using front = await lab(
    `upstream peers { server ${peer.address} max_fails=1; server 127.0.0.1:9 backup; keepalive 4; }
     proxy_next_upstream_budget 0% min=0;
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; proxy_next_upstream_tries 1; } }`,
    [peer],
  )
  using client = await dial(front.port)
  for (let i = 0; i < 3; i++) assert.equal((await client.ask('/')).status, 200)
  const record = await front.record(3)
  assert.deepEqual(record.addresses, [peer.address, peer.address])
  assert.equal(record.reasons[0], 'stale')
  assert.equal((await front.peers('peers'))[peer.address]?.health.fails, 0)
  assert.equal(peer.requests.length, 5)
  // Each time on a connection of its own.
  assert.deepEqual(
    peer.requests.map((request) => request.connection),
    [1, 1, 2, 2, 3],
  )
  assert.equal(await counter(front, /^evenkeel_upstream_retries_total\{/), 0)
  await front.settle(3, { seen: false })
})

test('a POST is never carried out twice, whatever becomes of its connection', async () => {
  await using peer = await backend(closingOnReuse())
  await using front = await lab(
    `upstream peers { server ${peer.address}; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) {
    statuses.push((await ask(front.port, `/${i}`, { method: 'POST', body: 'pay' })).status)
  }
  assert.deepEqual(peer.targets, [...new Set(peer.targets)])
  for (const status of statuses) assert.ok(status === 200 || status === 502, String(statuses))
  assert.ok(statuses.includes(200))
  await front.settle(6, { seen: false })
})

test('a POST whose idle connection the peer has closed before goes out on a fresh one', async () => {
  await using peer = await backend({ body: 'ok' })
  await using front = await lab(
    `upstream peers { server ${peer.address}; keepalive 4; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  for (let i = 0; i < 5; i++) {
    assert.equal((await ask(front.port, `/${i}`, { method: 'POST', body: 'pay' })).status, 200)
    peer.endAll()
    await eventually('the idle connection is closed', () => peer.open === 0)
  }
  assert.deepEqual(peer.targets, ['/0', '/1', '/2', '/3', '/4'])
  await front.settle(5)
})

test('when kept and fresh connections of all peers end without an answer, that is a 502 each time', async () => {
  let warm = true
  const script: Script = async (x) => {
    if (warm) return x.reply({ body: 'ok' })
    await x.body()
    x.end()
  }
  await using two = await backends([script, script])
  const servers = two.list.map(({ address }) => `server ${address} max_fails=0;`)
  await using front = await lab(
    `upstream peers { ${servers.join(' ')} keepalive 8; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; proxy_next_upstream_budget off; } }`,
    two.list,
  )
  const seen = () => two.list.map((peer) => peer.requests.length)
  using client = await dial(front.port)
  for (let round = 0; round < 5; round++) {
    warm = true
    for (let i = 0; i < 2; i++) assert.equal((await client.ask('/')).status, 200)
    assert.deepEqual(
      two.list.map((peer) => peer.open),
      [1, 1],
    )
    warm = false
    const before = seen()
    for (let i = 0; i < 2; i++) {
      const reply = await client.ask('/')
      assert.equal(reply.status, 502)
      assert.ok(reply.complete)
      const { reasons } = await front.record(round * 4 + 3 + i)
      // On the kept connection, then on a fresh one, of either peer.
      const each = i === 0 ? ['stale', 'closed'] : ['closed']
      assert.deepEqual(reasons, [...each, ...each])
    }
    assert.deepEqual(
      seen().map((count, i) => count - before[i]!),
      [3, 3],
    )
  }
  await front.settle(20, { seen: false })
})

test('a connection that is used now and then answers as fast as one that is used all the time', async () => {
  await using peer = await backend({ body: 'ok' })
  await using front = await lab(
    `upstream peers { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [peer],
  )
  using client = await dial(front.port)
  await client.ask('/')
  await undisturbed(async () => {
    for (let i = 0; i < 5; i++) {
      await sleep(600)
      const started = performance.now()
      assert.equal((await client.ask('/')).status, 200)
      const took = performance.now() - started
      assert.ok(took < 100, `${took} ms`)
    }
  })
  assert.equal(peer.connections, 1)
  await front.settle(undefined)
})
