// Some instances lose the way to Redis, and others do not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../support/invariants.ts'
import { redisServer } from '../../support/redis.ts'
import { relay } from '../../support/relay.ts'
import { type Peer, shop } from '../../support/shop.ts'

const limit = 8
/** How long they are cut off, milliseconds: several times the ttl, or with `TEST_LONG=1` half a minute. */
const cutMs = process.env['TEST_LONG'] === '1' ? 30_000 : 8_000

/** The most requests that a peer had in any 200 ms between two moments. */
function densest({ askedAt }: Peer, from: number, to: number): number {
  const asked = askedAt!.filter((at) => at >= from && at < to)
  let most = 0
  for (let first = 0, last = 0; last < asked.length; last++) {
    while (asked[first]! < asked[last]! - 200) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}

test('instances that are cut off go on by themselves, and come back without a stir', async () => {
  await using redis = await redisServer()
  await using refusing = await relay(redis.port)
  await using swallowing = await relay(redis.port)
  const ports = [redis.port, redis.port, refusing.port, swallowing.port]
  await using open = await shop({
    fleets: ports.map((port) => `redis://127.0.0.1:${port} ttl=2s`),
    alone: false,
    most: limit,
    load: { clients: 5, every: 50 },
  })
  for (const peer of open.good) {
    peer.after = 30
    peer.askedAt = []
  }
  const [limited] = open.good
  await open.begin()
  await open.together()
  await open.oneProbe()
  limited!.peak = 0
  const from = performance.now()
  await sleep(3000)
  const to = performance.now()
  assert.ok(limited!.peak <= limit, `${limited!.peak} at once`)

  const watch = open.watch()
  await refusing.refuse()
  swallowing.swallow()
  const cut = open.instances.slice(2)
  await open.apart(3000, cut)
  await sleep(cutMs)
  const [one, two] = open.instances
  assert.deepEqual([await one!.members, await two!.members], [2, 2])
  // The two have all of the limit, and each of the others a fourth, as last heard.
  assert.ok(limited!.peak <= limit + 2 * Math.floor(limit / 4), `${limited!.peak} at once while cut`)
  limited!.peak = 0
  const healedAt = performance.now()
  await refusing.heal()
  // What was on its way arrives now.
  await swallowing.heal({ late: true })
  await open.together(5000)
  await open.oneProbe()
  await sleep(Math.max(0, healedAt + 4000 - performance.now()))
  watch.untouched()
  await watch.fast([from, to])
  assert.ok(limited!.peak <= limit + 2 * Math.floor(limit / 4), `${limited!.peak} at once when it heals`)
  for (const peer of open.good) {
    const usual = densest(peer, from, to)
    const then = densest(peer, healedAt - 200, healedAt + 4000)
    assert.ok(then <= 1.5 * usual + 10, `${then} requests in 200 ms, usually ${usual}`)
  }
  const said = watch.fleetLines.map((lines) => lines.length)
  assert.deepEqual(said, [0, 0, 2, 2], watch.fleetLines.flat().join('\n'))
  limited!.peak = limited!.busy
  await sleep(1000)
  assert.ok(limited!.peak <= limit, `${limited!.peak} at once afterwards`)
})

test('what was on its way for seconds is no news when it arrives', async () => {
  await using redis = await redisServer()
  await using way = await relay(redis.port)
  await using open = await shop({
    fleets: [`redis://127.0.0.1:${way.port} ttl=5s`, `${redis.url} ttl=5s`],
    alone: false,
  })
  await open.begin()
  await open.together()
  const [peer] = open.good
  const [one, two] = open.instances
  way.swallow()
  // It fails once, and one instance tells of it before it knows that it is cut off.
  const before = one!.stateLines.length
  peer!.failsNext = one!.sidecar.port
  await eventually('it is set aside', () => one!.stateLines.length > before)
  await open.apart(3000, [one!])
  const watch = two!.stateLines.length
  await sleep(2000)
  // Nothing tells this one by now that the peer is well.
  await two!.load!.stop()
  await sleep(300)
  await way.heal({ late: true })
  await open.together()
  await sleep(500)
  assert.deepEqual(two!.stateLines.slice(watch), [])
  for (const { load } of open.instances) assert.deepEqual(load!.failures, [])
})
