import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, dial } from '../../support/client.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { echoPeer, type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { timed } from '../../support/undisturbed.ts'
import { until } from '../../support/until.ts'

let one: TcpPeer
let other: TcpPeer
/** As the two above, but it answers after a while. */
let slow: TcpPeer
let sidecar: Sidecar

before(async () => {
  one = await echoPeer()
  other = await echoPeer()
  slow = await tcpPeer(({ socket }) => {
    socket.on('data', (chunk: Buffer) => setTimeout(() => socket.write(chunk), 60))
    socket.on('end', () => socket.end())
  })
  const [a, b, c] = [one, other, slow].map(({ address }) => `server ${address}`)
  sidecar = await start(`
    worker_processes 2;
    stream {
      access_log off;
      map $upstream_addr $load { ${one.address} 1; default 4; }
      upstream round { zone round 64k; ${a} weight=3; ${b}; }
      upstream conns { zone conns 64k; least_conn; ${a}; ${b}; }
      upstream two { zone two 64k; random two least_conn; ${a}; ${b}; }
      upstream hashed { zone hashed 64k; hash $remote_addr consistent; ${a}; ${b}; }
      upstream first { zone first 64k; least_time first_byte; ${a}; ${c}; }
      upstream last { zone last 64k; least_time last_byte best; ${a}; ${c}; }
      upstream connect { zone connect 64k; least_time connect; ${a}; ${b}; }
      upstream loads { zone loads 64k; feedback $load inverse; ${a}; ${b}; }
      upstream full { zone full 64k; ${a} max_conns=3; ${b} max_conns=3; }
      upstream spare { zone spare 64k; server 127.0.0.1:PORT13 max_fails=1 fail_timeout=1s; ${b} backup; }
      upstream split { zone split 64k; split canary=50%; ${a}; ${b} track=canary; }
      upstream slow { zone slow 64k; server 127.0.0.1:PORT13 slow_start=60s max_fails=1 fail_timeout=1s; ${b}; }
      server { listen 127.0.0.1:PORT; proxy_pass round; }
      server { listen 127.0.0.1:PORT2; proxy_pass conns; }
      server { listen 127.0.0.1:PORT3; proxy_pass two; }
      server { listen 127.0.0.1:PORT4; proxy_pass hashed; }
      server { listen 127.0.0.1:PORT5; proxy_pass first; }
      server { listen 127.0.0.1:PORT6; proxy_pass last; }
      server { listen 127.0.0.1:PORT7; proxy_pass connect; }
      server { listen 127.0.0.1:PORT8; proxy_pass loads; }
      server { listen 127.0.0.1:PORT9; proxy_pass full; }
      server { listen 127.0.0.1:PORT10; proxy_pass spare; }
      server { listen 127.0.0.1:PORT11; proxy_pass split; }
      server { listen 127.0.0.1:PORT12; proxy_pass slow; }
    }`)
})

after(async () => {
  await sidecar?.[Symbol.asyncDispose]()
  await Promise.all([one, other, slow].map((each) => each[Symbol.asyncDispose]()))
})

/** A session that has been through once, and is left open. */
async function session(word: string, from?: string): Promise<Client> {
  const client = await dial(sidecar.ports[word]!, from)
  await client.write('?')
  assert.equal(`${await client.inbox.take(1)}`, '?')
  return client
}

async function ended(clients: readonly Client[]): Promise<void> {
  for (const client of clients) client.end()
  await Promise.all(clients.map(({ closed }) => closed))
  await until(() => [one, other, slow].every(({ open }) => open === 0))
}

/** How many of so many sessions, each begun when the one before has ended, came to each of two peers. */
async function shares(
  word: string,
  count: number,
  peers: readonly [TcpPeer, TcpPeer],
): Promise<[number, number]> {
  const before = peers.map(({ accepted }) => accepted)
  for (let i = 0; i < count; i++) {
    const client = await session(word)
    client.end()
    await client.closed
  }
  const [first = 0, second = 0] = peers.map(({ accepted }, i) => accepted - before[i]!)
  assert.equal(first + second, count)
  return [first, second]
}

