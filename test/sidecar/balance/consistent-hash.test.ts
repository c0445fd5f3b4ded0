import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { crc32 } from 'node:zlib'
import { ConsistentHash } from '../../../sidecar/balance/consistent-hash.ts'
import { maxRingPoints, Ring, ringOf, ringPoints } from '../../../sidecar/balance/ring.ts'
import { ask, type PeerSketch, peers, spread, turns } from '../../support/peers.ts'

setFlagsFromString('--expose-gc')
// The collector, which has no other name without a flag of the command line.
const collect = runInNewContext('gc') as () => void

const three: PeerSketch[] = [
  { server: '127.0.0.1:19501' },
  { server: '127.0.0.1:19502' },
  { server: '127.0.0.1:19503', weight: 2 },
]

/** A balancer whose key is set from outside. */
function keyed(sketches: readonly PeerSketch[]) {
  let key = ''
  const list = peers(sketches)
  const balancer = new ConsistentHash(list, () => key)
  const place = (of: string, ready?: (peer: { readonly name: string }) => boolean) => {
    key = of
    return balancer.pick(ask(ready))?.name
  }
  return { list, balancer, place }
}

test('places keys as nginx does', () => {
  const { place } = keyed(three)
  assert.equal(Array.from('abcdef123456', (key) => place(key)).join(' '), 'b b c c a c c c a c b c')
})

test('has its three smallest points where nginx has them', () => {
  const ring = new Ring(
    three.map((sketch) => ({ server: '', weight: 1, ...(typeof sketch === 'object' ? sketch : {}) })),
  )
  assert.equal(ring.hashes.length, 640)
  assert.deepEqual([...ring.hashes.slice(0, 3)], [5209269, 30887289, 31870362])
  assert.deepEqual([...ring.owners.slice(0, 3)], [2, 2, 0])
})

test('parts host and port as written, and places points by the rule', () => {
  const split: readonly (readonly [string, string, string])[] = [
    ['127.0.0.1:8081', '127.0.0.1', '8081'],
    ['backend1.example.com', 'backend1.example.com', ''],
    ['backend1.example.com:', 'backend1.example.com', ''],
    ['[::1]:80', '[::1]', '80'],
    ['[fe80::1]', '[fe80::1]', ''],
    ['unix:/run/app.sock', '/run/app.sock', ''],
    ['UNIX:/run/app:80', '/run/app:80', ''],
  ]
  for (const [server, host, port] of split) {
    const expected: number[] = []
    let before = Buffer.alloc(4)
    for (let i = 0; i < 160; i++) {
      const hash = crc32(Buffer.concat([Buffer.from(`${host}\0${port}`), before]))
      expected.push(hash)
      before = Buffer.alloc(4)
      before.writeUInt32LE(hash)
    }
    const ring = new Ring([{ server, weight: 1 }])
    assert.deepEqual(
      [...ring.hashes],
      [...new Set(expected)].sort((a, b) => a - b),
      server,
    )
  }
})

test('keeps the first in order of points that coincide', () => {
  const ring = new Ring([
    { server: '10.0.0.1:80', weight: 1 },
    { server: '10.0.0.1:80', weight: 2 },
  ])
  assert.equal(ring.hashes.length, 320)
  assert.equal(ring.owners.filter((owner) => owner === 0).length, 160)
})

test('moves only the keys of a server that goes, and only to the new one where one comes', () => {
  const servers = Array.from({ length: 6 }, (_, i) => ({ server: `10.0.0.${i + 1}:80` }))
  const before = keyed(servers.slice(0, 5))
  const after = keyed(servers)
  let moved = 0
  const keys = 4000
  for (let i = 0; i < keys; i++) {
    const was = before.place(`/item/${i}`)
    const is = after.place(`/item/${i}`)
    if (is === was) continue
    moved += 1
    assert.equal(is, 'f')
  }
  assert.ok(Math.abs(moved / keys - 1 / 6) < 0.05, `${moved} moved`)
})

test('gives the keys of a peer that is out to the next ones on the ring, and leaves all others', () => {
  const { place } = keyed(three)
  for (let i = 0; i < 500; i++) {
    const was = place(`k${i}`)
    const is = place(`k${i}`, ({ name }) => name !== 'c')
    assert.ok(was === 'c' ? is !== 'c' : is === was)
  }
})

test('goes on along the ring at a retry', () => {
  const { hashes, owners } = new Ring([
    { server: '127.0.0.1:19501', weight: 1 },
    { server: '127.0.0.1:19502', weight: 1 },
    { server: '127.0.0.1:19503', weight: 2 },
  ])
  const balancer = new ConsistentHash(peers(three), () => 'a')
  const tried = new Set<string>()
  const asked = ask(({ name }) => !tried.has(name))
  const found = turns(3, () => {
    const peer = balancer.pick(asked)!
    tried.add(peer.name)
    return peer
  })
  const start = hashes.findIndex((hash) => hash >= crc32('a'))
  const order = new Set<string>()
  for (let i = start; order.size < 3; i++) order.add('abc'[owners[i % owners.length]!]!)
  assert.equal(found, [...order].join(' '))
})

