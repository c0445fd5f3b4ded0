import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { recent } from '../../../feedback/budget.ts'
import { peerStateChannel } from '../../../feedback/channels.ts'
import { exchange } from '../../../feedback/fleet/exchange.ts'
import { groupKeys } from '../../../feedback/fleet/keys.ts'
import { Ledger } from '../../../feedback/fleet/ledger.ts'
import type { Heard, Sent } from '../../../feedback/fleet/told.ts'
import { packSent, readHeard } from '../../../feedback/fleet/wire.ts'
import { exclusion } from '../../../feedback/health.ts'
import { holdConn } from '../../../feedback/held.ts'
import type { Learning, Upstream } from '../../../feedback/upstream.ts'
import { enterQueue } from '../../../feedback/waiting.ts'
import { Clock } from '../../support/clock.ts'
import { group, type PeerSketch } from '../../support/peers.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { undisturbed } from '../../support/undisturbed.ts'

const learning: Learning = { mode: 'header', factor: 0.9, errors: 3, decay: 10_000, account: undefined }
const ttl = 400

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

/** A test in which instances have to be heard again within `ttl`: on a machine that stands still they are not. */
const lasting = (name: string, go: () => Promise<void>) =>
  test(name, () =>
    undisturbed(async () => {
      await redis.flushall()
      await go()
    }),
  )

/** One instance with a group of its own, whose exchanges are made by hand. */
class Instance {
  readonly clock = new Clock()
  readonly upstream: Upstream
  readonly ledger: Ledger
  readonly #id: string
  readonly #name: string

  constructor(name: string, id: string, sketches: readonly PeerSketch[] = [1, 1]) {
    this.#name = name
    this.#id = id
    this.clock.move(10_000)
    this.upstream = group(sketches, { learning, name })
    this.ledger = new Ledger(this.upstream, ttl)
  }

  get numbers() {
    return this.upstream.zone.peers
  }

