// Configurations from nginx's and Angie's guides, unchanged but for the addresses: each named server stands at a
// loopback address of its own, all at one port.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Script } from '../../support/backend.ts'
import { ask, dial } from '../../support/client.ts'
import { at, inFront, letters, peers, port } from '../../support/configured.ts'
import { eventually, type Lab, spread } from '../../support/invariants.ts'
import { seed, tested } from '../../support/seed.ts'

test('weights 5, 1, 1 spread the heavy peer over the round', async () => {
  await using three = await peers(3)
  await using lab = await inFront(await seed('weighted', at), three)
  assert.equal(await letters(lab, 14), 'AABACAAAABACAA')
  await lab.settle(14)
})

test('weights 5, 3, 2 give the sequence of the smooth round', async () => {
  await using three = await peers(3)
  const location = 'location / { proxy_pass http://backend_servers; }'
  await using lab = await inFront(await seed('weights', at), three, location)
  assert.equal(await letters(lab, 20), 'ABCAABACBAABCAABACBA')
  await lab.settle(20)
})

test('a URI stays with its peer, and keeps it when the other one goes', async () => {
  await using two = await peers(2)
  await using lab = await inFront(await seed('hash', at), two)
  const uris = Array.from({ length: 24 }, (_, i) => `/page/${i}?x=${i * 7}`)
  const place = async () => {
    const found = new Map<string, string>()
    for (const uri of uris) found.set(uri, (await ask(lab.port, uri)).text)
    return found
  }
  const first = await place()
  assert.deepEqual(await place(), first)
  assert.deepEqual([...new Set(first.values())].sort(), ['A', 'B'])

  await two.list[1]!.stop()
  const alone = await place()
  for (const [uri, peer] of first) if (peer === 'A') assert.equal(alone.get(uri), 'A')
  assert.deepEqual([...new Set(alone.values())], ['A'])
  await lab.settle(72)
})

test('a client stays with its peer by the first three octets, also when another peer is marked down', async () => {
  await using three = await peers(3)
  const text = await seed('ip-hash', at)
  const clients = Array.from({ length: 16 }, (_, i) => `127.0.${i}.5`)
  const place = async (lab: Lab, addresses: readonly string[]) => {
    const found: string[] = []
    for (const address of addresses) {
      using client = await dial(lab.port, address)
      found.push((await client.ask('/')).text)
    }
    return found
  }
  await using lab = await inFront(text, three)
  const places = await place(lab, clients)
  assert.deepEqual([...new Set(places)].sort(), ['A', 'C'])
  assert.deepEqual(await place(lab, clients), places)
  const neighbours = clients.map((address) => address.replace(/5$/, '77'))
  assert.deepEqual(await place(lab, neighbours), places)
  await lab.settle(48)

  await using whole = await inFront(text.replace(' down;', ';'), three)
  const all = await place(whole, clients)
  assert.ok(all.includes('B'))
  all.forEach((peer, i) => {
    if (peer !== 'B') assert.equal(places[i], peer, `${clients[i]} was moved`)
  })
})

test('the fewest connections are counted per unit of weight, and idle ones do not count', async () => {
  await using two = await peers(2)
  const gates: (() => void)[] = []
  const hold =
    (letter: string): Script =>
    async (x) => {
      if (x.target === '/hold') await new Promise<void>((open) => gates.push(open))
      await x.reply({ body: letter })
    }
  two.list[0]!.script = hold('A')
  two.list[1]!.script = hold('B')
  const servers = `server 127.0.0.1:${port} weight=2; server 127.0.0.2:${port};`
  await using lab = await inFront(`upstream backend { zone backend 1m; least_conn; ${servers} }`, two)
  assert.equal(spread([...(await letters(lab, 6))]), 'A: 4, B: 2')
  const held = Array.from({ length: 6 }, () => ask(lab.port, '/hold'))
  await eventually('all held', () => gates.length === 6)
  const status = await lab.peers('backend')
  const [a, b] = [status[`127.0.0.1:${port}`], status[`127.0.0.2:${port}`]]
  assert.deepEqual([a?.selected.current, b?.selected.current], [4, 2])
  for (const open of gates) open()
  assert.equal(spread((await Promise.all(held)).map((reply) => reply.text)), 'A: 4, B: 2')
  await lab.settle(12)
})

