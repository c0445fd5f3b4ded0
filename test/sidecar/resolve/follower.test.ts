import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FollowedName } from '../../../sidecar/membership.ts'
import type { AskServer } from '../../../sidecar/resolve/exchange.ts'
import { Followers } from '../../../sidecar/resolve/followers.ts'
import { readResolvConf } from '../../../sidecar/resolve/resolv-conf.ts'
import { resolverSpec as spec } from '../../support/resolver-spec.ts'
import { ManualTimers } from '../../support/timers.ts'

/** Followers under a manual clock, of names that all have the same answer. */
class Bench {
  readonly timers = new ManualTimers()
  readonly said: string[] = []
  /** How often the name had other addresses. */
  changes = 0
  /** When it was asked, milliseconds since the start. */
  readonly moments: number[] = []
  answer: readonly string[] | string = ['10.0.0.1']
  ttl = 10
  random = 0
  readonly followers: Followers
  readonly #start = this.timers.now()

  constructor() {
    const { now, after } = this.timers
    this.followers = new Followers(
      {
        now,
        after,
        random: () => this.random,
        say: (level, text) => this.said.push(`${level}: ${text}`),
        ask: this.#ask,
        system: { conf: () => readResolvConf(''), hosts: () => new Map() },
      },
      () => {
        this.changes += 1
      },
    )
  }