  async round(): Promise<Heard> {
    const { ledger } = this
    const telling = ledger.gather(this.clock.now())
    const heard = await this.arrive(ledger.send(telling, this.#id, ttl))
    ledger.hear(telling, heard, this.clock.now(), this.clock.now())
    return heard
  }

  /** What is told and does not arrive yet. */
  tell(): Sent {
    const telling = this.ledger.gather(this.clock.now())
    this.ledger.lose(telling)
    return this.ledger.send(telling, this.#id, ttl)
  }

  /** What was told arrives. */
  async arrive(sent: Sent): Promise<Heard> {
    const { state, changed, members, told } = groupKeys('evenkeel', 'test', this.#name)
    const keys = [state, changed, members, told + sent.id]
    const args = packSent(sent, 60_000, told)
    const answer = await redis.callBuffer('EVAL', exchange.text, keys.length, ...keys, ...args)
    return readHeard(answer, sent.updates)
  }

  /** Answers of a peer, as attempts would have counted them. */
  answer(index: number, answers: number, good = answers): void {
    this.numbers.answers[index]! += answers
    this.numbers.goodAnswers[index]! += good
  }
}

async function rounds(...instances: readonly Instance[]): Promise<void> {
  for (const instance of instances) await instance.round()
}

describe('evidence of success and failure', () => {
  test('failures that one instance saw lower the rate of success at the other, as if it had seen them', async () => {
    const [a, b] = [new Instance('evidence', 'a'), new Instance('evidence', 'b')]
    await rounds(a, b)
    a.answer(0, 10, 0)
    await rounds(a, b)
    assert.ok(Math.abs(b.numbers.ok[0]! - 0.9 ** 10) < 1e-9, `${b.numbers.ok[0]}`)
    assert.equal(a.numbers.ok[0], 1, 'what it has told itself it does not hear again')
    assert.equal(b.numbers.ok[1], 1)
  })

  test('what was counted before an instance joined is not told, nor heard by who joins', async () => {
    const a = new Instance('late', 'a')
    await a.round()
    a.answer(0, 50, 0)
    await a.round()
    const b = new Instance('late', 'b')
    b.answer(1, 50, 0)
    const c = new Instance('late', 'c')
    const late = new Instance('late', 'd')
    late.answer(1, 50, 0)
    await rounds(b, c, late, a)
    assert.equal(c.numbers.ok[0], 1)
    assert.equal(b.numbers.ok[0], 1)
  })

  test('after a lost exchange nothing is told twice, and the next answer is a beginning', async () => {
    const [a, b] = [new Instance('lost', 'a'), new Instance('lost', 'b')]
    await rounds(a, b)
    a.answer(0, 5, 0)
    a.ledger.lose(a.ledger.gather(a.clock.now()))
    b.answer(1, 5, 0)
    await b.round()
    await rounds(a, b)
    assert.equal(b.numbers.ok[0], 1, 'nobody knows whether it counted')
    assert.equal(a.numbers.ok[1], 1)
    b.answer(1, 5, 0)
    await rounds(b, a)
    assert.ok(a.numbers.ok[1]! < 0.6, 'from then on it counts again')
  })

  test('when the state is lost everything begins anew, and nobody takes that for success or failure', async () => {
    const [a, b] = [new Instance('flushed', 'a'), new Instance('flushed', 'b')]
    await rounds(a, b)
    a.answer(0, 5, 0)
    await rounds(a, b)
    const { ok } = b.numbers
    const then = ok[0]
    await redis.flushall()
    await rounds(b, a, b)
    assert.equal(ok[0], then)
    assert.equal(a.ledger.resets, 1)
    a.answer(0, 5, 0)
    await rounds(a, b)
    assert.ok(ok[0]! < then!)
  })

  for (const lost of ['state', 'changed', 'members'] as const) {
    test(`the same when only the key "${lost}" is lost`, async () => {
      const name = `lost-${lost}`
      const [a, b] = [new Instance(name, 'a'), new Instance(name, 'b')]
      await rounds(a, b)
      const heard = await a.round()
      await redis.del(groupKeys('evenkeel', 'test', name)[lost])
      const next = await b.round()
      assert.notEqual(next.epoch, heard.epoch)
      assert.equal(next.fresh, true)
      assert.equal(next.members, 1)
      assert.equal((await a.round()).members, 2)
    })
  }

  test('and when what one instance has told is lost', async () => {
    const [a, b] = [new Instance('untold', 'a'), new Instance('untold', 'b')]
    await rounds(a, b)
    const heard = await a.round()
    await redis.del(`${groupKeys('evenkeel', 'test', 'untold').told}a`)
    assert.equal((await b.round()).epoch, heard.epoch)
    const next = await a.round()
    assert.notEqual(next.epoch, heard.epoch)
  })
})

describe('stuck work', () => {
  lasting('what is stuck at one instance ages at the others, and is gone with its instance', async () => {
    const [a, b] = [new Instance('stuck', 'a'), new Instance('stuck', 'b')]
    a.numbers.avg[0] = 10
    a.answer(0, 1)
    await rounds(a, b)
    a.numbers.waiting[0] = 3
    a.numbers.startSum[0] = 3 * (a.clock.now() - 200)
    await rounds(a, b)
    assert.equal(b.numbers.stuckCount[0], 3)
    const age = 3 * b.clock.now() - b.numbers.stuckStart[0]!
    assert.ok(age >= 599 && age < 900, `${age}`)
    assert.equal(a.numbers.stuckCount[0], 0, 'its own it knows better')
    await sleep(ttl + 50)
    await b.round()
    assert.equal(b.numbers.stuckCount[0], 0)
    assert.equal(b.ledger.members, 1)
  })

  test('who is cut off forgets what is stuck elsewhere', async () => {
    const [a, b] = [new Instance('cut', 'a'), new Instance('cut', 'b')]
    a.numbers.avg[0] = 10
    a.numbers.waiting[0] = 1
    a.numbers.startSum[0] = a.clock.now() - 500
    a.answer(0, 1)
    await rounds(a, b)
    assert.equal(b.numbers.stuckCount[0], 1)
    assert.equal(b.upstream.zone.get('stuckPeers'), 1)
    b.ledger.cutOff()
    assert.equal(b.numbers.stuckCount[0], 0)
    assert.equal(b.upstream.zone.get('stuckPeers'), 0)
  })
})

describe('averages', () => {
  test('a newcomer starts with the average of the others, by how many answers each stands for, once', async () => {
    const [a, b] = [new Instance('newcomer', 'a'), new Instance('newcomer', 'b')]
    await rounds(a, b)
    a.numbers.avg[0] = 10
    a.answer(0, 30)
    b.numbers.avg[0] = 50
    b.answer(0, 10)
    await rounds(a, b)
    const c = new Instance('newcomer', 'c')
    await c.round()
    assert.ok(Math.abs(c.numbers.avg[0]! - 20) < 0.5, `${c.numbers.avg[0]}`)
    assert.equal(c.numbers.avg[1], 0, 'of a peer that nobody has measured nobody knows')
    assert.deepEqual([a.numbers.avg[0], b.numbers.avg[0]], [10, 50], 'who has one keeps it')
    a.numbers.avg[0] = 90
    a.answer(0, 30)
    await rounds(a, c)
    assert.ok(Math.abs(c.numbers.avg[0]! - 20) < 0.5)
    assert.equal((await c.round()).members, 3)
    assert.equal(c.ledger.about(c.upstream.peers[0]!, 0)!.members, 3)
  })

  test('of the first few answers no average is made for others, nor of later ones for all at one moment', async () => {
    const [a, b] = [new Instance('few', 'a'), new Instance('few', 'b')]
    await rounds(a, b)
    a.numbers.avg[0] = 10
    a.answer(0, 2)
    await a.round()
    const c = new Instance('few', 'c')
    await rounds(c, b)
    assert.deepEqual([b.numbers.avg[0], c.numbers.avg[0]], [0, 0])
    a.answer(0, 30)
    await rounds(a, c)
    assert.deepEqual([b.numbers.avg[0], c.numbers.avg[0]], [0, 0])
    const d = new Instance('few', 'd')
    await d.round()
    assert.equal(d.numbers.avg[0], 10)
  })
})

describe('ejections', () => {
  const told: string[] = []
  const hear = (message: unknown) => {
    const { peer, state, heard } = message as { peer: { name: string }; state: string; heard?: true }
    told.push(`${peer.name} ${state}${heard ? ' heard' : ''}`)
  }
  before(() => peerStateChannel.subscribe(hear))
  after(() => peerStateChannel.unsubscribe(hear))

  const eject = (instance: Instance) => {
    instance.numbers.fails[0] = 1
    instance.numbers.unavailable[0]! += 1
    instance.numbers.checkedAt[0] = instance.clock.now()
  }

  test('a peer that one instance set aside is set aside by all, and told once', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((id) => new Instance('ejected', id)) as [
      Instance,
      Instance,
      Instance,
    ]
    await rounds(a, b, c)
    told.length = 0
    eject(a)
    await rounds(a, b, c, a, b, c)
    for (const { upstream, clock } of [b, c]) {
      assert.equal(exclusion(upstream.peers[0]!, false, clock.now()), 'unavailable')
    }
    assert.deepEqual(told, ['a unavailable heard', 'a unavailable heard'])
    b.clock.move(10_000)
    assert.equal(
      exclusion(b.upstream.peers[0]!, false, b.clock.now()),
      undefined,
      'it is tried again in time',
    )
  })

  test('who has seen the peer work since then knows better', async () => {
    const [a, b] = [new Instance('contested', 'a'), new Instance('contested', 'b')]
    await rounds(a, b)
    eject(a)
    await a.round()
    b.clock.move(5)
    b.numbers.goodAt[0] = b.clock.now() + 50
    await b.round()
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), undefined)
  })

  /** Moves the server's clock on, as far as a group can tell. */
  const pass = (name: string, ms: number) =>
    redis.hincrbyfloat(groupKeys('evenkeel', 'test', name).state, 'born', -ms)

  test('what is told after a silence, and may have been on its way for long, is no news', async () => {
    const [a, b] = [new Instance('delayed', 'a'), new Instance('delayed', 'b')]
    await rounds(a, b)
    eject(a)
    await pass('delayed', 2500)
    await rounds(a, b)
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), undefined)
    eject(a)
    await rounds(a, b)
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), 'unavailable', 'but the next one is')
  })

  test('nor is it when newer things have come from there before it', async () => {
    const [a, b] = [new Instance('overtaken', 'a'), new Instance('overtaken', 'b')]
    await rounds(a, b)
    eject(a)
    const late = a.tell()
    await pass('overtaken', 2500)
    await rounds(a, b, a, b)
    await a.arrive(late)
    await b.round()
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), undefined)
    await rounds(a, b)
    eject(a)
    await rounds(a, b)
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), 'unavailable', 'but the next one is')
  })

  test('so it is where the instance had been given up meanwhile', async () => {
    const [a, b] = [new Instance('buried', 'a'), new Instance('buried', 'b')]
    await rounds(a, b)
    eject(a)
    const { members } = groupKeys('evenkeel', 'test', 'buried')
    await redis.zincrby(members, -2 * ttl, 'a')
    await rounds(b, a, b)
    assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), undefined)
  })
})

