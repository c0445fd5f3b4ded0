// Requests that find nobody ready wait for a peer, where the group has a queue.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { ask, Client, dial } from '../../support/client.ts'
import { eventually, type Lab, type Logged, lab } from '../../support/invariants.ts'
import { Gate, queueStatus, wait } from '../../support/queued.ts'
import { timed } from '../../support/undisturbed.ts'

/** One thread, since each has a queue of its own. */
function inFront(group: string, backends: readonly Backend[], location = ''): Promise<Lab> {
  return lab(
    `log_format queued '$request_uri $status $upstream_queue_time $upstream_reason';
     upstream peers { zone peers 64k; ${group} }
     server { listen 127.0.0.1:PORT; access_log access.log attempts; access_log queue.log queued;
       access_log json.log json; location / { proxy_pass http://peers; ${location} } }`,
    backends,
    { main: 'worker_processes 1;' },
  )
}

/** Lines of another log than the lab's, once there are so many. */
async function lines(front: Lab, name: string, count: number): Promise<string[]> {
  let found: string[] = []
  await eventually(`${count} lines`, async () => {
    const text = await readFile(join(front.sidecar.folder, name), 'latin1').catch(() => '')
    found = text.split('\n').filter(Boolean)
    return found.length >= count
  })
  return found
}

/** What the lab's log says of a request. */
async function recordOf(front: Lab, target: string): Promise<Logged> {
  let found: Logged | undefined
  await eventually(`a record of ${target}`, async () => {
    found = (await front.records()).find(({ request }) => request.includes(` ${target} `))
    return found !== undefined
  })
  return found!
}

test('requests wait for a full peer, and have it in the order in which they came', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using front = await inFront(
    `server ${a.address} max_conns=1; queue 10;`,
    [a],
    'explain_header X-Why;',
  )
  const replies = [ask(front.port, '/0')]
  await eventually('the peer is full', () => a.busy === 1)
  for (const i of [1, 2, 3]) {
    replies.push(ask(front.port, `/${i}`))
    await wait(front.sidecar, i)
  }
  await sleep(30)
  assert.equal(a.requests.length, 1)
  for (const i of [1, 2, 3]) {
    gate.let()
    await eventually(`request ${i} has its turn`, () => a.requests.length === i + 1)
    assert.equal((await queueStatus(front.sidecar)).waiting, 3 - i)
  }
  gate.let()
  const all = await Promise.all(replies)
  assert.deepEqual(
    all.map(({ status, text }) => `${status} ${text}`),
    ['200 /0', '200 /1', '200 /2', '200 /3'],
  )
  assert.deepEqual(a.targets, ['/0', '/1', '/2', '/3'])
  assert.equal(a.peak, 1)
  assert.match(all[0]!.header('x-why')!, /^127\S+ 200 \(single\)$/)
  assert.match(all[1]!.header('x-why')!, /^queued \d+ ms, 127\S+ 200 \(single\)$/)
  const told = await lines(front, 'queue.log', 4)
  assert.equal(told[0], '/0 200 - -')
  for (const [i, line] of told.slice(1).entries()) {
    const [, target, seconds] = /^(\S+) 200 (\d\.\d{3}) -$/.exec(line) ?? []
    assert.equal(target, `/${i + 1}`)
    assert.ok(Number(seconds) >= 0.02 && Number(seconds) < 5, line)
  }
  const records = (await lines(front, 'json.log', 4)).map((line) => JSON.parse(line))
  assert.equal('queue_ms' in records[0], false)
  for (const { queue_ms, duration_ms, attempts } of records.slice(1)) {
    assert.ok(queue_ms >= 20 && queue_ms <= duration_ms, `${queue_ms} of ${duration_ms}`)
    // What the peer took is told without the wait.
    assert.ok(attempts[0].at_ms >= queue_ms - 1, `${attempts[0].at_ms} after ${queue_ms}`)
  }
  assert.deepEqual(await queueStatus(front.sidecar), {
    queued: 3,
    waiting: 0,
    dropped: 0,
    timedout: 0,
    overflows: 0,
  })
  await front.settle(4)
})

