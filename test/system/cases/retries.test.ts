import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend, backends, type Script } from '../../support/backend.ts'
import { ask, Client, dial } from '../../support/client.ts'
import { freePort } from '../../support/free-port.ts'
import { eventually, lab, spread } from '../../support/invariants.ts'

test('a POST that a peer has seen is not sent to another one', async () => {
  const failures: Record<string, Script> = {
    '/reset': async (x) => {
      await x.body()
      x.reset()
    },
    '/503': { status: 503, body: 'mine' },
    '/silent': async (x) => {
      await x.gone
    },
  }
  const script: Script = async (x) => {
    const failure = failures[x.target]
    if (typeof failure === 'function') await failure(x)
    else await x.reply(failure)
  }
  await using a = await backend(script)
  await using b = await backend(script)
  await using front = await lab(
    `upstream peers { server ${a.address} max_fails=0; server ${b.address} max_fails=0; keepalive 0; }
     proxy_read_timeout 300ms;
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_next_upstream error timeout http_503; }
       location /again/ { proxy_pass http://peers/; proxy_next_upstream error timeout http_503 non_idempotent; }
     }`,
    [a, b],
  )
  const post = (target: string) => ask(front.port, target, { method: 'POST', body: 'pay' })
  const seen = () => a.requests.length + b.requests.length
  for (const [target, status, text] of [
    ['/reset', 502, undefined],
    ['/503', 503, 'mine'],
    ['/silent', 504, undefined],
  ] as const) {
    const before = seen()
    const reply = await post(target)
    assert.equal(reply.status, status, target)
    if (text !== undefined) assert.equal(reply.text, text)
    assert.equal(seen() - before, 1, target)
  }
  await front.settle(3)
  for (const [target, status] of [
    ['/again/reset', 502],
    ['/again/503', 503],
  ] as const) {
    const before = seen()
    assert.equal((await post(target)).status, status)
    assert.equal(seen() - before, 2, target)
  }
  await front.settle(2)
})

test('a POST that no peer has seen goes on to the next', async () => {
  await using good = await backend({ body: 'good' })
  const refusing = `127.0.0.1:${await freePort()}`
  await using front = await lab(
    `upstream peers { server ${refusing} max_fails=0; server ${good.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [good],
  )
  for (let i = 0; i < 4; i++) {
    const reply = await ask(front.port, '/', { method: 'POST', body: ['in ', 'pieces'] })
    assert.equal(reply.text, 'good')
  }
  for (const request of good.requests) assert.equal((await request.body()).body.toString(), 'in pieces')
  const attempts = (await front.records()).map((record) => record.addresses.join(' '))
  assert.ok(attempts.includes(`${refusing} ${good.address}`), attempts.join('; '))
  await front.settle(4)
})

test('once a byte of the response has gone out, no other peer is asked', async () => {
  await using bad = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1')
    await sleep(20)
    x.reset()
  })
  await using good = await backend({ body: 'good' })
  await using front = await lab(
    `upstream peers { server ${bad.address}; server ${good.address} backup; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [bad, good],
  )
  const reply = await ask(front.port)
  assert.equal(reply.text, '1')
  assert.equal(reply.complete, false)
  assert.equal(good.requests.length, 0)
  await front.settle(1)
})

test('a chunked answer that ends without its last chunk is cut off for the client, and nobody else is asked', async () => {
  await using bad = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
    x.end()
  })
  await using good = await backend({ body: 'good' })
  await using front = await lab(
    `upstream peers { server ${bad.address} max_fails=3; server ${good.address} backup; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [bad, good],
  )
  for (let i = 1; i <= 2; i++) {
    using client = await dial(front.port)
    await client.write(Client.bytes('/'))
    await client.closed
    const said = client.inbox.unread.toString('latin1')
    assert.ok(said.startsWith('HTTP/1.1 200 '), said)
    assert.ok(said.endsWith('\r\n\r\n5\r\nhello\r\n'), said)
    const record = await front.record(i)
    assert.deepEqual([record.addresses, record.reasons], [[bad.address], ['body_cut']])
    assert.equal((await front.peers('peers'))[bad.address]!.health.fails, i)
  }
  assert.equal(good.requests.length, 0)
  await front.settle(2)
})

test('an answer that takes its time is waited for, and its request was sent once', async () => {
  const script: Script = { body: 'late', after: 1500 }
  await using two = await backends([script, script])
  const servers = two.list.map(({ address }) => `server ${address};`)
  await using front = await lab(
    `upstream peers { ${servers.join(' ')} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_next_upstream off; }
       location /more { proxy_pass http://peers; } }`,
    two.list,
  )
  const replies = await Promise.all(['/', '/more', '/', '/more'].map((target) => ask(front.port, target)))
  assert.equal(spread(replies.map((reply) => reply.text)), 'late: 4')
  assert.equal(spread(two.list.flatMap((peer) => peer.targets)), '/: 2, /more: 2')
  await front.settle(4)
})

