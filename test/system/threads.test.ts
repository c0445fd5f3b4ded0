import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { backend } from '../support/backend.ts'
import { type Client, dial } from '../support/client.ts'
import { nothingInFlight, peersOf } from '../support/discovered.ts'
import { mortal, replaced } from '../support/dying-threads.ts'
import { eventually } from '../support/invariants.ts'
import { type Sidecar, start } from '../support/sidecar.ts'

const threads = 4

function config(servers: readonly string[], more = ''): string {
  return `
worker_processes ${threads};
http {
  access_log off;
  upstream u { zone u 64k; ${more} ${servers.map((server) => `server ${server};`).join(' ')} }
  server {
    listen 127.0.0.1:PORT;
    status_zone front;
    add_header X-Connection $connection always;
    location / { proxy_pass http://u; }
    location /status/ { api /status/; }
  }
}`
}

/** Which thread serves a connection: each has every fourth serial number. */
function threadOf(connection: string | undefined): number {
  return (Number(connection) - 1) % threads
}

/** A client that asks one request after the other until it is told to stop, or cannot. */
class Asker {
  answered = 0
  thread = -1
  failure: string | undefined
  #over = false
  #client: Client
  readonly done: Promise<void>

  constructor(client: Client, target = '/') {
    this.#client = client
    this.done = this.#run(target)
  }

  async #run(target: string): Promise<void> {
    while (!this.#over) {
      try {
        const reply = await this.#client.ask(target)
        if (reply.status !== 200 || !reply.complete) this.failure = `${reply.status} ${reply.complete}`
        this.thread = threadOf(reply.header('x-connection'))
        this.answered += 1
      } catch (error) {
        this.failure = String(error)
      }
      if (this.failure !== undefined) break
    }
    this.#client.close()
  }

  stop(): Promise<void> {
    this.#over = true
    return this.done
  }
}

async function askers(sidecar: Sidecar, count: number): Promise<Asker[]> {
  return Promise.all(Array.from({ length: count }, async () => new Asker(await dial(sidecar.port))))
}

test('all threads serve, and take turns as one', async () => {
  await using a = await backend({ body: 'a' })
  await using b = await backend({ body: 'b' })
  await using sidecar = await start(config([`${a.address} weight=3`, b.address]))
  const clients = await askers(sidecar, 32)
  await eventually('enough was asked', () => clients.every(({ answered }) => answered >= 20))
  await Promise.all(clients.map((client) => client.stop()))
  assert.deepEqual([...new Set(clients.map(({ thread }) => thread))].sort(), [0, 1, 2, 3])
  assert.deepEqual(
    clients.flatMap(({ failure }) => failure ?? []),
    [],
  )
  await nothingInFlight(sidecar)
  const peers = await peersOf(sidecar)
  const [first, second] = [peers[a.address]!.selected, peers[b.address]!.selected]
  const asked = clients.reduce((sum, { answered }) => sum + answered, 0)
  assert.equal(first.total + second.total, asked)
  assert.ok(Math.abs(first.total - 3 * second.total) <= 3, `${first.total} and ${second.total}`)
  // What clients count in the zones of servers and connections is one view too, from any thread.
  const zone = await sidecar.json<{ requests: object }>('/status/http/server_zones/front')
  assert.deepEqual(zone.requests, { total: asked, processing: 0, discarded: 0 })
  const inside = await fetch(`${sidecar.url}/status/http/upstreams/u/peers/`)
  assert.deepEqual(Object.keys((await inside.json()) as object), [a.address, b.address])
  const { accepted } = await sidecar.json<{ accepted: number }>('/status/connections')
  assert.equal(accepted, 33)
})