test('sessions go by weight in turn, whichever thread takes them', async () => {
  assert.deepEqual(await shares('PORT', 12, [one, other]), [9, 3])
})

for (const [word, method] of [
  ['PORT2', 'least_conn'],
  ['PORT3', 'random two least_conn'],
] as const) {
  test(`${method} counts the sessions that are open, in all threads`, async () => {
    const clients: Client[] = []
    for (let i = 0; i < 8; i++) clients.push(await session(word))
    assert.deepEqual([one.open, other.open], [4, 4])
    await ended(clients)
  })
}

test('a hash of the address sends a client to the same peer each time', async () => {
  for (const from of ['127.0.0.1', '127.0.0.7', '127.0.0.9']) {
    const before = [one.accepted, other.accepted]
    for (let i = 0; i < 4; i++) await ended([await session('PORT4', from)])
    const now = [one.accepted, other.accepted].map((count, i) => count - before[i]!).sort()
    assert.deepEqual(now, [0, 4])
  }
})

test(
  'least_time prefers whose first byte, or whose end, comes sooner',
  timed(async () => {
    await shares('PORT5', 6, [one, slow])
    const [fast, late] = await shares('PORT5', 30, [one, slow])
    assert.ok(fast >= 24, `${fast} and ${late}`)
    await shares('PORT6', 4, [one, slow])
    const [best, worst] = await shares('PORT6', 20, [one, slow])
    assert.ok(best >= 18, `${best} and ${worst}`)
  }),
)

test('least_time connect needs no byte of the peer', async () => {
  const clients = await Promise.all(Array.from({ length: 8 }, () => session('PORT7')))
  assert.ok(one.open > 0 && other.open > 0)
  await ended(clients)
  const text = await (
    await fetch(`${sidecar.admin}/status/stream/upstreams/connect/peers/${one.address}/health/`)
  ).text()
  assert.match(text, /"connect_time": ?\d/)
})

test('feedback goes by a value that is known when a session ends', async () => {
  await shares('PORT8', 4, [one, other])
  const [light, heavy] = await shares('PORT8', 40, [one, other])
  assert.ok(light >= 24 && heavy > 0, `${light} and ${heavy}`)
})

test('max_conns holds over all threads, and a place that is free again is taken', async () => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => session('PORT9')))
  assert.deepEqual([one.open, other.open], [3, 3])
  for (let i = 0; i < 4; i++) assert.equal(await (await dial(sidecar.ports['PORT9']!)).closed, 'fin')
  clients[0]!.end()
  await clients[0]!.closed
  await until(() => one.open + other.open === 5)
  clients[0] = await session('PORT9')
  await ended(clients)
})

test('a peer that can be connected to again has its sessions back, at once or by and by', async () => {
  const before = other.accepted
  for (const word of ['PORT10', 'PORT10', 'PORT12', 'PORT12']) await ended([await session(word)])
  assert.equal(other.accepted - before, 4)
  await using back = await echoPeer(sidecar.ports['PORT13'])
  await wait(1050)
  // The backup is not asked any more.
  assert.deepEqual(await shares('PORT10', 3, [back, other]), [3, 0])
  // The first of these is the one that finds that it is back.
  const [ramped, rest] = await shares('PORT12', 12, [back, other])
  assert.ok(ramped >= 1 && ramped <= 2, `${ramped} and ${rest}`)
  const state = await sidecar.json(`/status/stream/upstreams/slow/peers/${back.address}/state`)
  assert.equal(state, 'recovering')
  await until(() => back.open === 0)
})

test('sessions are split over tracks', async () => {
  const [stable, canary] = await shares('PORT11', 40, [one, other])
  assert.ok(stable > 8 && canary > 8, `${stable} and ${canary}`)
})

test('each group has its peers’ states in the status tree', async () => {
  const tree = await sidecar.json<{
    [group: string]: { peers: { [peer: string]: { selected: { total: number; current: number } } } }
  }>('/status/stream/upstreams/')
  assert.deepEqual(Object.keys(tree).slice(0, 3), ['round', 'conns', 'two'])
  const { total, current } = tree['round']!.peers[one.address]!.selected
  assert.deepEqual([total, current], [9, 0])
})
