import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { monotonic } from '../../../feedback/clock.ts'
import { Fleet } from '../../../feedback/fleet/fleet.ts'
import { groupKeys, sessionKeys } from '../../../feedback/fleet/keys.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions, sessionKey } from '../../../feedback/sessions/sessions.ts'
import type { Upstream } from '../../../feedback/upstream.ts'
import { fleetEnv, fleetOptions } from '../../support/fleet-options.ts'
import { group } from '../../support/peers.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

let server: RedisServer
before(async () => {
  server = await redisServer()
})
after(() => server.stop())

const timeout = 60_000
const interval = 40
let names = 0

/** An instance that shares a group whose sessions it learns. */
class Instance implements AsyncDisposable {
  readonly table: Sessions
  readonly upstream: Upstream
  readonly fleet: Fleet
  readonly #timeout: number

  constructor(
    name: string,
    more: { slots?: number; timeout?: number; shared?: boolean; redis?: RedisServer } = {},
  ) {
    this.table = new Sessions('z', more.slots ?? 10_000)
    this.#timeout = more.timeout ?? timeout
    const rules = { create: [], lookup: [], timeout: this.#timeout, at: 'end', refresh: true } as const
    const sessions = new SessionBook(name, rules, this.table)
    this.upstream = Object.assign(group([1], { name }), { fleet: more.shared ?? true, sessions })
    this.fleet = new Fleet(fleetOptions(more.redis ?? server, { interval }), fleetEnv())
    this.fleet.use([this.upstream])
    this.fleet.start()
  }

  bind(id: string, sid: string): void {
    this.table.bind(sessionKey(id), sid, monotonic(), { timeout: this.#timeout, create: true, refresh: true })
  }

  find(id: string): string {
    return this.table.find(sessionKey(id), monotonic(), this.#timeout)
  }

  get facts() {
    return this.fleet.upstream(this.upstream)?.sessions
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fleet.stop()
  }
}

const fresh = () => `u${names++}`

/** The keys of a group's table. */
function keysOf(name: string): [string, string] {
  const { prefix, group } = fleetOptions(server)
  return sessionKeys(groupKeys(prefix, group, name), 'z')
}

test('what one instance has bound the other finds, with any bytes in it', async () => {
  const name = fresh()
  await using one = new Instance(name)
  await using other = new Instance(name)
  const sid = '\x00\xff\r\n'.repeat(8)
  one.bind('id', sid)
  other.bind('mine', 'B')
  await until(() => other.find('id') === sid && one.find('mine') === 'B')
  assert.deepEqual(
    [one.facts, other.facts],
    [
      { told: 1, heard: 1 },
      { told: 1, heard: 1 },
    ],
  )
})

test('a session that is bound to another peer is so everywhere, in whatever order instances tell it', async () => {
  const name = fresh()
  await using one = new Instance(name)
  await using other = new Instance(name)
  one.bind('id', 'A')
  await until(() => other.find('id') === 'A')
  for (let turn = 0; turn < 4; turn++) {
    one.bind('id', `one${turn}`)
    await sleep(60)
    other.bind('id', `other${turn}`)
    await until(() => one.find('id') === `other${turn}`)
    await sleep(2 * interval)
    assert.deepEqual([one.find('id'), other.find('id')], [`other${turn}`, `other${turn}`])
  }
})

test('instances that bind one session at the same moment come to agree', async () => {
  const name = fresh()
  await using one = new Instance(name)
  await using other = new Instance(name)
  one.bind('seen', 'A')
  await until(() => other.find('seen') === 'A')
  for (let i = 0; i < 200; i++) {
    one.bind(`id${i}`, 'A')
    other.bind(`id${i}`, 'B')
  }
  const same = () => {
    for (let i = 0; i < 200; i++) if (one.find(`id${i}`) !== other.find(`id${i}`)) return false
    return true
  }
  await until(same)
  await sleep(4 * interval)
  assert.ok(same(), 'and stay so')
})

test('a new instance hears of all that there are, however many', async () => {
  const name = fresh()
  await using one = new Instance(name)
  for (let i = 0; i < 4000; i++) one.bind(`id${i}`, `s${i}`)
  await until(() => one.facts?.told === 4000)
  await using late = new Instance(name)
  const from = performance.now()
  await until(() => late.table.size === 4000)
  assert.ok(performance.now() - from < 3000)
  for (let i = 0; i < 4000; i++) assert.equal(late.find(`id${i}`), `s${i}`)
  await sleep(3 * interval)
  assert.equal(one.facts?.told, 4000, 'what is known is not told again')
  assert.equal(late.facts?.told, 0)
})

test('while Redis is away everyone goes by what it knows, and tells it afterwards', async () => {
  await using redis = await redisServer()
  const name = fresh()
  await using one = new Instance(name, { redis })
  await using other = new Instance(name, { redis })
  one.bind('before', 'A')
  await until(() => other.find('before') === 'A')
  await redis.kill()
  await until(() => !one.fleet.up && !other.fleet.up)
  one.bind('during', 'B')
  assert.deepEqual([one.find('during'), one.find('before'), other.find('before')], ['B', 'A', 'A'])
  await redis.restart()
  await until(() => other.find('during') === 'B', 10_000)
  await using late = new Instance(name, { redis })
  // Redis had lost what it had: everything was told again.
  await until(() => late.find('before') === 'A' && late.find('during') === 'B')
})

test('what somebody else does to the keys costs nobody a session', async () => {
  const name = fresh()
  const [all, changed] = keysOf(name)
  await using one = new Instance(name)
  await using other = new Instance(name)
  one.bind('id', 'A')
  await until(() => other.find('id') === 'A')
  const harm: (readonly string[])[] = [
    ['DEL', all],
    ['DEL', changed],
    ['SET', all, 'x'],
    ['SET', changed, 'x'],
    ['HSET', all, 'version', 'x'],
    ['HSET', all, 'version', '-5'],
    ['HDEL', all, 'epoch'],
    ['HSET', all, 'epoch', 'x'],
    ['FLUSHALL'],
  ]
  for (const [i, command] of harm.entries()) {
    await server.command(...command)
    other.bind(`id${i}`, `s${i}`)
    await until(() => one.find(`id${i}`) === `s${i}`, 3000)
    assert.deepEqual([one.find('id'), other.find('id')], ['A', 'A'])
  }
  // Of what cannot be a session nothing is taken in.
  const { size } = one.table
  await server.command('HSET', all, '0123456789abcdef', 'short', 'no key', 'x'.repeat(20))
  await server.command('ZADD', changed, '900000', '0123456789abcdef', '900001', 'no key', '900002', 'nothing')
  one.bind('last', 'Z')
  await until(() => other.find('last') === 'Z')
  assert.equal(one.table.size, size + 1)
})

test('nobody is bound for ever by moments that are to come', async () => {
  const name = fresh()
  const [all, changed] = keysOf(name)
  await using one = new Instance(name)
  await using other = new Instance(name)
  one.bind('id', 'A')
  await until(() => other.find('id') === 'A')
  const bytes = Buffer.alloc(17, 'B')
  bytes.writeDoubleLE(1e18, 0)
  bytes.writeDoubleLE(1e18, 8)
  const words = sessionKey('id')
  const member = Buffer.alloc(16)
  for (let i = 0; i < 4; i++) member.writeInt32LE(words[i]!, 4 * i)
  await server.command('HSET', all, member, bytes)
  await server.command('ZADD', changed, 500_000, member)
  await server.command('HSET', all, 'version', '500000')
  await sleep(3 * interval)
  other.bind('id', 'C')
  await until(() => one.find('id') === 'C')
  assert.equal(other.find('id'), 'C')
})

test('Redis forgets what nobody uses, and all of it some time later', async () => {
  const name = fresh()
  const [all, changed] = keysOf(name)
  await using one = new Instance(name, { timeout: 300 })
  for (let i = 0; i < 50; i++) one.bind(`id${i}`, 'A')
  await until(() => one.facts?.told === 50)
  const kept = async () => Number(await server.command('ZCARD', changed)) - 1
  assert.equal(await kept(), 50)
  let used = 0
  await until(async () => {
    one.bind('id0', 'A')
    used += 1
    return (await kept()) === 1
  })
  assert.ok(used > 3)
  assert.equal(one.find('id0'), 'A')
  const ttl = Number(await server.command('PTTL', all))
  assert.ok(ttl > 50_000 && ttl <= 60_300, `${ttl} ms`)
})

test('Redis keeps no more sessions than a table has', async () => {
  const name = fresh()
  const [all, changed] = keysOf(name)
  await using one = new Instance(name, { slots: 100 })
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 100; i++) one.bind(`${round} ${i}`, 'A')
    await until(() => one.facts?.told === 100 * (round + 1))
  }
  await until(async () => Number(await server.command('ZCARD', changed)) <= 101)
  assert.ok(Number(await server.command('HLEN', all)) <= 102)
})

test('groups that are out of the fleet, and tables of other names, keep to themselves', async () => {
  const name = fresh()
  await using one = new Instance(name)
  await using alone = new Instance(name, { shared: false })
  alone.bind('alone', 'A')
  one.bind('id', 'A')
  await until(() => one.facts?.told === 1)
  await sleep(3 * interval)
  assert.deepEqual([alone.find('id'), one.find('alone'), alone.facts], ['', '', undefined])
})

test('who leaves tells first what it has bound just now', async () => {
  const name = fresh()
  await using other = new Instance(name)
  await until(() => other.fleet.up)
  {
    await using one = new Instance(name)
    await until(() => one.fleet.up)
    one.bind('id', 'A')
  }
  await until(() => other.find('id') === 'A')
})

test('a table that takes the place of another one is told and heard as a whole', async () => {
  const name = fresh()
  await using one = new Instance(name)
  await using other = new Instance(name)
  for (let i = 0; i < 10; i++) other.bind(`id${i}`, 'A')
  await until(() => one.table.size === 10)
  const { rules } = one.upstream.sessions!
  const larger = new Sessions('z', 20_000)
  const upstream = Object.assign(group([1], { name }), {
    zone: one.upstream.zone,
    fleet: true,
    sessions: new SessionBook(name, rules, larger),
  })
  one.fleet.use([upstream])
  await until(() => larger.size === 10)
})