test('what an instance sees while it cannot tell anybody it does not tell later', async () => {
  const [a, b] = [new Instance('skipped', 'a'), new Instance('skipped', 'b')]
  await rounds(a, b)
  a.answer(0, 10, 0)
  a.numbers.unavailable[0]! += 1
  a.upstream.zone.add('requests', 10)
  a.upstream.zone.add('retries', 10)
  a.ledger.skip()
  await rounds(a, b, a, b)
  assert.equal(b.numbers.ok[0], 1)
  assert.equal(exclusion(b.upstream.peers[0]!, false, b.clock.now()), undefined)
  assert.deepEqual(recent(b.upstream.zone, 10_000, b.clock.now()), { requests: 0, retries: 0 })
  a.answer(0, 10, 0)
  await rounds(a, b)
  assert.ok(b.numbers.ok[0]! < 0.5, 'from then on it tells again')
})

test('retries of other instances count against the budget, for as long as its window lasts', async () => {
  const [a, b] = [new Instance('budget', 'a'), new Instance('budget', 'b')]
  await rounds(a, b)
  a.upstream.zone.add('requests', 100)
  a.upstream.zone.add('retries', 30)
  await rounds(a, b, a)
  assert.deepEqual(recent(b.upstream.zone, 10_000, b.clock.now()), { requests: 100, retries: 30 })
  assert.deepEqual(recent(a.upstream.zone, 10_000, a.clock.now()), { requests: 0, retries: 0 })
  b.clock.move(11_000)
  assert.deepEqual(recent(b.upstream.zone, 10_000, b.clock.now()), { requests: 0, retries: 0 })
})

