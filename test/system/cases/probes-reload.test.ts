// What a reload does to peers that are probed, with clients asking all the while.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Backends, backends } from '../../support/backend.ts'
import { Checked, letters, probedPeers, states } from '../../support/checked.ts'
import { dial } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

/** Peers A, B, C with the program in front of the first two. */
async function three() {
  const checked = ['A', 'B', 'C'].map((letter) => new Checked(letter))
  const list = await backends(checked.map(({ script }) => script))
  const [a, b, c] = checked
  return { list, a: a!, b: b!, c: c! }
}

function config({ list }: Backends, probe: string, { count = 2, main = '' } = {}): string {
  const servers = list.slice(0, count).map(({ address }) => `server ${address};`)
  return `${main}
http {
  access_log off;
  map $upstream_status $good { 200 1; }
  upstream backend { zone backend 64k; ${servers.join(' ')} }
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass http://backend; upstream_probe check uri=/health interval=20ms test=$good ${probe}; }
  }
}`
}

/** Asks from several connections until it is stopped. */
class Load {
  readonly said = new Map<string, number>()
  #over = false
  readonly #clients: Promise<void>[]

  constructor(sidecar: Sidecar, clients = 4) {
    this.#clients = Array.from({ length: clients }, () => this.#ask(sidecar))
  }

  async #ask(sidecar: Sidecar): Promise<void> {
    using client = await dial(sidecar.port)
    while (!this.#over) {
      const { status, text } = await client.ask('/')
      const what = status === 200 ? text : `${status}`
      this.said.set(what, (this.said.get(what) ?? 0) + 1)
    }
  }

  /** What was answered, in order. */
  async stop(): Promise<string> {
    this.#over = true
    await Promise.all(this.#clients)
    return [...this.said.keys()].sort().join(' ')
  }
}

for (const main of ['', 'worker_processes 2;']) {
  const threads = main === '' ? 'one thread' : 'two threads'
  test(`ten reloads bring no request to a dead or an unproven peer, ${threads}`, async () => {
    const { list, a, b, c } = await three()
    await using _ = list
    b.status = 503
    const probe = 'fails=3 passes=2 essential persistent'
    await using sidecar = await start(config(list, probe, { main }))
    await sidecar.logged(/is healthy: probe "check" passed 2 times/)
    await eventually('B is out', async () => (await states(sidecar)) === 'up unhealthy')
    const load = new Load(sidecar)
    for (let i = 0; i < 10; i++) await sidecar.reload()
    await eventually('B is out again', async () => (await states(sidecar)) === 'up unhealthy')
    c.held = true
    await sidecar.reload(config(list, probe, { main, count: 3 }))
    assert.match(await states(sidecar), /^up (?:checking|unhealthy) checking$/)
    await eventually('C has been asked', () => c.probes >= 1)
    await c.answer(200)
    await eventually('that counts', async () => (await probedPeers(sidecar))[2]!.health.probes.count === 1)
    assert.equal((await probedPeers(sidecar))[2]!.state, 'checking')
    assert.equal(await load.stop(), 'A')
    assert.equal(b.requests + c.requests, 0)
    assert.ok(a.requests > 100, `${a.requests}`)

    await c.answer(200)
    await eventually('C is in', async () => (await states(sidecar)).endsWith(' up'))
    await eventually('C answers', async () => (await letters(sidecar, 3)).includes('C'))
    assert.equal(b.requests, 0)
  })
}

test('a peer that is out stays out over a reload, and no other has to prove itself without essential', async () => {
  const { list, a, b } = await three()
  await using _ = list
  await using sidecar = await start(config(list, 'fails=2 passes=2'))
  assert.equal(await letters(sidecar, 2), 'AB')
  b.status = 503
  await eventually('B is out', async () => (await states(sidecar)) === 'up unhealthy')
  const before = b.requests
  a.held = true
  const load = new Load(sidecar)
  for (let i = 0; i < 3; i++) await sidecar.reload()
  assert.equal(await load.stop(), 'A')
  assert.equal(b.requests, before)
  b.status = 200
  await eventually('B is back', async () => (await states(sidecar)) === 'up up')
})

test('with essential alone every peer has to prove itself anew after a reload', async () => {
  const { list, a, b } = await three()
  await using _ = list
  a.held = true
  b.held = true
  await using sidecar = await start(config(list, 'essential timeout=5s'))
  assert.equal(await states(sidecar), 'checking checking')
  assert.equal(await letters(sidecar, 1), '(502)')
  await a.answer(200)
  await eventually('A is in', async () => (await states(sidecar)) === 'up checking')
  assert.equal(await letters(sidecar, 3), 'AAA')
  await sidecar.reload()
  assert.equal(await states(sidecar), 'checking checking')
  assert.match(sidecar.stderr, /is checking: it has to pass its probes after the reload/)
  assert.equal(await letters(sidecar, 1), '(502)')
  await a.answer(200)
  await eventually('A is in again', async () => (await states(sidecar)) === 'up checking')
  assert.equal(a.requests + b.requests, 3)
})

test('probes that a reload takes away take what they found with them', async () => {
  const { list, b } = await three()
  await using _ = list
  b.status = 503
  const text = config(list, '')
  await using sidecar = await start(text)
  await sidecar.logged(/is unhealthy: probe "check" failed 1 time: status 503/)
  assert.equal(await letters(sidecar, 2), 'AA')
  await sidecar.reload(text.replace(/upstream_probe[^;]*;/, ''))
  assert.match(sidecar.stderr, /is healthy: nobody probes it any more/)
  assert.equal(await states(sidecar), 'up up')
  assert.ok((await letters(sidecar, 2)).includes('B'))
  const probes = b.probes
  await letters(sidecar, 20)
  assert.ok(b.probes - probes <= 1, 'nobody asks it')
})
