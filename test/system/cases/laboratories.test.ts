// Experiments that were written for nginx, with their own configurations. The peers' ports are the ones that stand
// in these, since the placement of a key depends on the text; so all of them are in this one file, one after another,
// at a loopback address that nothing else is likely to use with these ports.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend, type Exchange } from '../../support/backend.ts'
import { ask, type Client, dial, type Reply } from '../../support/client.ts'
import { eventually, Lab, spread } from '../../support/invariants.ts'
import { seed, tested } from '../../support/seed.ts'
import { start } from '../../support/sidecar.ts'

/** A peer that can be told to fail, and that holds requests for `/hold/…` until their gate is opened. */
interface Peer {
  readonly label: 'A' | 'B'
  readonly backend: Backend
  status: number
  active: number
}

const host = '127.0.0.80'
const gates = new Map<string, () => void>()
let a: Peer
let b: Peer
let control: Backend

async function peer(label: 'A' | 'B', port: number): Promise<Peer> {
  const self: Peer = { label, backend: await backend({}, { host, port }), status: 200, active: 0 }
  self.backend.script = async (x: Exchange) => {
    self.active += 1
    const { status } = self
    if (x.target.startsWith('/hold/')) await new Promise<void>((open) => gates.set(x.target, open))
    self.active -= 1
    const body = JSON.stringify({ connection: x.connection, path: x.target, peer: label })
    await x.reply({ status, headers: { 'Content-Type': 'application/json' }, body })
  }
  return self
}

before(async () => {
  a = await peer('A', 8081)
  b = await peer('B', 8082)
  control = await backend(
    async (x) => {
      const { pathname, searchParams } = new URL(x.target, 'http://control')
      if (pathname === '/fail') {
        const told = searchParams.get('peer') === 'A' ? a : b
        told.status = Number(searchParams.get('status'))
      }
      if (pathname === '/release') gates.get(searchParams.get('path') ?? '')?.()
      const counts = { A: a.backend.requests.length, B: b.backend.requests.length }
      await x.reply({ body: JSON.stringify({ counts, active: { A: a.active, B: b.active } }) })
    },
    { host, port: 8083 },
  )
})

after(async () => {
  for (const one of [a.backend, b.backend, control]) await one.stop()
})

beforeEach(() => {
  a.status = 200
  b.status = 200
  gates.clear()
})

const places = {
  'backend:': `${host}:`,
  'listen 8080': 'listen 127.0.0.1:PORT',
  'listen 8084': 'listen 127.0.0.1:PORT2',
  '/tmp/error.log': 'error.log',
}

async function laboratory(name: string): Promise<Lab> {
  return new Lab(await start(await seed(name, places)), [a.backend, b.backend, control])
}

interface Said {
  readonly peer: string
  readonly connection: number
}

function said(reply: Reply): Said {
  // The peers above answer so.
  return JSON.parse(reply.text) as Said
}

async function chosen(lab: Lab, target: string, headers: Record<string, string> = {}): Promise<string> {
  const reply = await ask(lab.port, target, { headers })
  assert.equal(reply.status, 200)
  return said(reply).peer
}

async function told(
  lab: Lab,
  target: string,
): Promise<{ counts: Record<string, number>; active: Record<string, number> }> {
  const reply = await ask(lab.port, `/control/${target}`)
  assert.equal(reply.status, 200)
  // The control peer answers so.
  return JSON.parse(reply.text) as { counts: Record<string, number>; active: Record<string, number> }
}

test('a peer that holds a request is avoided, and three held ones lie 2 to 1 on weights 2 and 1', async () => {
  await using lab = await laboratory('lab-least-conn')
  const held = chosen(lab, '/least/hold/first')
  await eventually('one request held', () => a.active + b.active === 1)
  const occupied = a.active === 1 ? 'A' : 'B'
  const quick: string[] = []
  for (let i = 0; i < 6; i++) quick.push(await chosen(lab, '/least/quick'))
  assert.equal(spread(quick), occupied === 'A' ? 'B: 6' : 'A: 6')
  await told(lab, 'release?path=/hold/first')
  assert.equal(await held, occupied)
  assert.deepEqual((await told(lab, 'state')).active, { A: 0, B: 0 })

  const three: Promise<string>[] = []
  for (let i = 0; i < 3; i++) {
    three.push(chosen(lab, `/weighted/hold/w${i}`))
    await eventually(`${i + 1} requests held`, () => a.active + b.active === i + 1)
  }
  assert.deepEqual((await told(lab, 'state')).active, { A: 2, B: 1 })
  for (let i = 0; i < 3; i++) await told(lab, `release?path=/hold/w${i}`)
  assert.equal(spread(await Promise.all(three)), 'A: 2, B: 1')
  await lab.settle(undefined, { seen: false })
})