  readonly #ask: AskServer = async (_server, { name }) => {
    this.moments.push(Math.round(this.timers.now() - this.#start))
    if (this.answer === 'never') return new Promise(() => {})
    const code = typeof this.answer === 'string' ? this.answer : 'NOERROR'
    const addresses = typeof this.answer === 'string' ? [] : this.answer
    const answers = addresses.map((address) => ({ name, ttl: this.ttl, type: 'A' as const, address }))
    return { kind: 'reply', reply: { code, answers, additionals: [], negative: true } }
  }

  name(more: Partial<FollowedName> = {}): FollowedName {
    return { host: 'web.example', port: 80, service: undefined, resolver: spec, ...more }
  }

  async follow(name = this.name()): Promise<FollowedName> {
    const done = this.followers.expect([name])
    await this.timers.pass(0)
    await done
    return name
  }

  addresses(name: FollowedName): string {
    const found = this.followers.resolved(name)
    return found.map(({ address }) => address.kind === 'tcp' && `${address.host}:${address.port}`).join(' ')
  }
}

test('a name is known once it is followed, and asked for again when its answer is no longer good', async () => {
  const bench = new Bench()
  const name = await bench.follow()
  assert.equal(bench.addresses(name), '10.0.0.1:80')
  bench.answer = ['10.0.0.2', '10.0.0.1']
  await bench.timers.pass(9999)
  assert.equal(bench.addresses(name), '10.0.0.1:80')
  await bench.timers.pass(1)
  assert.equal(bench.addresses(name), '10.0.0.1:80 10.0.0.2:80')
  assert.equal(bench.changes, 2)
  // The same in another order is no change.
  bench.answer = ['10.0.0.1', '10.0.0.2']
  await bench.timers.pass(10_000)
  assert.equal(bench.changes, 2)
  assert.deepEqual(bench.moments, [0, 10_000, 20_000])
})

test('an answer that is good for no time is good for a second', async () => {
  const bench = new Bench()
  bench.ttl = 0
  await bench.follow()
  await bench.timers.pass(3500)
  assert.deepEqual(bench.moments, [0, 1000, 2000, 3000])
})

test('an answer that is good for years is asked for again after a day', async () => {
  const bench = new Bench()
  bench.ttl = 2 ** 31 - 1
  await bench.follow()
  await bench.timers.pass(86_400_000)
  assert.deepEqual(bench.moments, [0, 86_400_000])
})

test('the configuration may say how long answers are good', async () => {
  const bench = new Bench()
  await bench.follow(bench.name({ resolver: { ...spec, validMs: 3000 } }))
  await bench.timers.pass(9000)
  assert.deepEqual(bench.moments, [0, 3000, 6000, 9000])
  const hasty = new Bench()
  await hasty.follow(hasty.name({ resolver: { ...spec, validMs: 0 } }))
  await hasty.timers.pass(2000)
  assert.deepEqual(hasty.moments, [0, 1000, 2000])
})

test('the last addresses stay while nobody answers, and it is asked again and again after ever longer pauses', async () => {
  const bench = new Bench()
  const name = await bench.follow()
  bench.answer = 'SERVFAIL'
  await bench.timers.pass(10_000 + 120_000)
  assert.equal(bench.addresses(name), '10.0.0.1:80')
  const pauses = bench.moments.slice(1).map((at, i, all) => at - (i === 0 ? 0 : all[i - 1]!))
  assert.deepEqual(pauses, [10_000, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  bench.answer = ['10.0.0.3']
  await bench.timers.pass(30_000)
  assert.equal(bench.addresses(name), '10.0.0.3:80')
  // Each way is told once.
  assert.deepEqual(bench.said, [
    'warn: web.example could not be resolved (SERVFAIL (127.0.0.1:53)); its last addresses stay',
    'notice: web.example is resolved again',
  ])
})

test('pauses are of different length, so that many do not come back in one moment, and no longer than valid', async () => {
  const bench = new Bench()
  bench.answer = 'REFUSED'
  bench.random = 0.5
  await bench.follow(bench.name({ resolver: { ...spec, validMs: 4000 } }))
  await bench.timers.pass(14_000)
  assert.deepEqual(bench.moments, [0, 1250, 3750, 7750, 11_750])
})

test('a name that is no more loses its addresses', async () => {
  const bench = new Bench()
  const name = await bench.follow()
  bench.answer = 'NXDOMAIN'
  await bench.timers.pass(10_000)
  assert.equal(bench.addresses(name), '')
  assert.equal(bench.changes, 2)
  assert.deepEqual(bench.said, [
    'warn: web.example could not be resolved (Host not found); it has no addresses any more',
  ])
})

test('a name that has no addresses for once keeps the last ones', async () => {
  const bench = new Bench()
  const name = await bench.follow()
  bench.answer = []
  await bench.timers.pass(10_000)
  assert.equal(bench.addresses(name), '10.0.0.1:80')
  assert.equal(bench.changes, 1)
  assert.deepEqual(bench.said, [
    'warn: web.example could not be resolved (no addresses); its last addresses stay',
  ])
})

test('groups that follow the same name share its look-ups, with ports of their own', async () => {
  const bench = new Bench()
  const one = await bench.follow()
  const other = await bench.follow(bench.name({ host: 'WEB.example', port: 81 }))
  assert.deepEqual([bench.addresses(one), bench.addresses(other)], ['10.0.0.1:80', '10.0.0.1:81'])
  assert.equal(bench.moments.length, 1)
  // Another resolver may know others.
  await bench.follow(bench.name({ resolver: { ...spec, timeoutMs: 5000 } }))
  assert.equal(bench.moments.length, 2)
})

test('what is not kept is forgotten, and what is goes on in its time', async () => {
  const bench = new Bench()
  const name = await bench.follow()
  const other = await bench.follow(bench.name({ host: 'other.example' }))
  bench.followers.keep([name])
  assert.equal(bench.addresses(other), '')
  await bench.timers.pass(10_000)
  assert.equal(bench.moments.length, 3)
  await bench.follow(name)
  assert.equal(bench.moments.length, 3)
  bench.followers.keep([])
  assert.equal(bench.timers.count, 0)
  assert.deepEqual(bench.followers.facts(), [])
})

test('nobody waits longer than five seconds for a first answer', async () => {
  const bench = new Bench()
  bench.answer = 'never'
  let over = false
  const expected = bench.followers.expect([bench.name()]).then(() => {
    over = true
  })
  await bench.timers.pass(4999)
  assert.equal(over, false)
  await bench.timers.pass(1)
  await expected
})

test('whom a start waits for is said after a second, and not where all have answered', async () => {
  const bench = new Bench()
  await bench.follow(bench.name({ host: 'known.example' }))
  await bench.timers.pass(3000)
  assert.deepEqual(bench.said, [])
  bench.answer = 'never'
  const names = ['one.example', 'two.example'].map((host) => bench.name({ host }))
  const expected = bench.followers.expect([bench.name({ host: 'known.example' }), ...names])
  await bench.timers.pass(999)
  assert.deepEqual(bench.said, [])
  await bench.timers.pass(1)
  assert.deepEqual(bench.said, ['notice: waiting for the addresses of one.example, two.example'])
  await bench.timers.pass(4000)
  await expected
})

test('once stopped nothing is asked any more', async () => {
  const bench = new Bench()
  await bench.follow()
  bench.followers.stop()
  await bench.timers.pass(100_000)
  assert.equal(bench.moments.length, 1)
})

test('what is known of a name is told', async () => {
  const bench = new Bench()
  await bench.follow()
  await bench.timers.pass(4000)
  const [facts] = bench.followers.facts()
  assert.deepEqual(facts?.servers, ['127.0.0.1:53'])
  assert.deepEqual(facts?.names, [
    {
      host: 'web.example',
      service: undefined,
      addresses: ['10.0.0.1'],
      ageMs: 4000,
      nextMs: 6000,
      error: undefined,
    },
  ])
})