test('whoever leaves while waiting is taken out at once, and no peer hears of it', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using front = await inFront(`server ${a.address} max_conns=1; queue 10;`, [a])
  const first = ask(front.port, '/first')
  await eventually('the peer is full', () => a.busy === 1)
  const leave: ((client: Client) => void)[] = [
    (client) => client.close(),
    (client) => client.reset(),
    (client) => client.end(),
  ]
  for (const [i, go] of leave.entries()) {
    using client = await dial(front.port)
    await client.write(Client.bytes(`/left-${i}`))
    await wait(front.sidecar, 1)
    go(client)
    await wait(front.sidecar, 0)
  }
  using posting = await dial(front.port)
  await posting.write(Client.bytes('/left-3', { method: 'POST', body: 'x'.repeat(1000) }))
  await wait(front.sidecar, 1)
  const last = ask(front.port, '/last')
  await wait(front.sidecar, 2)
  posting.close()
  await wait(front.sidecar, 1)
  gate.open()
  assert.equal((await first).text, '/first')
  assert.equal((await last).text, '/last')
  assert.deepEqual(a.targets, ['/first', '/last'])
  const { queued, dropped } = await queueStatus(front.sidecar)
  assert.deepEqual([queued, dropped], [5, 4])
  const left = (await lines(front, 'queue.log', 6)).filter((line) => line.includes('left'))
  assert.equal(left.length, 4)
  for (const line of left) assert.match(line, /^\/left-\d 499 \d\.\d{3} -$/)
  await front.settle(6)
})

test('one that is served whether its client stays or not keeps its place', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using front = await inFront(
    `server ${a.address} max_conns=1; queue 10;`,
    [a],
    'proxy_ignore_client_abort on;',
  )
  const first = ask(front.port, '/first')
  await eventually('the peer is full', () => a.busy === 1)
  {
    using client = await dial(front.port)
    await client.write(Client.bytes('/left'))
    await wait(front.sidecar, 1)
  }
  await sleep(50)
  assert.equal((await queueStatus(front.sidecar)).waiting, 1)
  gate.open()
  await first
  await eventually('it has been served', () => a.requests.length === 2)
  assert.deepEqual(a.targets, ['/first', '/left'])
  assert.equal((await queueStatus(front.sidecar)).dropped, 0)
  await front.settle(2)
})

test(
  'a full queue refuses at once, and the connection goes on',
  timed(async () => {
    const gate = new Gate()
    await using a = await backend(gate.script)
    await using front = await inFront(`server ${a.address} max_conns=1; queue 2;`, [a])
    const held = [ask(front.port, '/0')]
    await eventually('the peer is full', () => a.busy === 1)
    for (const i of [1, 2]) {
      held.push(ask(front.port, `/${i}`))
      await wait(front.sidecar, i)
    }
    using client = await dial(front.port)
    const from = performance.now()
    const refused = [await client.ask('/full'), await client.ask('/full', { method: 'POST', body: 'some' })]
    assert.deepEqual(
      refused.map(({ status }) => status),
      [502, 502],
    )
    assert.ok(performance.now() - from < 200)
    gate.open()
    await Promise.all(held)
    assert.equal((await client.ask('/again')).text, '/again')
    assert.deepEqual(await queueStatus(front.sidecar), {
      queued: 2,
      waiting: 0,
      dropped: 0,
      timedout: 0,
      overflows: 2,
    })
    assert.deepEqual(await front.sidecar.json('/status/http/upstreams/peers/evenkeel/denials'), {
      queue_full: 2,
    })
    const full = (await front.records()).filter(({ request }) => request.includes('/full'))
    for (const { addresses, reasons, status } of full)
      assert.deepEqual([addresses, reasons, status], [['peers'], ['queue_full'], 502])
    await front.settle(6)
  }),
)

