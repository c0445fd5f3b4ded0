// Redis goes away, hangs, and loses what it held, under instances that serve clients all the time.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { type Shop, shop } from '../../support/shop.ts'

let redis: RedisServer
let open: Shop
/** When nothing was wrong. */
let quiet: readonly [number, number]

before(async () => {
  redis = await redisServer()
  open = await shop({ fleets: Array.from({ length: 2 }, () => `${redis.url} ttl=2s`) })
  await open.begin()
  await open.together()
  const from = performance.now()
  await sleep(2000)
  quiet = [from, performance.now()]
  await open.oneProbe()
})

after(async () => {
  await open?.[Symbol.asyncDispose]()
  await redis?.stop()
})

const went =
  /^\[warn\] .*fleet: redis at \S+ cannot be reached \(.*\); balancing on this instance's view only$/
const came = /^\[notice\] .*fleet: redis at \S+ answers again$/

const gone = /^\[warn\] .*fleet: what was shared is gone from redis at \S+; beginning anew$/

/** Each instance has said that Redis went and came, and no more but that what it held is gone, at most once a minute. */
function onceEach(lines: readonly (readonly string[])[]): void {
  for (const all of lines) {
    const said = all.filter((line) => !gone.test(line))
    assert.ok(all.length - said.length <= 1, all.join('\n'))
    assert.equal(said.length, 2, said.join('\n'))
    assert.match(said[0]!, went)
    assert.match(said[1]!, came)
  }
}

test('a Redis that is stopped, and comes back empty, costs no client anything', async () => {
  const watch = open.watch()
  await redis.kill()
  await open.apart()
  const apart = performance.now()
  await sleep(2500)
  // By now each instance asks by itself.
  for (const peer of open.good) assert.ok(peer.probesSince(apart) >= 8, `${peer.probesSince(apart)} probes`)
  await redis.start()
  await open.together()
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
  onceEach(watch.fleetLines)
})

test('a Redis that hangs for three seconds costs no client anything', async () => {
  const watch = open.watch()
  redis.pause()
  await open.apart()
  await sleep(2500)
  redis.resume()
  await open.together()
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
  onceEach(watch.fleetLines)
})

test('scripts that Redis has forgotten are sent again, without a word', async () => {
  const watch = open.watch()
  const failures = await Promise.all(
    open.instances.map((instance) => instance.metric('evenkeel_fleet_exchange_failures_total')),
  )
  for (let i = 0; i < 5; i++) {
    await redis.command('SCRIPT', 'FLUSH')
    await sleep(250)
  }
  await open.together()
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
  assert.deepEqual(watch.fleetLines, [[], []])
  for (const [i, instance] of open.instances.entries()) {
    assert.equal(await instance.metric('evenkeel_fleet_exchange_failures_total'), failures[i])
  }
})

test('a Redis that loses all keys is told anew, and no peer comes back by that', async () => {
  const watch = open.watch()
  for (let i = 0; i < 5; i++) {
    await redis.command('FLUSHALL')
    await sleep(300)
  }
  await open.together()
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
  for (const said of watch.fleetLines) assert.ok(said.length <= 1 && said.every((line) => gone.test(line)))
  for (const instance of open.instances) {
    assert.ok((await instance.metric('evenkeel_upstream_fleet_resets_total'))! >= 5)
  }
})