test('Retry-After is passed on as it is, and does not hold up what else is to be asked', async () => {
  const forms = [
    '0',
    '2',
    '-1',
    '1e9',
    '99999999999999999999',
    'abc',
    'Fri, 31 Dec 2999 23:59:59 GMT',
    'Thu, 01 Jan 1970 00:00:00 GMT',
  ]
  const script: Script = async (x) => {
    await x.reply({ status: 503, headers: { 'Retry-After': forms[Number(x.target.split('/').at(-1))]! } })
  }
  await using three = await backends([script, script, script])
  const servers = three.list.map(({ address }) => `server ${address} max_fails=0;`)
  await using front = await lab(
    `upstream peers { ${servers.join(' ')} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; }
       location /all/ { proxy_pass http://peers; proxy_next_upstream http_503; proxy_next_upstream_budget off;
         proxy_next_upstream_backoff 5ms 5ms; } }`,
    three.list,
  )
  const began = performance.now()
  for (const [i, form] of forms.entries()) {
    for (const target of [`/${i}`, `/all/${i}`]) {
      const reply = await ask(front.port, target)
      assert.deepEqual([reply.status, reply.head.all('retry-after')], [503, [form]])
    }
    // The next request goes to the same peers at once.
    const { reasons } = await front.record(2 * i + 2)
    assert.deepEqual(reasons, ['http_503', 'http_503', 'http_503'])
  }
  assert.ok(performance.now() - began < 1900, `${performance.now() - began} ms`)
  assert.doesNotMatch(front.sidecar.stderr, /Timeout\w*Warning|NaN/)
  await front.settle(16)
})

