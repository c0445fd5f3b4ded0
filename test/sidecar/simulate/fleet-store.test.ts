import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { departure } from '../../../feedback/fleet/departure.ts'
import { exchange } from '../../../feedback/fleet/exchange.ts'
import { groupKeys } from '../../../feedback/fleet/keys.ts'
import type { Heard, PeerRecord, Sent, Update } from '../../../feedback/fleet/told.ts'
import { packSent, readHeard } from '../../../feedback/fleet/wire.ts'
import { dice } from '../../../sidecar/simulate/dice.ts'
import { FleetStore } from '../../../sidecar/simulate/fleet-store.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { silent } from '../../support/silent-update.ts'
import { timed } from '../../support/undisturbed.ts'

/*
 * The script that Redis runs, and its twin that simulations have: what the one answers the other has to. The twin's clock
 * is set by the real answer, so times are compared as well.
 */

const keep = 60_000
const ttl = 150

let server: RedisServer
let redis: Redis

before(async () => {
  server = await redisServer()
  redis = new Redis(server.port, '127.0.0.1', { protocol: 2, disableClientInfo: true })
  redis.on('error', () => {})
})

after(async () => {
  redis.disconnect()
  await server.stop()
})

/** An instance as far as the script can tell: what it knows of the shared state, and which peers it has told of. */
class Instance {
  readonly id: string
  readonly has = new Set<string>()
  epoch = ''
  version = 0
  at = 0
  members = 0

  constructor(id: string) {
    this.id = id
  }

  learn({ epoch, version, at, members }: Heard): void {
    this.epoch = epoch
    this.version = version
    this.at = at
    this.members = members
  }
}

/** A group in Redis and the same one in the twin. */
class Pair {
  readonly keys = groupKeys('t', 'app', `g${groups++}`)
  twin = new FleetStore()
  /** The twin's name of each epoch of Redis. */
  readonly #epochs = new Map<string, string>()

  async exchange(
    instance: Instance,
    updates: Record<string, Partial<Update>>,
    more: Partial<Sent> = {},
  ): Promise<Heard> {
    const sent: Sent = {
      id: instance.id,
      ttl,
      epoch: instance.epoch,
      version: instance.version,
      at: instance.at,
      members: instance.members,
      requests: 0,
      retries: 0,
      updates: Object.entries(updates).map(([name, update]) => ({ name, update: { ...silent, ...update } })),
      ...more,
    }
    const { state, changed, members, told } = this.keys
    const real = readHeard(
      await redis.callBuffer(
        'EVAL',
        exchange.text,
        4,
        state,
        changed,
        members,
        told + sent.id,
        ...packSent(sent, keep, told),
      ),
      sent.updates,
    )
    const born = Number(await redis.hget(state, 'born'))
    const epoch = this.#epochs.get(sent.epoch) ?? 'none'
    const twin = this.twin.exchange({ ...sent, epoch }, born + real.at)
    this.#compare(real, twin)
    return real
  }

  #compare(real: Heard, twin: Heard): void {
    const epoch = this.#epochs.get(real.epoch)
    if (epoch === undefined) this.#epochs.set(real.epoch, twin.epoch)
    else assert.equal(twin.epoch, epoch)
    const { version, members, fresh, requests, retries, leases } = twin
    assert.deepEqual(
      [real.version, real.members, real.fresh, real.requests, real.retries, real.leases],
      [version, members, fresh, requests, retries, leases],
    )
    assert.ok(Math.abs(real.at - twin.at) < 0.01, `${real.at} and ${twin.at}`)
    assert.deepEqual([...real.peers.keys()].sort(), [...twin.peers.keys()].sort())
    for (const [name, record] of real.peers) sameRecord(name, record, twin.peers.get(name)!)
  }

  async depart({ id }: Instance): Promise<void> {
    const { state, changed, members } = this.keys
    await redis.call('EVAL', departure.text, 3, state, changed, members, keep, id)
    this.twin.depart(id)
  }

  /** Redis loses all that it has of the group, or what one instance has told: then everything begins anew. */
  async lose(...keys: readonly string[]): Promise<void> {
    await redis.del(...keys)
    this.twin = new FleetStore()
  }
}