test(
  'whoever is not served in time hears so, and those behind it wait their own time',
  timed(async () => {
    const gate = new Gate()
    await using a = await backend(gate.script)
    await using front = await inFront(`server ${a.address} max_conns=1; queue 10 timeout=250ms;`, [a])
    const held = ask(front.port, '/0')
    await eventually('the peer is full', () => a.busy === 1)
    const timed = async (target: string) => {
      const from = performance.now()
      const { status } = await ask(front.port, target)
      return { status, ms: performance.now() - from }
    }
    const one = timed('/1')
    await wait(front.sidecar, 1)
    await sleep(100)
    const other = timed('/2')
    for (const { status, ms } of await Promise.all([one, other])) {
      assert.equal(status, 502)
      assert.ok(ms >= 249 && ms < 1000, `${ms} ms`)
    }
    assert.equal(a.requests.length, 1)
    gate.open()
    await held
    const told = (await lines(front, 'queue.log', 3)).filter((line) => !line.startsWith('/0 '))
    for (const line of told) assert.match(line, /^\/\d 502 0\.(2[5-9]|[3-9])\d+ queue_timeout$/)
    assert.equal((await queueStatus(front.sidecar)).timedout, 2)
    assert.deepEqual(await front.sidecar.json('/status/http/upstreams/peers/evenkeel/denials'), {
      queue_timeout: 2,
    })
    assert.equal((await ask(front.port, '/later')).status, 200)
    await front.settle(4)
  }),
)

test('bodies of requests that wait arrive whole, and what is read ahead of its turn is bounded', async () => {
  const gate = new Gate()
  const bodies = new Map<string, string>()
  const digest = (bytes: Buffer) => createHash('sha1').update(bytes).digest('hex')
  await using a = await backend(async (x) => {
    bodies.set(x.target, digest((await x.body()).body))
    await gate.script(x)
  })
  await using front = await inFront(
    `server ${a.address} max_conns=1; queue 10;`,
    [a],
    'client_max_body_size 0;',
  )
  const first = ask(front.port, '/first')
  await eventually('the peer is full', () => a.busy === 1)
  const small = randomBytes(2000)
  const pieces = [randomBytes(70_000), randomBytes(10), randomBytes(90_000)]
  const large = randomBytes(48 * 1024 * 1024)
  const clients = await Promise.all([0, 1, 2, 3].map(() => dial(front.port)))
  const [one, two, three, four] = clients as [Client, Client, Client, Client]
  const replies = [one.ask('/small', { method: 'POST', body: small })]
  await wait(front.sidecar, 1)
  replies.push(two.ask('/chunks', { method: 'PUT', body: pieces }))
  await wait(front.sidecar, 2)
  replies.push(three.ask('/large', { method: 'POST', body: large }))
  await wait(front.sidecar, 3)
  await four.write('POST /expect HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n')
  await wait(front.sidecar, 4)
  const until = performance.now() + 300
  let waiting = 0
  while (performance.now() < until) {
    waiting = three.socket.writableLength
    await sleep(50)
  }
  // The rest is in the kernel's buffers.
  assert.ok(waiting > 24 * 1024 * 1024, `${waiting} bytes are still with the client`)
  gate.open()
  await first
  const answer = four.reply('POST')
  await four.write('12345')
  replies.push(answer)
  for (const { status } of await Promise.all(replies)) assert.equal(status, 200)
  assert.equal((await answer).interim[0]?.start, 'HTTP/1.1 100 Continue')
  assert.deepEqual(Object.fromEntries(bodies), {
    '/first': digest(Buffer.alloc(0)),
    '/small': digest(small),
    '/chunks': digest(Buffer.concat(pieces)),
    '/large': digest(large),
    '/expect': digest(Buffer.from('12345')),
  })
  for (const client of clients) client.close()
  await front.settle(5)
})