test('with every peer refusing, each of many requests gets its own 502', async () => {
  const [one, other] = [await freePort(), await freePort()]
  await using front = await lab(
    `upstream peers { server 127.0.0.1:${one}; server 127.0.0.1:${other}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [],
  )
  const statuses: string[] = []
  using client = await dial(front.port)
  const took: number[] = []
  for (let i = 0; i < 1000; i++) {
    const started = performance.now()
    statuses.push(String((await client.ask('/')).status))
    took.push(performance.now() - started)
  }
  const parallel = await Promise.all(Array.from({ length: 200 }, () => ask(front.port)))
  statuses.push(...parallel.map((reply) => String(reply.status)))
  assert.equal(spread(statuses), '502: 1200')
  const records = await front.records()
  assert.deepEqual(records.at(-1)?.addresses, ['peers'])
  // A busy machine makes a few of them wait.
  const most = took.sort((a, b) => a - b)[990]!
  assert.ok(most < 100, `${most} ms until nobody was found`)
  await front.settle(1200)
})

test('a client that leaves during a back-off ends the search', async () => {
  const reset: Script = (x) => x.reset()
  await using three = await backends([reset, reset, reset])
  const peers = three.list
  await using front = await lab(
    `upstream peers { ${peers.map((peer) => `server ${peer.address} max_fails=0;`).join(' ')} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_next_upstream_backoff 60s 60s; } }`,
    peers,
  )
  const seen = () => peers.reduce((sum, peer) => sum + peer.requests.length, 0)
  const client = await dial(front.port)
  await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually('the first retry went at once', () => seen() === 2, 500)
  await sleep(50)
  client.reset()
  assert.equal((await front.record()).status, 499)
  await sleep(100)
  assert.equal(seen(), 2)
  await front.settle(1)
})

test('retries stay within their budget, and what is left is passed on', async () => {
  const busy: Script = { status: 503, body: 'busy', after: 5 }
  await using two = await backends([busy, busy])
  const peers = two.list
  await using front = await lab(
    `upstream peers { ${peers.map((peer) => `server ${peer.address} max_fails=0;`).join(' ')} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_next_upstream http_503;
         proxy_next_upstream_budget 20% min=3 window=10s; } }`,
    peers,
  )
  const replies = await Promise.all(Array.from({ length: 200 }, () => ask(front.port)))
  assert.equal(spread(replies.map((reply) => `${reply.status} ${reply.text}`)), '503 busy: 200')
  const retries = peers.reduce((sum, peer) => sum + peer.requests.length, 0) - 200
  // A fifth of the requests, and 3 for each second of the window.
  assert.ok(retries >= 30 && retries <= 70, `${retries} retries`)
  const metrics = await (await fetch(`${front.sidecar.admin}/metrics`)).text()
  const denied = /^evenkeel_\w+\{[^}]*reason="budget"[^}]*\} (\d+)$/m.exec(metrics)?.[1]
  assert.equal(Number(denied), 200 - retries)
  await front.settle(200)
})

test('retries that wait for their turn count against the budget, at any time', async () => {
  const busy: Script = { status: 503, body: 'busy' }
  await using five = await backends([busy, busy, busy, busy, busy])
  const peers = five.list
  await using front = await lab(
    `upstream peers { zone peers 64k; ${peers.map((peer) => `server ${peer.address} max_fails=0;`).join(' ')} }
     server { listen 127.0.0.1:PORT;
       location / { proxy_pass http://peers; proxy_next_upstream http_503;
         proxy_next_upstream_backoff 300ms 300ms;
         proxy_next_upstream_budget 20% min=3 window=10s; } }`,
    peers,
  )
  const requests = 1000
  let going = true
  let most = 0
  const watch = (async () => {
    for (; going; await sleep(20)) {
      const { retries, retries_waiting } = await front.sidecar.json<{
        retries: number
        retries_waiting: number
      }>('/status/http/upstreams/peers/evenkeel')
      most = Math.max(most, retries + retries_waiting)
    }
  })()
  let next = 0
  const statuses: string[] = []
  const client = async () => {
    using one = await dial(front.port)
    while (next++ < requests) statuses.push(String((await one.ask('/')).status))
  }
  await Promise.all(Array.from({ length: 200 }, client))
  going = false
  await watch
  assert.equal(spread(statuses), `503: ${requests}`)
  const retries = peers.reduce((sum, peer) => sum + peer.requests.length, 0) - requests
  // A fifth of the requests, and 3 for each second of the window.
  assert.ok(retries >= 100 && retries <= requests / 5 + 30, `${retries} retries`)
  assert.ok(most <= requests / 5 + 30, `${most} made or waiting`)
  const denials = await front.sidecar.json<Record<string, number>>(
    '/status/http/upstreams/peers/evenkeel/denials',
  )
  const tried = (await front.records()).filter((record) => record.addresses.length === 5).length
  assert.deepEqual(denials, { budget: requests - tried, ...(tried > 0 ? { tries: tried } : {}) })
  await front.settle(requests)
})

test('a peer that never accepts costs the connect timeout, and then the next one is asked', async () => {
  // Its accept queue is full, so the kernel lets further attempts to connect wait.
  const hole = spawn(process.execPath, [
    '-e',
    `const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       require('node:fs').writeSync(1, server.address().port + '\\n')
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20_000)
     })`,
  ])
  try {
    const [line] = await once(hole.stdout, 'data')
    const port = Number(String(line))
    const address = `127.0.0.1:${port}`
    const fill = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => {}))
    await sleep(50)
    await using good = await backend({ body: 'good' })
    await using front = await lab(
      `upstream peers { server ${address} max_fails=0; server ${good.address}; }
       upstream alone { server ${address}; }
       proxy_connect_timeout 200ms;
       server { listen 127.0.0.1:PORT;
         location / { proxy_pass http://peers; } location /alone { proxy_pass http://alone; } }`,
      [good],
    )
    for (let i = 0; i < 2; i++) assert.equal((await ask(front.port)).text, 'good')
    const records = await front.records()
    const tried = records.find((record) => record.addresses.length === 2)
    assert.deepEqual(tried?.addresses, [address, good.address])
    assert.deepEqual(tried.statuses, ['504', '200'])
    assert.equal(tried.reasons[0], 'timeout_connect')
    assert.equal((await ask(front.port, '/alone')).status, 504)
    await front.settle(3)
    for (const socket of fill) socket.destroy()
  } finally {
    hole.kill('SIGKILL')
  }
})