let groups = 0

/** Fields that are sums of times and the like, within what rounding and the clock's digits leave. */
const rough = new Set([
  'ejectedAt',
  'valueAt',
  'stuckStart',
  'shortAt',
  'cravedAt',
  'weight',
  'weighted',
  'valueSum',
])

function sameRecord(name: string, real: PeerRecord, twin: PeerRecord): void {
  for (const [field, value] of Object.entries(twin)) {
    const found = real[field as keyof PeerRecord]
    const slack = rough.has(field) ? 0.01 + 1e-9 * Math.abs(value) : 0
    assert.ok(
      Math.abs(found - value) <= slack,
      `${field} of ${name}: ${found} in Redis, ${value} in the twin`,
    )
  }
}

for (const seed of [1, 2, 3]) {
  test(`Redis and the twin answer a random course of things alike, ${seed}`, async () => {
    const random = dice(seed, 'course')
    const below = (n: number) => Math.floor(random() * n)
    const chance = (part: number) => random() < part
    const pair = new Pair()
    const names = ['a', 'b:80', 'c', 'd #2', 'requests']
    let born = 0
    const instances = Array.from({ length: 6 }, () => new Instance(`i${born++}`))
    let sleeps = 0
    for (let step = 0; step < 500; step++) {
      const place = below(instances.length)
      const instance = instances[place]!
      if (chance(0.02)) {
        // A process ends, in good order or not, and another takes its place.
        if (chance(0.7)) await pair.depart(instance)
        instances[place] = new Instance(`i${born++}`)
        continue
      }
      if (chance(0.015) && sleeps < 8) {
        // Whoever is not heard soon after is taken out.
        sleeps += 1
        await sleep(ttl * (0.6 + random()))
      }
      if (chance(0.004)) await pair.lose(...Object.values(pair.keys).slice(0, 3))
      if (chance(0.004)) await pair.lose(pair.keys.changed)
      const more: Partial<Sent> = { requests: below(50), retries: below(5) }
      // Knows more than Redis does, as after a failover.
      const ahead = chance(0.01) ? { version: instance.version + 1000 } : {}
      const updates: Record<string, Partial<Update>> = {}
      for (const name of names) {
        if (chance(0.4)) continue
        if (chance(0.08)) {
          updates[name] = { leaves: true, answers: below(3) }
          instance.has.delete(name)
        } else {
          updates[name] = told()
          instance.has.add(name)
        }
      }
      const heard = await pair.exchange(instance, updates, { ...more, ...ahead })
      // An answer may get lost.
      if (chance(0.95)) instance.learn(heard)
    }
    // In the end nobody has anything, and nothing is left of it.
    for (const instance of instances) await pair.depart(instance)
    await sleep(ttl)
    const last = new Instance('last')
    // So many at a time.
    for (let i = 0; i < 4; i++) last.learn(await pair.exchange(last, {}))
    assert.equal(last.members, 1)
    const left = await redis.hkeys(pair.keys.state)
    assert.deepEqual(left.sort(), ['born', 'epoch', 'requests', 'retries', 'version'])

    function told(): Partial<Update> {
      const answers = below(20)
      const values = chance(0.2) ? below(5) : 0
      const stuck = chance(0.3) ? 1 + below(4) : 0
      const limit = chance(0.6) ? 10 : 0
      return {
        answers,
        good: below(answers + 1),
        ejections: chance(0.1) ? 1 : 0,
        values,
        valueSum: values * random() * 100,
        valueAge: random() * 1000,
        stuck,
        stuckAge: stuck * random() * 5000,
        weight: chance(0.7) ? 0.01 + random() * 50 : 0,
        average: random() * 100,
        conns: below(5),
        limit,
        have: below(6),
        want: limit > 0 ? below(limit + 1) : 0,
        need: limit > 0 ? below(limit + 3) : 0,
      }
    }
  })
}