test('lets the addresses of one name take turns by their weight', () => {
  const { place } = keyed([
    { server: 'app.example.com:80', weight: 2 },
    { server: 'app.example.com:80', weight: 1 },
  ])
  assert.equal(Array.from({ length: 6 }, () => place('key')).join(' '), 'a b a a b a')
  assert.equal(
    place('key', ({ name }) => name === 'b'),
    'b',
  )
})

test('takes turns for an empty key and where there is nothing to choose', () => {
  const balancer = new ConsistentHash(peers(three), () => '')
  assert.equal(
    turns(4, () => balancer.pick(ask())),
    'c a b c',
  )
  const lone = new ConsistentHash(peers([1]), () => 'key')
  assert.equal(
    spread(3, () => lone.pick(ask())),
    'a: 3',
  )
})

test('tells the arcs of the ring as shares', () => {
  const { list, balancer, place } = keyed(three)
  for (const out of ['', 'c']) {
    const ready = ({ name }: { readonly name: string }) => name !== out
    const shares = balancer.shares(ready, 0)
    const keys = 20_000
    const found = new Map<string, number>()
    for (let i = 0; i < keys; i++) {
      const name = place(`/p/${i}`, ready)!
      found.set(name, (found.get(name) ?? 0) + 1)
    }
    for (const [i, { name }] of list.entries()) {
      assert.ok(Math.abs((found.get(name) ?? 0) / keys - shares[i]!) < 0.015, `${name}: ${shares[i]}`)
    }
  }
})

test('builds eight million points in seconds and picks in less than a millisecond with most servers out', () => {
  const servers = Array.from({ length: 50 }, (_, i) => ({ server: `10.1.0.${i}:8080`, weight: 1000 }))
  assert.equal(ringPoints(servers), 8_000_000)
  assert.ok(ringPoints(servers) <= maxRingPoints)
  const list = peers(servers)
  const last = list[49]
  let key = 0
  const began = performance.now()
  const balancer = new ConsistentHash(list, () => `/k/${key++}`)
  const built = performance.now() - began
  assert.ok(built < 10_000, `${built} ms to build`)
  const picks = 1000
  const from = performance.now()
  for (let i = 0; i < picks; i++) assert.equal(balancer.pick(ask((peer) => peer === last)), last)
  const each = (performance.now() - from) / picks
  assert.ok(each < 1, `${each} ms a pick`)
})

test('moves only the keys of a server that goes where weights are large', () => {
  const servers = Array.from({ length: 50 }, (_, i) => ({ server: `10.2.0.${i}:8080`, weight: 100 }))
  const before = keyed(servers)
  const after = keyed(servers.toSpliced(17, 1))
  const names = new Map(before.list.map(({ name, server }) => [name, server]))
  const left = new Map(after.list.map(({ name, server }) => [name, server]))
  let moved = 0
  const keys = 5000
  for (let i = 0; i < keys; i++) {
    const was = names.get(before.place(`/item/${i}`)!)
    const is = left.get(after.place(`/item/${i}`)!)
    if (was === '10.2.0.17:8080') moved += 1
    else assert.equal(is, was)
  }
  assert.ok(Math.abs(moved / keys - 1 / 50) < 0.01, `${moved} moved`)
})

test('places the points of the same servers once, whatever is made anew around them', () => {
  const servers = Array.from({ length: 20 }, (_, i) => ({ server: `10.3.0.${i}:8080`, weight: 10 }))
  const ring = ringOf(servers)
  assert.equal(ringOf(servers.map((each) => ({ ...each }))), ring)
  assert.notEqual(ringOf(servers.toReversed()), ring)
  const heavier = ringOf(servers.with(3, { server: '10.3.0.3:8080', weight: 11 }))
  assert.ok(heavier.hashes.length > ring.hashes.length)
  assert.deepEqual(ring.hashes, new Ring(servers).hashes)
})

test('forgets a ring that nobody has any more', async () => {
  const servers = [{ server: '10.4.0.1:8080', weight: 1 }]
  const reference = new WeakRef(ringOf(servers))
  // A reference is kept to the end of the turn in which it was made.
  for (let i = 0; i < 3; i++) {
    await turn()
    collect()
  }
  assert.equal(reference.deref(), undefined)
  assert.equal(ringOf(servers).hashes.length, 160)
})

test('tells who has which part of the ring anew when somebody goes or comes back', () => {
  const { list, balancer } = keyed(three)
  const all = () => true
  const some = (peer: { readonly name: string }) => peer.name !== 'c'
  const first = balancer.shares(all, 0)
  const second = balancer.shares(some, 0)
  assert.equal(second[2], 0)
  for (const [i, { name }] of list.entries()) if (name !== 'c') assert.ok(second[i]! > first[i]!)
  assert.deepEqual(balancer.shares(all, 0), first)
  assert.deepEqual(balancer.shares(some, 0), second)
})

test('counts the points that a configuration asks for', () => {
  assert.equal(ringPoints([{ weight: 3 }, {}]), 640)
  assert.ok(ringPoints([{ weight: 100_000 }]) <= maxRingPoints)
  assert.ok(ringPoints([{ weight: 100_001 }]) > maxRingPoints)
})