test('each method decides as it says, and the address in the header is that of the peer that answered', async () => {
  await using lab = await laboratory('lab-methods')
  const port = { A: ':8081', B: ':8082' } as Record<string, string>
  const get = async (target: string, headers: Record<string, string> = {}) => {
    const reply = await ask(lab.port, target, { headers })
    assert.equal(reply.status, 200)
    const { peer } = said(reply)
    assert.ok(
      reply.header('x-upstream')?.endsWith(port[peer]!),
      `${peer} is not at ${reply.header('x-upstream')}`,
    )
    return { peer, client: reply.header('x-peer') }
  }
  const many = async (
    count: number,
    target: (i: number) => string,
    headers: (i: number) => Record<string, string>,
  ) => {
    const seen = []
    for (let i = 0; i < count; i++) seen.push(await get(target(i), headers(i)))
    return seen
  }
  const none = () => ({})

  const round = await many(12, () => '/round/item', none)
  assert.equal(round.map((one) => one.peer).join(''), 'ABABABABABAB')
  const weighted = await many(12, () => '/weighted/item', none)
  assert.equal(spread(weighted.map((one) => one.peer)), 'A: 8, B: 4')

  const sticky = await many(
    8,
    () => '/sticky/item',
    (i) => ({ 'X-Forwarded-For': `192.0.2.${i + 1}` }),
  )
  assert.equal(new Set(sticky.map((one) => one.peer)).size, 1)
  assert.deepEqual([...new Set(sticky.map((one) => one.client))], ['127.0.0.1'])

  const keys = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta']
  const placed = await many(12, (i) => `/key/item?key=${keys[i % 6]}`, none)
  const peers = placed.map((one) => one.peer)
  assert.deepEqual(peers.slice(6), peers.slice(0, 6))
  // What an implementation of nginx's ring by other means gives for these two servers.
  assert.equal(peers.slice(0, 6).join(''), 'ABBBAA')
  await lab.settle(undefined, { seen: false })
})

test('passive health counts what the configuration lists, and asks nobody by itself', async () => {
  await using lab = await laboratory('lab-passive')
  const call = async (target: string) => {
    const reply = await ask(lab.port, target)
    const attempts = reply.header('x-attempts')
    return { status: reply.status, attempts, upstream: reply.header('x-upstream'), peer: said(reply).peer }
  }
  await told(lab, 'fail?peer=A&status=503')

  // A 503 that is not listed is an answer like any other.
  const plain = []
  for (let i = 0; i < 6; i++) plain.push(await call('/plain'))
  assert.equal(spread(plain.map((one) => String(one.status))), '200: 3, 503: 3')
  assert.equal(spread(plain.map((one) => String(one.attempts))), '200: 3, 503: 3')

  // Where it is listed, the request goes on to the other peer.
  let first = await call('/passive')
  if (first.attempts !== '503, 200') first = await call('/passive')
  assert.deepEqual(first, {
    status: 200,
    attempts: '503, 200',
    upstream: `${host}:8081, ${host}:8082`,
    peer: 'B',
  })

  // Set aside, the peer hears nothing: neither requests nor probes.
  const before = a.backend.requests.length
  for (let i = 0; i < 4; i++) {
    const { peer, attempts } = await call('/passive')
    assert.deepEqual({ peer, attempts }, { peer: 'B', attempts: '200' })
  }
  await sleep(400)
  assert.equal((await told(lab, 'state')).counts['A'], before)

  // It comes back by a request of a client.
  await told(lab, 'fail?peer=A&status=200')
  let back = await call('/passive')
  await eventually('a request reaches the peer again', async () => {
    back = await call('/passive')
    return back.peer === 'A'
  })
  assert.equal(back.status, 200)

  // Alone in its group it is asked whatever it answered, and its own answer is passed on.
  await told(lab, 'fail?peer=A&status=503')
  const asked = a.backend.requests.length
  for (let i = 0; i < 2; i++) {
    const { status, attempts, peer } = await call('/single')
    assert.deepEqual({ status, attempts, peer }, { status: 503, attempts: '503', peer: 'A' })
  }
  assert.equal(a.backend.requests.length, asked + 2)
  await lab.settle(undefined, { seen: false })
})

test('an active check by the word of another product is refused', async () => {
  const { code, said } = await tested(await seed('lab-active', { ...places, PORT: '8080' }))
  assert.equal(code, 1)
  assert.match(said, /\[emerg\] unknown directive "health_check" in /)
})

test('one client connection is split by path where HTTP is read, and kept whole where it is not', async () => {
  await using lab = await laboratory('lab-layers')
  const exchange = async (client: Client, path: string) => {
    const reply = await client.ask(path)
    assert.equal(reply.status, 200)
    return said(reply)
  }
  {
    using client = await dial(lab.port)
    const peers: string[] = []
    for (const path of ['/a', '/b', '/a', '/b']) peers.push((await exchange(client, path)).peer)
    assert.equal(peers.join(''), 'ABAB')
  }
  const whole: string[] = []
  for (let i = 0; i < 4; i++) {
    using client = await dial(lab.sidecar.ports['PORT2']!)
    const first = await exchange(client, '/a')
    const second = await exchange(client, '/b')
    assert.deepEqual([second.peer, second.connection], [first.peer, first.connection])
    whole.push(first.peer)
  }
  assert.equal(spread(whole), 'A: 2, B: 2')
  await lab.settle(undefined, { seen: false })
})