test('of two random peers the less busy one is taken', async () => {
  await using three = await peers(3)
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  for (const [i, one] of three.list.entries()) {
    one.script = async (x) => {
      if (x.target === '/hold') await gate
      await x.reply({ body: 'ABC'[i]! })
    }
  }
  await using lab = await inFront(await seed('random-two', at), three)
  const said = await letters(lab, 90)
  for (const letter of 'ABC') assert.ok(said.split(letter).length - 1 >= 12, `${letter} in ${said}`)

  const held = ask(lab.port, '/hold')
  await eventually('one held', () => three.list.some((one) => one.busy === 1))
  const busy = 'ABC'[three.list.findIndex((one) => one.busy === 1)]!
  assert.ok(!(await letters(lab, 30)).includes(busy))
  open()
  assert.equal((await held).text, busy)
  await lab.settle(121)
})

test('connections are kept for reuse, and no more than 32 lie idle', async () => {
  await using one = await peers(1)
  await using lab = await inFront(await seed('keepalive', at), one, await seed('keepalive-location', at))
  const [a] = one.list
  assert.equal(await letters(lab, 5, '/api/x'), 'AAAAA')
  assert.equal(a!.connections, 1)
  assert.deepEqual(a!.requests[0]!.head.all('connection'), [])
  assert.equal(a!.requests[0]!.version, 'HTTP/1.1')

  a!.script = async (x) => {
    await eventually('all 40 are here', () => a!.requests.length === 45)
    await x.reply({ body: 'A' })
  }
  await Promise.all(Array.from({ length: 40 }, () => ask(lab.port, '/api/y')))
  await eventually('8 of 40 are closed', () => a!.open === 32)
  assert.equal(await lab.sidecar.json<number>('/status/http/upstreams/backend/keepalive'), 32)
  await lab.settle(45)
})

test('a response goes through the buffers whole, and its head must fit into 4k', async () => {
  await using one = await peers(1)
  const block = `upstream backend { server 127.0.0.1:${port}; }`
  await using lab = await inFront(block, one, await seed('buffering-location', at))
  const body = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251))
  one.list[0]!.script = (x) =>
    x.reply(x.target === '/api/head' ? { headers: { 'X-Long': 'x'.repeat(5000) } } : { body })
  using slow = await dial(lab.port)
  await slow.write('GET /api/body HTTP/1.1\r\nHost: x\r\n\r\n')
  slow.inbox.pause()
  await sleep(100)
  assert.ok((await slow.reply()).body.equals(body))
  assert.equal((await ask(lab.port, '/api/head')).status, 502)
  assert.deepEqual((await lab.record(2)).reasons, ['header_overflow'])
  await lab.settle(2)
})

test('the path goes on as it is, or with its prefix replaced, to the address that stands there', async () => {
  await using one = await peers(1)
  const plain = await seed('proxy-pass', at)
  const moved = plain.replace('/api/', '/old/').replace(String(port), `${port}/v2/`)
  await using lab = await inFront('', one, `${plain}\n${moved}`)
  await ask(lab.port, '/api/users?page=1')
  await ask(lab.port, '/old/users?page=1')
  assert.deepEqual(one.list[0]!.targets, ['/api/users?page=1', '/v2/users?page=1'])
  assert.deepEqual(one.list[0]!.requests[0]!.head.all('host'), [`127.0.0.1:${port}`])
  await lab.settle(2)
})

const methods = {
  hash: 'hash $request_uri consistent',
  ip_hash: 'ip_hash',
  random: 'random two',
  least_time: 'least_time header',
}
const refused: readonly (readonly [keyof typeof methods, string])[] = [
  ['least_time', 'weight=5'],
  ['least_time', 'slow_start=30s'],
  ['hash', 'backup'],
  ['ip_hash', 'backup'],
  ['random', 'backup'],
]

test('a method refuses the parameters that it would not obey', async () => {
  await Promise.all(
    refused.map(async ([method, parameter]) => {
      const servers = `server 127.0.0.1:1;\nserver 127.0.0.2:1 ${parameter};`
      const { code, said } = await tested(
        `http {\nupstream backend {\n${methods[method]};\n${servers}\n}\n}\n`,
      )
      assert.equal(code, 1)
      const text = `[emerg] balancing method does not support parameter "${parameter}" in /evenkeel.conf:5`
      assert.ok(said.includes(text), said)
    }),
  )
})

test('of several methods the last one holds, with a warning', async () => {
  await using two = await peers(2)
  const block = `upstream backend { least_conn; hash $request_uri; server 127.0.0.1:${port}; server 127.0.0.2:${port}; }`
  await using lab = await inFront(block, two)
  assert.match(lab.sidecar.stderr, /\[warn\] load balancing method redefined in /)
  assert.equal(new Set(await letters(lab, 6, '/same')).size, 1)
  await lab.settle(6)
})