test('requests that were sent ahead on one connection are answered in order after one that waits', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using front = await inFront(`server ${a.address} max_conns=1; queue 10;`, [a])
  const first = ask(front.port, '/first')
  await eventually('the peer is full', () => a.busy === 1)
  using client = await dial(front.port)
  await client.write(Buffer.concat(['/1', '/2', '/3'].map((target) => Client.bytes(target))))
  await wait(front.sidecar, 1)
  await sleep(30)
  // One of a connection at a time.
  assert.equal((await queueStatus(front.sidecar)).queued, 1)
  gate.open()
  await first
  const texts = [await client.reply(), await client.reply(), await client.reply()].map(({ text }) => text)
  assert.deepEqual(texts, ['/1', '/2', '/3'])
  await front.settle(4)
})

test(
  'a request whose peer fails waits for one that is busy, and one whose peers have all failed does not',
  timed(async () => {
    const gate = new Gate()
    await using busy = await backend(gate.script)
    await using cutting = await backend((x) => x.reset())
    await using front = await inFront(
      `server ${cutting.address} max_fails=0; server ${busy.address} max_conns=1; queue 10;`,
      [busy, cutting],
    )
    const held = [ask(front.port, '/held')]
    await eventually('the peer is full', () => busy.busy === 1)
    held.push(ask(front.port, '/then'))
    await wait(front.sidecar, 1)
    gate.open()
    for (const { status } of await Promise.all(held)) assert.equal(status, 200)
    const second = await recordOf(front, '/then')
    assert.deepEqual(second.addresses, [cutting.address, busy.address])
    busy.script = (x) => x.reset()
    const from = performance.now()
    assert.equal((await ask(front.port, '/none')).status, 502)
    assert.ok(performance.now() - from < 1000)
    // What was reset on a kept connection counts as not seen.
    await front.settle(3, { seen: false })
  }),
)

test('the time for further attempts begins with the first one, and not with the wait', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using b = await backend(gate.script)
  await using front = await inFront(
    `server ${a.address} max_conns=1; server ${b.address} max_conns=1; queue 10;`,
    [a, b],
    'proxy_next_upstream_timeout 150ms;',
  )
  const held = [ask(front.port, '/0'), ask(front.port, '/1')]
  await eventually('both are full', () => a.busy === 1 && b.busy === 1)
  const waiting = ask(front.port, '/waited')
  await wait(front.sidecar, 1)
  await sleep(250)
  a.script = (x) => (x.target === '/waited' ? x.reset() : x.reply({ body: 'a' }))
  b.script = a.script
  gate.let(2)
  await Promise.all(held)
  assert.equal((await waiting).status, 502)
  const { addresses, reasons } = await recordOf(front, '/waited')
  assert.deepEqual(new Set(addresses), new Set([a.address, b.address]))
  // A kept connection that was reset is tried once more on a fresh one.
  assert.deepEqual(
    reasons.filter((reason) => reason !== 'stale'),
    ['reset', 'reset'],
  )
  // What was reset on a kept connection counts as not seen.
  await front.settle(3, { seen: false })
})

test('a group without a queue next to one with a queue refuses as ever', async () => {
  const gate = new Gate()
  await using a = await backend(gate.script)
  await using front = await lab(
    `upstream peers { zone peers 64k; server ${a.address} max_conns=1; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://peers; } }`,
    [a],
  )
  const held = ask(front.port, '/held')
  await eventually('the peer is full', () => a.busy === 1)
  assert.equal((await ask(front.port, '/more')).status, 502)
  gate.open()
  await held
  const tree = await front.sidecar.json<Record<string, unknown>>('/status/http/upstreams/peers')
  assert.equal('queue' in tree, false)
  assert.deepEqual((await recordOf(front, '/more')).reasons, ['overflow'])
  await front.settle(2)
})
