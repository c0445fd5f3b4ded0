// `max_conns_scope=fleet`: all instances together have so many requests at a peer and no more.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { type Instances, instances, sharedPeer, Visitors } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { undisturbed } from '../../support/undisturbed.ts'

let redis: RedisServer
before(async () => {
  redis = await redisServer()
})
after(() => redis.stop())

const limit = 12
const interval = 200
const ttl = 1000

/** With room at the second peer for whatever the first one may not take. */
function config(slow: Backend, rest: Backend, more = ''): string {
  return `fleet ${redis.url} interval=${interval}ms ttl=${ttl}ms timeout=150ms;
${more}
http {
  access_log off;
  upstream u { zone u 64k; server ${slow.address} max_conns=${limit} max_conns_scope=fleet max_fails=0;
    server ${rest.address} backup; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
}`
}

/** A peer that keeps what it is asked until it is told to answer, or for so long. */
class Slow implements AsyncDisposable {
  readonly peer: Backend
  /** How long what is asked from now on is kept at most, milliseconds. */
  longest: number
  #release: () => void = () => {}
  #held = new Promise<void>((go) => {
    this.#release = go
  })

  private constructor(peer: Backend, longest: number) {
    this.peer = peer
    this.longest = longest
  }

  static async start(longest = 60_000): Promise<Slow> {
    const slow = new Slow(await backend(), longest)
    slow.peer.script = async (exchange) => {
      const over = new AbortController()
      const late = sleep(slow.longest, undefined, over).catch(() => {})
      await Promise.race([slow.#held, exchange.gone, late])
      over.abort()
      await exchange.reply({ body: 'slow' })
    }
    return slow
  }

  /** Answers all that wait, and keeps what comes after. */
  answer(): void {
    this.#release()
    this.#held = new Promise((go) => {
      this.#release = go
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.answer()
    await this.peer.stop()
  }
}

/** What instances have leased of the peer. */
async function leases({ list }: Instances, { address }: Backend): Promise<number[]> {
  return Promise.all(list.map(async (one) => (await sharedPeer(one, address)).fleet?.lease ?? -1))
}

/** Asks and does not wait; the connections are closed by whoever gets them. */
async function begin(one: Sidecar, count: number) {
  const clients = await Promise.all(Array.from({ length: count }, () => dial(one.port)))
  const replies = clients.map((client) => client.ask('/').catch(() => undefined))
  return { replies, leave: () => clients.forEach((client) => void client.close()) }
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0)

// They go on with one fleet, since the start of three programs takes longer than most of these tests; the last of them kills.
describe('of three instances', () => {
  let slow: Slow
  let rest: Backend
  let fleet: Instances
  before(async () => {
    slow = await Slow.start()
    rest = await backend({ body: 'rest', after: 20 })
    fleet = await instances(3, config(slow.peer, rest))
  })
  after(async () => {
    await fleet[Symbol.asyncDispose]()
    await slow[Symbol.asyncDispose]()
    await rest.stop()
  })
  const quiet = async () => {
    slow.longest = 60_000
    slow.answer()
    await eventually('nothing is in progress', () => slow.peer.busy === 0)
    slow.peer.peak = 0
  }
  beforeEach(quiet)
  /** A test of how soon something is so. */
  const soon = (name: string, go: () => Promise<void>) =>
    test(name, () =>
      undisturbed(async () => {
        await quiet()
        await go()
      }),
    )

  soon('a burst of a fair part is served at once, whichever of them gets it', async () => {
    const { peer } = slow
    const fair = limit / 3
    const spread = async () => (await leases(fleet, peer)).every((lease) => lease === fair)
    await eventually('idle instances have a fair part each', spread, 4 * interval)
    for (const one of fleet.list) {
      const before = peer.busy
      const burst = await begin(one, fair)
      await eventually('all of it is at the peer', () => peer.busy === before + fair, interval)
      slow.answer()
      assert.ok((await Promise.all(burst.replies)).every((reply) => reply?.text === 'slow'))
      burst.leave()
    }
  })

  soon(
    'the peer has the whole limit and never more, whoever asks, and leases go where they are needed',
    async () => {
      const { peer } = slow
      slow.longest = 300
      {
        await using everywhere = new Visitors(fleet.list, 10, 1)
        await eventually('it is full', () => peer.busy === limit, 5000)
        await sleep(1000)
        const shares = await leases(fleet, peer)
        assert.ok(Math.min(...shares) >= 2, `each has something: ${shares}`)
        assert.deepEqual(await everywhere.stop(), [])
      }
      for (const busy of [0, 2]) {
        await using one = new Visitors([fleet.at(busy)], 20, 1)
        const lease = async () => (await leases(fleet, peer))[busy]!
        // Three times a fair part but for two places that the others keep for their next requests.
        await eventually(`instance ${busy} has most`, async () => (await lease()) >= limit - 2, 12 * interval)
        // Once nobody has asked the others for a while they keep none.
        await eventually(`instance ${busy} alone fills it`, () => peer.busy === limit, 3000 + 12 * interval)
        assert.deepEqual(await one.stop(), [])
      }
      assert.equal(peer.peak, limit, 'the most at once')
      assert.ok(sum(await leases(fleet, peer)) <= limit)
    },
  )

  test('an instance that stands still for long and goes on exceeds the limit by no more than it held', async () => {
    const { peer } = slow
    const still = fleet.at(0)
    const held = await fill(still, peer, 8)
    // Long enough for it to have heard what it has leased, and so that nothing is under way.
    await sleep(2 * interval)
    const [leased] = await leases(fleet, peer)
    still.signal('SIGSTOP')
    await using others = new Visitors([fleet.at(1), fleet.at(2)], 10, 1)
    await eventually('the others have the whole limit', () => peer.busy === limit + 8, ttl + 4000)
    // These wait for it in the queue of its socket.
    await using waiting = new Visitors([still], 10, 1)
    still.signal('SIGCONT')
    await fleet.together()
    await sleep(3 * interval)
    assert.ok(peer.peak <= limit + leased!, `${peer.peak} at once, ${leased} leased`)
    slow.answer()
    assert.ok(
      (await Promise.all(held.replies)).every((reply) => reply?.status === 200),
      'what it held is answered',
    )
    held.leave()
    // From now on what is in progress ends soon, and as much as may begins in its place.
    slow.longest = 100
    slow.answer()
    const settled = async () => sum(await leases(fleet, peer)) <= limit && peer.busy <= limit
    await eventually('no more is leased than there is', settled, 4000)
    peer.peak = peer.busy
    await sleep(4 * interval)
    await eventually('nearly all of it is used', () => peer.peak > limit - 3)
    assert.ok(peer.peak <= limit, `${peer.peak} at once, later`)
    slow.longest = 0
    slow.answer()
    assert.deepEqual([...(await waiting.stop()), ...(await others.stop())], [])
  })

  test('without Redis each has a fair part at once and keeps to it, and with it again all is as before', async () => {
    const { peer } = slow
    slow.longest = 150
    {
      await using one = new Visitors([fleet.at(1)], 20, 1)
      await eventually('one has nearly all', async () => (await leases(fleet, peer))[1]! >= limit - 2, 5000)
      await redis.kill()
      const fair = async () => (await leases(fleet, peer)).every((lease) => lease === limit / 3)
      await eventually('each has a fair part, also where it had none', fair, ttl / 2)
      const burst = await begin(fleet.at(0), limit / 3)
      const replies = await Promise.all(burst.replies)
      assert.ok(
        replies.every((reply) => reply?.text === 'slow'),
        `${replies.map((reply) => reply?.text)}`,
      )
      burst.leave()
      assert.deepEqual(await one.stop(), [])
    }
    await using everywhere = new Visitors(fleet.list, 10, 1)
    await sleep(ttl + 3 * interval)
    peer.peak = peer.busy
    await eventually('all have their parts', () => peer.peak >= limit)
    await sleep(500)
    assert.equal(peer.peak, limit, 'a fair part each')
    peer.peak = peer.busy
    await redis.restart()
    await fleet.together()
    await sleep(ttl + 2 * interval)
    await eventually('all of it is used', () => peer.peak >= limit)
    assert.equal(peer.peak, limit, 'and no more when it is back')
    await eventually('it is leased', async () => sum(await leases(fleet, peer)) > limit - 3)
    const leased = sum(await leases(fleet, peer))
    assert.ok(leased <= limit, `${leased}`)
    assert.deepEqual(await everywhere.stop(), [])
  })

  test('what a killed instance held is free for the others after the ttl', async () => {
    const { peer } = slow
    const held = await fill(fleet.at(0), peer, 8)
    // A quarter more than it needs, once it has found that it needs no more.
    await sleep(5 * interval)
    const [leased] = await leases(fleet, peer)
    assert.ok(leased! > 8 && leased! <= 10, `${leased}`)
    fleet.at(0).signal('SIGKILL')
    const killedAt = performance.now()
    await eventually('its connections are gone', () => peer.busy === 0)
    held.leave()
    await using others = new Visitors([fleet.at(1), fleet.at(2)], 10, 1)
    await eventually('what it had not leased is used', () => peer.busy >= limit - leased!, 4 * interval)
    await eventually('all of it is used', () => peer.busy === limit, ttl + 3000)
    const took = performance.now() - killedAt
    assert.ok(took <= ttl + 2 * interval + 1000, `${took} ms`)
    assert.ok(took >= ttl - 2 * interval, `not before anybody knows: ${took} ms`)
    await sleep(2 * interval)
    assert.equal(peer.peak, limit)
    slow.longest = 0
    slow.answer()
    assert.deepEqual(await others.stop(), [])
  })
})

test('an instance alone serves a burst of nearly half the limit from its start, and soon of all of it', async () => {
  await using slow = await Slow.start()
  const { peer } = slow
  const text = `fleet ${redis.url} group=alone;
http {
  access_log off;
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
  upstream u { zone u 64k; server ${peer.address} max_conns=100 max_conns_scope=fleet max_fails=0; }
}`
  await using alone = await start(text)
  const first = await begin(alone, 30)
  await eventually('all are at the peer', () => peer.busy === 30)
  await eventually(
    'it has the whole limit',
    async () => (await sharedPeer(alone, peer.address)).fleet?.lease === 100,
  )
  const second = await begin(alone, 70)
  await eventually('all are at the peer', () => peer.busy === 100)
  slow.answer()
  const replies = await Promise.all([...first.replies, ...second.replies])
  assert.ok(replies.every((reply) => reply?.status === 200))
  for (const { leave } of [first, second]) leave()
})

test('threads of an instance have its lease together', async () => {
  await using slow = await Slow.start(200)
  await using rest = await backend({ body: 'rest', after: 20 })
  const { peer } = slow
  await using fleet = await instances(
    2,
    config(peer, rest, 'worker_processes 2;').replace('interval=', 'group=threads interval='),
  )
  await using everywhere = new Visitors(fleet.list, 12, 1)
  await eventually('it is full', () => peer.busy === limit, 5000)
  await sleep(700)
  assert.equal(peer.peak, limit)
  assert.deepEqual(await everywhere.stop(), [])
})

/** Has an instance fill the peer up to so many, by as many as its lease allows. */
async function fill(one: Sidecar, peer: Backend, count: number) {
  const begun: Awaited<ReturnType<typeof begin>>[] = []
  await eventually(
    `${count} are held`,
    async () => {
      const missing = count - peer.busy
      if (missing > 0) {
        begun.push(await begin(one, missing))
        await sleep(interval / 2)
      }
      return peer.busy === count
    },
    5000,
  )
  return {
    replies: begun.flatMap(({ replies }) => replies),
    leave: () => begun.forEach(({ leave }) => void leave()),
  }
}