test('instances may have different peers, and a peer that nobody has any more is forgotten', async () => {
  const keys = groupKeys('evenkeel', 'test', 'different')
  const a = new Instance('different', 'a', [1, 1, 1])
  const b = new Instance('different', 'b', [1])
  await rounds(a, b)
  assert.equal(a.ledger.alone, false)
  assert.equal((await redis.hkeys(keys.state)).filter((name) => name.startsWith('p')).length, 3)
  a.ledger.use(group([1], { learning, name: 'different' }))
  await a.round()
  assert.equal((await redis.hkeys(keys.state)).filter((name) => name.startsWith('p')).length, 1)
  assert.equal(await redis.zcard(keys.changed), 2)
})

test('who begins anew under the same id has no parts from before', async () => {
  const [a, b] = [new Instance('again', 'a'), new Instance('again', 'b')]
  for (const { numbers } of [a, b]) numbers.conns[1] = 7
  await rounds(a, b)
  const next = new Instance('again', 'a', [1])
  await rounds(next, b)
  const about = b.ledger.about(b.upstream.peers[1]!, 0)!
  assert.deepEqual([about.members, about.conns], [1, 7])
  assert.equal(b.ledger.about(b.upstream.peers[0]!, 0)!.members, 2)
})

describe('a limit for the fleet', () => {
  const limited = (limit: number): PeerSketch[] => [{ max_conns: limit, max_conns_scope: 'fleet' }, 1]
  const lease = ({ numbers }: Instance) => numbers.lease[0]! - 1
  const load = ({ upstream, numbers }: Instance, count: number) => {
    while (numbers.conns[0]! < count) holdConn(upstream.zone, 0, 1)
    while (numbers.conns[0]! > count) holdConn(upstream.zone, 0, -1)
  }

  lasting('leases follow demand, and are never more than the limit in all', async () => {
    const all = ['a', 'b', 'c'].map((id) => new Instance('leases', id, limited(20)))
    const [a, b, c] = all as [Instance, Instance, Instance]
    // The first `ttl` of a state nobody gets more than a fair part.
    for (let i = 0; i < 3; i++) {
      await rounds(...all)
      await sleep(ttl / 2)
    }
    await rounds(...all)
    assert.deepEqual(all.map(lease), [6, 6, 6], 'who has nothing to do has a fair part in reserve')
    for (let i = 0; i < 12; i++) {
      load(a, lease(a))
      await rounds(...all)
      assert.ok(all.reduce((sum, one) => sum + lease(one), 0) <= 20)
      for (const one of all) one.clock.move(200)
    }
    assert.ok(lease(a) >= 18, `who needs most has most: ${all.map(lease)}`)
    for (let i = 0; i < 12; i++) {
      load(c, lease(c))
      load(b, lease(b))
      // What `a` had in progress ends bit by bit.
      load(a, Math.min(a.numbers.conns[0]!, Math.max(0, a.numbers.conns[0]! - 2)))
      for (const one of all) one.upstream.zone.add('requests', 1)
      await rounds(...all)
      assert.ok(all.reduce((sum, one) => sum + lease(one), 0) <= 20, `${all.map(lease)}`)
      for (const one of all) one.clock.move(200)
    }
    assert.ok(lease(b) >= 5 && lease(c) >= 5, `others get theirs: ${all.map(lease)}`)
  })

  lasting('requests that wait are a need of a part, and are told when it may have changed', async () => {
    const a = new Instance('waiting', 'a', limited(10))
    await rounds(a)
    const { zone } = a.upstream
    const need = () =>
      a.ledger.gather(a.clock.now()).updates.find(({ update }) => update.limit > 0)?.update.need
    assert.equal(need() ?? 0, 0)
    enterQueue(zone, 0)
    assert.equal(need(), 1)
    const before = zone.bell.rings
    await rounds(a)
    assert.ok(zone.bell.rings > before)
  })

  lasting('what an instance held that dies is free again within ttl', async () => {
    const [a, b] = [new Instance('death', 'a', limited(10)), new Instance('death', 'b', limited(10))]
    await rounds(a, b)
    await sleep(ttl)
    for (let i = 0; i < 6; i++) {
      load(a, lease(a))
      await rounds(a, b)
      a.clock.move(200)
    }
    assert.ok(lease(a) >= 8, `${lease(a)}`)
    await sleep(ttl + 50)
    for (let i = 0; i < 8; i++) {
      load(b, lease(b))
      b.upstream.zone.add('requests', 1)
      await rounds(b)
      b.clock.move(200)
    }
    assert.equal(lease(b), 10)
  })

  lasting(
    'who is cut off takes a fair part, and on return holds what is in progress at most beyond the limit',
    async () => {
      const [a, b] = [new Instance('return', 'a', limited(10)), new Instance('return', 'b', limited(10))]
      await rounds(a, b)
      await rounds(a, b)
      await sleep(ttl + 50)
      a.ledger.cutOff()
      assert.equal(lease(a), 5)
      load(a, 5)
      for (let i = 0; i < 10; i++) {
        load(b, lease(b))
        await b.round()
        b.clock.move(200)
      }
      assert.equal(lease(b), 10)
      await a.round()
      assert.equal(lease(a), 0, 'nothing more is begun as long as all is leased')
      assert.equal(a.numbers.conns[0], 5)
      // Both have as much to do as they are allowed, and what is in progress ends bit by bit.
      for (let i = 0; i < 20; i++) {
        for (const one of [a, b]) {
          const running = one.numbers.conns[0]!
          load(one, Math.max(lease(one), running - 1))
          one.upstream.zone.add('requests', 1)
          await one.round()
          one.clock.move(200)
        }
      }
      const running = [a, b].map(({ numbers }) => numbers.conns[0]!)
      assert.ok(running[0]! + running[1]! <= 10, `${running}`)
      assert.ok(Math.min(...running) >= 4, `each has its part again: ${running}`)
    },
  )

  lasting('an instance alone has half of it at its first exchange, and all of it at the second', async () => {
    const a = new Instance('alone', 'a', limited(100))
    await a.round()
    assert.equal(lease(a), 50)
    await a.round()
    assert.equal(lease(a), 100)
    await a.round()
    assert.equal(lease(a), 100)
  })

  lasting('of two that begin together each has half at once', async () => {
    const [a, b] = [new Instance('twins', 'a', limited(100)), new Instance('twins', 'b', limited(100))]
    for (let i = 0; i < 3; i++) {
      await rounds(a, b)
      assert.deepEqual([lease(a), lease(b)], [50, 50])
    }
    const c = new Instance('twins', 'c', limited(100))
    await c.round()
    assert.equal(c.ledger.without, true, 'all is leased')
    await rounds(a, b, c, a, b, c)
    assert.equal(c.ledger.without, false)
    assert.deepEqual([a, b, c].map(lease), [33, 33, 33])
  })

  lasting(
    'who loses Redis takes a fair part at once, and back there it has what is leased to it',
    async () => {
      const [a, b] = [new Instance('gone', 'a', limited(10)), new Instance('gone', 'b', limited(10))]
      await rounds(a, b)
      await sleep(ttl)
      for (let i = 0; i < 8; i++) {
        load(a, lease(a))
        await rounds(a, b)
        for (const one of [a, b]) one.clock.move(200)
      }
      assert.deepEqual([lease(a), lease(b)], [10, 0])
      const { epoch, version } = a.ledger
      for (const { ledger } of [a, b]) {
        ledger.skip()
        ledger.takeFair()
      }
      assert.deepEqual([lease(a), lease(b)], [5, 5])
      assert.deepEqual([a.ledger.epoch, a.ledger.version], [epoch, version], 'nothing else is lost')
      b.answer(0, 5, 0)
      await rounds(b, a)
      assert.ok(a.numbers.ok[0]! < 0.6, 'evidence goes on from where it was')
      assert.equal(lease(b), 0, 'the store knows of no more')
      assert.ok(lease(a) >= 5)
    },
  )

  lasting('who has never heard of anybody goes by the whole limit when Redis is lost', async () => {
    const a = new Instance('never', 'a', limited(10))
    a.ledger.takeFair()
    assert.equal(a.numbers.lease[0], 0)
  })

  lasting(
    'when Redis has forgotten everything nobody gets more than what it had or a fair part',
    async () => {
      const [a, b] = [
        new Instance('forgotten', 'a', limited(10)),
        new Instance('forgotten', 'b', limited(10)),
      ]
      await rounds(a, b)
      await sleep(ttl)
      for (let i = 0; i < 4; i++) {
        load(a, lease(a))
        load(b, lease(b))
        await rounds(a, b)
      }
      // Twice, before it has heard of the other again.
      for (const _ of [1, 2]) {
        await redis.flushall()
        for (let i = 0; i < 4; i++) {
          load(a, lease(a))
          await rounds(a)
        }
      }
      await b.round()
      assert.ok(lease(a) + lease(b) <= 10 + 1, `${lease(a)} ${lease(b)}`)
    },
  )
})