test('max_conns is exact over all threads, with clients that leave', async () => {
  let now = 0
  let peak = 0
  await using a = await backend(async (exchange) => {
    // Read late, a request may be over already, and another one in its place. Its end is read a turn after its data.
    await turn()
    await turn()
    if (exchange.inbox.ended !== undefined) return
    now += 1
    peak = Math.max(peak, now)
    await Promise.race([sleep(20), exchange.gone])
    // Before the answer: the slot may be taken again as soon as it has come.
    now -= 1
    await exchange.reply({ body: 'a' })
  })
  await using sidecar = await start(config([`${a.address} max_conns=10`]))
  const ask = async (leave: boolean) => {
    const client = await dial(sidecar.port)
    await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    if (leave) {
      await sleep(5)
      client.reset()
      return 'left'
    }
    const reply = await client.reply()
    client.close()
    return String(reply.status)
  }
  const counts = new Map<string, number>()
  for (let round = 0; round < 10; round++) {
    const all = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i % 8 === 0)))
    for (const status of all) counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  assert.equal(peak, 10)
  assert.deepEqual([...counts.keys()].sort(), ['200', '502', 'left'])
  await eventually(
    'nothing is in progress',
    async () => (await peersOf(sidecar))[a.address]!.selected.current === 0,
  )
})

test('a thread that dies costs the requests in it, is replaced, and what it held is given back', async () => {
  await using a = await backend({ after: 3, body: 'a' })
  await using b = await backend({ after: 3, body: 'b' })
  await using sidecar = await start(config([a.address, b.address], 'least_conn;'), mortal)
  // An exception in thread 0, then thread 1 ended from outside, then 2 and 3 likewise, each under load.
  for (let dead = 0; dead < threads; dead++) {
    const clients = await askers(sidecar, 40)
    await eventually('all have been answered', () => clients.every(({ answered }) => answered >= 3))
    assert.ok(clients.some(({ thread }) => thread === dead))
    sidecar.signal('SIGUSR2')
    await eventually('its clients are cut off', () =>
      clients.every(({ thread, failure }) => thread !== dead || failure !== undefined),
    )
    await replaced(sidecar, dead + 1, threads)
    const others = clients.filter(({ thread }) => thread !== dead)
    const before = others.map(({ answered }) => answered)
    await eventually('the others go on', () => others.every(({ answered }, i) => answered > before[i]! + 3))
    await Promise.all(clients.map((client) => client.stop()))
    assert.deepEqual(
      others.flatMap(({ failure }) => failure ?? []),
      [],
    )
    await nothingInFlight(sidecar)
  }
  const { active } = await sidecar.json<{ active: number }>('/status/connections')
  assert.equal(active, 0)
  assert.match(sidecar.stderr, /\[alert\] .* thread 0 died: Error: asked for by a test/)
  // The successor serves like the others, with what all know.
  const again = await askers(sidecar, 40)
  await eventually('all are answered', () => again.every(({ answered }) => answered >= 3))
  await Promise.all(again.map((client) => client.stop()))
  assert.deepEqual([...new Set(again.map(({ thread }) => thread))].sort(), [0, 1, 2, 3])
})

test('reloads under load lose no request on any thread, and removed peers see no more', async () => {
  await using a = await backend({ after: 2, body: 'a' })
  await using b = await backend({ after: 2, body: 'b' })
  await using c = await backend({ after: 2, body: 'c' })
  const groups = [
    [a.address, b.address],
    [c.address],
    // More than there was room for: the zone has to move.
    [a.address, b.address, ...Array.from({ length: 40 }, (_, i) => `127.0.0.1:${1 + i} down`)],
    [b.address],
  ]
  await using sidecar = await start(config(groups[0]!))
  const clients = await askers(sidecar, 24)
  for (let round = 1; round <= 12; round++) {
    await sidecar.reload(config(groups[round % groups.length]!))
    await sleep(50)
  }
  await sidecar.reload(config([c.address]))
  await eventually(
    'the removed have ended their calls',
    async () => Object.keys(await peersOf(sidecar)).length === 1,
  )
  const seen = a.requests.length + b.requests.length
  await sleep(100)
  await Promise.all(clients.map((client) => client.stop()))
  assert.deepEqual(
    clients.flatMap(({ failure }) => failure ?? []),
    [],
  )
  assert.equal(a.requests.length + b.requests.length, seen)
  await eventually(
    'nothing is in flight',
    async () => (await peersOf(sidecar))[c.address]!.selected.current === 0,
  )
})

