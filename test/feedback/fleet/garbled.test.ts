// Another program, or another release of this one, writes into the same keys; or something goes wrong with them.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Fleet } from '../../../feedback/fleet/fleet.ts'
import { type GroupKeys, groupKeys } from '../../../feedback/fleet/keys.ts'
import { peerId } from '../../../feedback/fleet/peer-id.ts'
import type { Learning, Upstream } from '../../../feedback/upstream.ts'
import { fleetEnv, fleetOptions } from '../../support/fleet-options.ts'
import { group } from '../../support/peers.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const learning: Learning = { mode: 'header', factor: 0.9, errors: 3, decay: 10_000, account: undefined }

let server: RedisServer
let redis: Redis
before(async () => {
  server = await redisServer()
  redis = new Redis(server.url)
})
after(async () => {
  redis.disconnect()
  await server.stop()
})

/** One instance that shares a group. */
class Instance {
  readonly said: string[] = []
  readonly upstream: Upstream
  readonly fleet: Fleet

  constructor(group: Upstream, name: string) {
    this.upstream = group
    this.fleet = new Fleet(
      fleetOptions(server, { name }),
      fleetEnv((text) => this.said.push(text)),
    )
    this.fleet.use([group])
    this.fleet.start()
  }

  get numbers() {
    return this.upstream.zone.peers
  }

  fail(answers: number): void {
    this.numbers.answers[0]! += answers
  }

  get members(): number | undefined {
    return this.fleet.upstream(this.upstream)?.members
  }

  /** Every number that a choice, or a person, could see. */
  get numbersSeen(): Record<string, number> {
    const { zone, peers } = this.upstream
    const { ok, avg, stuckCount, stuckStart, lease, report } = zone.peers
    const facts = peers.map((peer) => this.fleet.peer(this.upstream, peer))
    return Object.fromEntries([
      ...Object.entries({ ok, avg, stuckCount, stuckStart, lease, report }).flatMap(([name, column]) =>
        peers.map(({ index }) => [`${name} ${index}`, column[index]!] as const),
      ),
      ...facts.flatMap((fact, i) =>
        Object.entries(fact ?? {}).map(([name, value]) => [`fact ${name} ${i}`, value ?? 0] as const),
      ),
    ])
  }
}

/** Two instances that share one group. */
function pair(name: string): [Instance, Instance] {
  const make = () =>
    Object.assign(group([{ max_conns: 12, max_conns_scope: 'fleet' }, 1, 1], { name, learning }), {
      fleet: true,
    })
  return [new Instance(make(), 'one'), new Instance(make(), 'other')]
}

/** They tell each other, and what they tell is right. */
async function wellAgain(both: [Instance, Instance], withinMs: number): Promise<void> {
  const [one, other] = both
  const end = performance.now() + withinMs
  const problems = async (): Promise<string> => {
    if (!both.every(({ members }) => members === 2)) return `members ${both.map(({ members }) => members)}`
    const before = other.numbers.ok[0]!
    one.numbers.answers[0]! += 1
    await sleep(150)
    if (!(other.numbers.ok[0]! < before)) return 'evidence is not heard'
    for (const { numbersSeen, numbers } of both) {
      for (const [name, value] of Object.entries(numbersSeen)) {
        if (!Number.isFinite(value) || value < 0 || value > 1e9) return `${name} is ${value}`
      }
      if (numbers.lease[0]! <= 1) return 'there is no lease'
      if (numbers.stuckCount[0]! > 0) return 'stuck'
    }
    for (const instance of both) {
      const fact = instance.fleet.peer(instance.upstream, instance.upstream.peers[0]!)
      if (fact?.members !== 2 || fact.conns !== 0) return JSON.stringify(fact)
    }
    const leased = both.reduce((sum, { numbers }) => sum + numbers.lease[0]! - 1, 0)
    if (leased > 12) return `${leased} leased`
    return ''
  }
  for (;;) {
    const problem = await problems()
    if (problem === '') return
    if (performance.now() > end) {
      const errors = both.map(({ fleet, said }) => `${fleet.error}; ${said.join(' | ')}`)
      assert.fail(`${problem}; ${errors.join('\n')}`)
    }
    await sleep(20)
  }
}

