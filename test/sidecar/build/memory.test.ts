import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { observe } from '../../../feedback/observe.ts'
import type { SharedZone } from '../../../feedback/zone.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { JoinedMemory } from '../../../sidecar/build/joined-memory.ts'
import { join, prepare, type Running } from '../../../sidecar/build/running.ts'
import { shareMemory } from '../../../sidecar/build/shared-memory.ts'
import { loadText } from '../../../sidecar/config/load.ts'

const options = { prefix: '/tmp', version: '0' }

/** The thread that reads configurations, and one that serves by them in the memory that the first has made. */
class Pair {
  readonly notes: SharedZone[] = []
  readonly memory = new JoinedMemory(0, () => {
    for (const note of this.notes.splice(0)) this.memory.move(note)
  })
  #main: Running | undefined
  #served: Running | undefined

  /** @param upstreams bodies of groups by name */
  async load(upstreams: Readonly<Record<string, string>>): Promise<Running> {
    const groups = Object.entries(upstreams).map(([name, body]) => `upstream ${name} { ${body} }`)
    const loaded = loadText(`http { ${groups.join(' ')} }`, 'test.conf', 'nginx')
    const prepared = await prepare(loaded, options, this.#main, 1)
    this.#main = prepared.commit()
    for (const { balancing } of this.#main.groups.values()) {
      balancing.upstream.zone.onMove = (zone) => this.notes.push(zone)
    }
    // As messages between threads do: the same memory, other objects.
    this.memory.use(structuredClone(shareMemory(prepared.plans, this.#main)))
    this.#served = join(loaded.model, prepared.plans, options, this.memory, this.#served)
    return this.#served
  }
}

function servers(count: number): string {
  return Array.from({ length: count }, (_, i) => `server 127.0.0.1:${1 + i};`).join(' ')
}

/** How often each peer is picked, all answers taking the same time. */
function picks(running: Running, count: number): number[] {
  const { balancing } = running.groups.get('u')!
  const { peers } = balancing.upstream
  const counts = peers.map(() => 0)
  for (let i = 0; i < count; i++) {
    const call = new Call()
    const attempt = new Selection(balancing, call).next()!
    counts[peers.indexOf(attempt.peer!)]! += 1
    attempt.ending = 'ok'
    attempt.peerStatus = 200
    observe(attempt, call, attempt.startedAt + 5)
  }
  return counts
}

for (const method of ['least_time last_byte plain', 'least_time last_byte', 'least_time last_byte best']) {
  test(`${method}: a group that grew while this thread had no request picks all of its peers`, async () => {
    const pair = new Pair()
    const [few, many] = [10, 600]
    await pair.load({ u: `${method}; ${servers(few)}` })
    const running = await pair.load({ u: `${method}; ${servers(many)}` })
    const counts = picks(running, 12_000)
    const late = counts.slice(few).reduce((sum, count) => sum + count, 0)
    assert.ok(late > 12_000 * (1 - few / many) * 0.95, `${late} of 12000 for ${many - few} of ${many} peers`)
  })
}

test('a group that came and grew while this thread read nothing is found where it is', async () => {
  const pair = new Pair()
  await pair.load({ u: servers(2) })
  const running = await pair.load({ u: servers(2), v: servers(3) })
  await pair.load({ u: servers(2), v: servers(300) })
  const { upstream } = running.groups.get('v')!.balancing
  assert.equal(upstream.zone.capacity >= 300, true)
})

test('what is under way in a group that is gone ends well, even if the group had moved before', async () => {
  const pair = new Pair()
  const first = await pair.load({ u: servers(2), v: servers(1) })
  const { balancing } = first.groups.get('u')!
  const call = new Call()
  const attempt = new Selection(balancing, call).next()!
  await pair.load({ u: servers(60), v: servers(1) })
  await pair.load({ v: servers(1) })
  attempt.ending = 'ok'
  observe(attempt, call, attempt.startedAt + 5)
  assert.equal(balancing.upstream.zone.peers.conns[attempt.peer!.index], 0)
})

test('a thread lets go of the memory of groups that are gone', async () => {
  const pair = new Pair()
  const before = new Set<unknown>()
  for (let i = 0; i < 5; i++) {
    const running = await pair.load({ [`u${i}`]: servers(2) })
    before.add(running.groups.get(`u${i}`)!.balancing.upstream.zone)
  }
  assert.equal(before.size, 5)
  // The one in force, and nothing of those before it.
  assert.equal(pair.memory.zones, 1)
})