test('an address that another program has is refused, though threads could share it', async () => {
  await using a = await backend({ body: 'a' })
  await using sidecar = await start(config([a.address]))
  const second = start(config([a.address]).replaceAll('PORT', String(sidecar.port)))
  await assert.rejects(second, new RegExp(`bind\\(\\) to 127.0.0.1:${sidecar.port} failed \\(98`))
  await sidecar.rewrite(`worker_processes ${threads}; http { server { listen 127.0.0.1:${a.port}; } }`)
  sidecar.signal('SIGHUP')
  await sidecar.logged(/98: Address already in use/)
  await sidecar.logged(/generation 1 goes on/)
  const client = await dial(sidecar.port)
  assert.equal((await client.ask('/')).text, 'a')
  client.close()
})

test('all threads drain: requests end, tunnels are closed, and the logs are whole', async () => {
  await using a = await backend({ after: 300, body: 'a' })
  await using sidecar = await start(
    config([a.address]).replace('access_log off', 'access_log access.log combined'),
  )
  const clients = await Promise.all(Array.from({ length: 16 }, () => dial(sidecar.port)))
  const replies = clients.map((client) => client.ask('/'))
  await eventually('all are under way', () => a.requests.length === 16)
  sidecar.signal('SIGTERM')
  for (const reply of await Promise.all(replies)) {
    assert.equal(reply.status, 200)
    assert.equal(reply.header('connection'), 'close')
  }
  for (const client of clients) client.close()
  assert.deepEqual(await sidecar.exited, { code: 0, signal: null })
  const lines = readFileSync(`${sidecar.folder}/access.log`, 'latin1').trimEnd().split('\n')
  assert.equal(lines.length, 16)
  assert.ok(lines.every((line) => line.includes('"GET / HTTP/1.1" 200 1')))
})

test('peers are probed once an interval however many threads serve, and all of them obey', async () => {
  let healthy = true
  await using a = await backend(async (exchange) => {
    await exchange.reply(exchange.target === '/health' && !healthy ? { status: 503 } : { body: 'a' })
  })
  await using b = await backend({ body: 'b' })
  const probe =
    'upstream_probe health uri=/health interval=100ms fails=2 passes=2; proxy_next_upstream http_503;'
  await using sidecar = await start(
    config([a.address, b.address]).replace('proxy_pass http://u;', `proxy_pass http://u; ${probe}`),
  )
  const probes = () => a.targets.filter((target) => target === '/health').length
  const [from, began] = [probes(), performance.now()]
  const clients = await askers(sidecar, 24)
  await eventually('it is probed again and again', () => probes() - from >= 10)
  const expected = (performance.now() - began) / 100
  const count = probes() - from
  assert.ok(count <= expected + 2, `${count} probes in ${expected} intervals`)
  healthy = false
  await eventually('it is out', async () => (await peersOf(sidecar))[a.address]!.state === 'unhealthy')
  // What was picked before is on its way for a moment.
  await eventually('nothing is under way to it', async () => {
    return (await peersOf(sidecar))[a.address]!.selected.current === 0
  })
  const seen = a.targets.length - probes()
  await sleep(200)
  assert.equal(a.targets.length - probes(), seen)
  healthy = true
  await eventually('it is asked again', () => a.targets.length - probes() > seen + 10)
  await Promise.all(clients.map((client) => client.stop()))
  assert.deepEqual(
    clients.flatMap(({ failure }) => failure ?? []),
    [],
  )
})