const doubles = (...numbers: number[]): Buffer => {
  const bytes = Buffer.alloc(8 * numbers.length)
  for (const [i, number] of numbers.entries()) bytes.writeDoubleLE(number, 8 * i)
  return bytes
}
const full = (...numbers: number[]): Buffer => Buffer.concat([Buffer.from([1]), doubles(...numbers)])
/** A record of two instances, with some numbers other than they should be. */
function record(changes: Readonly<Record<number, number>>): Buffer {
  const numbers = [2, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]
  for (const [i, number] of Object.entries(changes)) numbers[Number(i)] = number
  return full(...numbers)
}

type Harm = (keys: GroupKeys, field: string, both: [Instance, Instance]) => Promise<unknown>
const put =
  (value: Buffer | string): Harm =>
  ({ state }, field) =>
    redis.hset(state, field, value)
const part =
  (value: Buffer | string): Harm =>
  ({ told }, field, [one]) =>
    redis.hset(told + one.fleet.id, field, value)
const set =
  (name: string, value: string): Harm =>
  ({ state }) =>
    redis.hset(state, name, value)
const many =
  (text: string, key: (keys: GroupKeys) => string, count = 100_000): Harm =>
  (keys) =>
    redis.eval(`for i = 1, ${count} do ${text} end`, 2, key(keys), keys.state)