test('what the last to have a peer told is gone with it, and whoever has it next begins anew', async () => {
  const pair = new Pair()
  const first = new Instance('first')
  await pair.exchange(first, { a: { answers: 5, good: 4, conns: 3, stuck: 1, stuckAge: 50 } })
  await pair.depart(first)
  const second = new Instance('second')
  const began = await pair.exchange(second, { a: { answers: 1, good: 1, conns: 1 } })
  assert.deepEqual([began.members, began.peers.get('a')?.members, began.peers.get('a')?.conns], [1, 1, 1])
  second.learn(began)
  const heard = await pair.exchange(second, { a: { conns: 2, answers: 1 } })
  assert.deepEqual(heard.peers.get('a'), { ...heard.peers.get('a'), members: 1, answers: 2, conns: 2 })
})

test('where what an instance told is lost nothing fits any more, and all begins anew', async () => {
  for (const found of ['by itself', 'by another']) {
    const pair = new Pair()
    const [one, other] = [new Instance('one'), new Instance('other')]
    one.learn(await pair.exchange(one, { a: { answers: 5, conns: 3 } }))
    other.learn(await pair.exchange(other, { a: { answers: 2, conns: 1 } }))
    if (found === 'by another') await pair.depart(one)
    await pair.lose(pair.keys.told + one.id)
    const finder = found === 'by itself' ? one : other
    const heard = await pair.exchange(finder, { a: { answers: 1, conns: 2 } })
    assert.ok(heard.fresh)
    assert.notEqual(heard.epoch, finder.epoch)
    assert.deepEqual([heard.members, heard.peers.get('a')?.answers, heard.peers.get('a')?.conns], [1, 1, 2])
  }
})

test(
  'leases are the limit at most, and who asks for more than is left gets what is left',
  timed(async () => {
    const pair = new Pair()
    const [one, other] = [new Instance('one'), new Instance('other')]
    one.learn(await pair.exchange(one, { a: { limit: 10, want: 8 } }))
    await sleep(ttl)
    one.learn(await pair.exchange(one, { a: { limit: 10, have: 8, want: 8 } }))
    const heard = await pair.exchange(other, { a: { limit: 10, want: 5, need: 1 } })
    assert.deepEqual(heard.leases, [2])
    const { shortAt, cravedAt } = heard.peers.get('a')!
    assert.deepEqual([shortAt, cravedAt], [0, 0], 'a wish for a reserve marks nothing')
    const needy = await pair.exchange(other, { a: { limit: 10, have: 2, want: 5, need: 5 } })
    assert.ok(needy.peers.get('a')!.shortAt > 0 && needy.peers.get('a')!.cravedAt > 0)
    const more = await pair.exchange(one, { a: { limit: 10, have: 8, want: 8, need: 9 } })
    assert.equal(more.peers.get('a')!.shortAt, needy.peers.get('a')!.shortAt, 'it has a fair part')
    assert.ok(more.peers.get('a')!.cravedAt > needy.peers.get('a')!.cravedAt)
  }),
)

test('nothing of a group is kept for ever, and a departure begins nothing', async () => {
  const pair = new Pair()
  const one = new Instance('one')
  await pair.depart(one)
  assert.equal(await redis.exists(...Object.values(pair.keys)), 0)
  await pair.exchange(one, { a: { answers: 5 } })
  await pair.depart(one)
  const { state, changed, members, told } = pair.keys
  for (const key of [state, changed, members, told + one.id]) {
    const left = await redis.pttl(key)
    assert.ok(left > 0 && left <= keep, `${key}: ${left}`)
  }
})