const harms: Readonly<Record<string, Harm>> = {
  'the state is another kind of key': ({ state }) => redis.set(state, 'x'),
  'the changes are another kind of key': ({ changed }) => redis.set(changed, 'x'),
  'the members are another kind of key': ({ members }) => redis.set(members, 'x'),
  'the members are a list': async ({ members }) => [
    await redis.del(members),
    await redis.rpush(members, 'x'),
  ],
  'what one told is another kind of key': ({ told }, _, [one]) => redis.set(told + one.fleet.id, 'x'),
  'the epoch is another': set('epoch', 'x'),
  'the epoch is empty': set('epoch', ''),
  'the beginning is text': set('born', 'x'),
  'the beginning is no number': set('born', 'nan'),
  'the beginning is infinite': set('born', 'inf'),
  'the beginning is to come': async ({ state }) => redis.hset(state, 'born', Date.now() + 3_600_000),
  'the beginning is very long ago': set('born', '-1e300'),
  'the beginning is lost': ({ state }) => redis.hdel(state, 'born'),
  'the version is text': set('version', 'x'),
  'the version is the highest': set('version', '9223372036854775807'),
  'the version is high': set('version', '9007199254740993'),
  'the version is negative': set('version', '-5'),
  'the version is lost': ({ state }) => redis.hdel(state, 'version'),
  'requests are text': set('requests', 'x'),
  'requests are many': set('requests', '9223372036854775807'),
  'retries are text': set('retries', '1.5'),
  'a record is empty': put(''),
  'a record is text': put('some text'),
  'a record is cut short': put(record({}).subarray(0, 60)),
  'a record is too long': put(Buffer.concat([record({}), record({})])),
  'a record begins with another byte': put(Buffer.from([7, ...record({}).subarray(1)])),
  'a record has no numbers': put(record({ 1: NaN, 3: NaN, 4: NaN })),
  'a record is infinite': put(record({ 1: Infinity, 3: Infinity, 11: Infinity, 13: Infinity })),
  'a record is negative': put(record({ 0: -3, 5: -4, 11: -7, 13: -100 })),
  'a record has thousands of members': put(record({ 0: 5000 })),
  'a record has no members': put(record({ 0: 0 })),
  'a record has huge counts': put(record({ 1: 1e300, 2: 1e301, 6: 1e300, 8: 1e300, 9: 1e300 })),
  'a record has huge times': put(record({ 7: 1e300, 10: 1e300, 14: 1e300, 15: 1e300 })),
  'more is leased than there is': put(record({ 13: 1000 })),
  'less is leased than nothing': put(record({ 13: -1000 })),
  'much is stuck': put(record({ 11: 1e6, 12: 0 })),
  'much is in progress': put(record({ 5: 1e6 })),
  'a record is lost': ({ state }, field) => redis.hdel(state, field),
  'a part is text': part('x'),
  'a part is empty': part(''),
  'a part has no numbers': part(full(NaN, NaN, NaN, NaN, NaN, NaN)),
  'a part is huge': part(full(1e300, 1e300, 1e300, 1e300, 1e300, 1e300)),
  'a part is lost': ({ told }, field, [one]) => redis.hdel(told + one.fleet.id, field),
  'a member is heard in the future': ({ members }) => redis.zadd(members, Date.now() + 3_600_000, 'ghost'),
  'a member is heard for ever': ({ members }) => redis.zadd(members, '+inf', 'ghost\n\x1b[31m'),
  'members are heard in the future': async ({ members }, _, [one, other]) =>
    redis.zadd(members, Date.now() + 3_600_000, one.fleet.id, Date.now() + 3_600_000, other.fleet.id),
  'a member has told nothing': ({ members }) => redis.zadd(members, 1, '\x00'),
  'a hundred thousand members of long ago': many(
    "redis.call('ZADD', KEYS[1], 1, i)",
    ({ members }) => members,
  ),
  'a hundred thousand members to come': many(
    "redis.call('ZADD', KEYS[1], 9e15, i)",
    ({ members }) => members,
  ),
  'a hundred thousand changes of nothing': many(
    "redis.call('ZADD', KEYS[1], 9e15, 'p' .. i)",
    ({ changed }) => changed,
  ),
  'ten thousand changes of no records': many(
    "redis.call('ZADD', KEYS[1], 30 + i % 5, 'p\\1' .. i); redis.call('HSET', KEYS[2], 'p\\1' .. i, 'x')",
    ({ changed }) => changed,
    10_000,
  ),
  'the changes lack the epoch': async ({ changed, state }) =>
    redis.zrem(changed, (await redis.hget(state, 'epoch'))!),
  'the members lack their mark': ({ members }) => redis.zrem(members, ''),
}

describe('instances share again', { concurrency: 4 }, () => {
  for (const [name, harm] of Object.entries(harms)) {
    test(`where ${name}`, async (t) => {
      const both = pair(name)
      t.after(() => Promise.all(both.map(({ fleet }) => fleet.stop())))
      await until(() => both.every(({ members, numbers }) => members === 2 && numbers.lease[0]! > 1))
      await harm(groupKeys('evenkeel', 'app', name), `p${peerId(both[0].upstream.peers[0]!)}`, both)
      await sleep(120)
      await wellAgain(both, 12_000)
    })
  }
})

test('what is right is kept where Redis only refuses to read it', async (t) => {
  const both = pair('refused')
  t.after(() => Promise.all(both.map(({ fleet }) => fleet.stop())))
  await until(() => both.every(({ members }) => members === 2))
  const failures = both[0].fleet.failures
  await server.command('ACL', 'SETUSER', 'default', '-hmget')
  try {
    await until(() => both[0].fleet.failures > failures + 2)
    assert.equal(both[0].fleet.up, true)
  } finally {
    await server.command('ACL', 'SETUSER', 'default', '+hmget')
  }
  await wellAgain(both, 6000)
  for (const { fleet, upstream, said } of both) {
    assert.equal(fleet.upstream(upstream)?.resets, 0)
    assert.equal(said.length, 2, said.join('\n'))
  }
})
