// Instances that share through several servers of which one is lost, and through one that is short of memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisServer, redisCluster, redisSentinels, redisServer } from '../../support/redis.ts'
import { type Shop, shop } from '../../support/shop.ts'

/** Lets clients ask for a while with nothing wrong. @returns from and to */
async function quietTime(open: Shop): Promise<readonly [number, number]> {
  const from = performance.now()
  await sleep(1500)
  return [from, performance.now()]
}

test('a master that dies is replaced, and one that was made a replica is left', async () => {
  await using redis = await redisSentinels()
  const fleet = `${redis.urls[0]} sentinel=${redis.name} ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  await open.together()
  const quiet = await quietTime(open)

  const first = open.watch()
  await redis.killMaster()
  await open.apart()
  // The sentinel takes half a second to see it, and one or two to appoint another.
  await open.together(10_000)
  await open.oneProbe()
  first.untouched()
  first.fast(quiet)
  for (const said of first.fleetLines) assert.equal(said.length, 2, said.join('\n'))

  // The old one comes back as a replica, and takes over again while the other lives on and refuses writes.
  const [sentinel] = redis.sentinels
  await redis.master.start()
  await untilFollows(redis.master, sentinel!, redis.name)
  const second = open.watch()
  await sentinel!.command('SENTINEL', 'FAILOVER', redis.name)
  await untilRole(redis.master, 'master')
  await untilRole(redis.replica, 'slave')
  await open.together(5000)
  await open.oneProbe()
  second.untouched()
  second.fast(quiet)
  for (const said of second.fleetLines) assert.ok(said.length <= 2, said.join('\n'))
})

/** Waits until a server follows the master, and the sentinel would let it take over. */
async function untilFollows(server: RedisServer, sentinel: RedisServer, name: string): Promise<void> {
  for (const end = performance.now() + 15_000; ; await sleep(50)) {
    const known = (await sentinel.command('SENTINEL', 'replicas', name)) as string[][]
    const good = known.some((fields) => {
      const value = (word: string) => fields[fields.indexOf(word) + 1]
      return (
        value('port') === String(server.port) &&
        value('flags') === 'slave' &&
        value('master-link-status') === 'ok'
      )
    })
    if (good) return
    if (performance.now() > end) throw new Error('the old master does not follow')
  }
}

async function untilRole(server: RedisServer, role: string): Promise<void> {
  for (const end = performance.now() + 15_000; ; await sleep(50)) {
    const now = ((await server.command('ROLE')) as unknown[])[0]
    if (now === role) return
    if (performance.now() > end) throw new Error(`port ${server.port} is a ${now} for good`)
  }
}

test('a cluster keeps what belongs together in one place, and goes on without a node', async () => {
  await using redis = await redisCluster()
  const fleet = `${redis.urls.join(' ')} cluster ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  await open.together()
  const quiet = await quietTime(open)
  await open.oneProbe()
  const watch = open.watch()
  const keys = await Promise.all(redis.nodes.map((node) => node.command('DBSIZE')))
  const home = redis.nodes[keys.findIndex((count) => Number(count) > 0)]!
  home.pause()
  await sleep(3000)
  home.resume()
  await open.together(10_000)
  await open.oneProbe()
  await home.restart()
  await open.together(10_000)
  await open.oneProbe()
  watch.untouched()
  watch.fast(quiet)
})

test('a Redis that evicts keys is warned of, and what is lost is unknown and not well', async () => {
  await using redis = await redisServer({ config: { maxmemory: '2mb', 'maxmemory-policy': 'allkeys-lru' } })
  const fleet = `${redis.url} ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  for (const { fleetLines } of open.instances) {
    assert.equal(fleetLines.filter((line) => line.includes('[warn]')).length, 1, fleetLines.join('\n'))
    assert.match(fleetLines.join('\n'), /may evict keys \(maxmemory-policy allkeys-lru\)/)
  }
  await open.together()
  const quiet = await quietTime(open)
  const watch = open.watch()
  let over = false
  const value = Buffer.alloc(20_000, 'x')
  const fill = async () => {
    for (let i = 0; !over; i++) {
      await redis.command('SET', `other:${i}`, value)
      await sleep(5)
    }
  }
  const filling = fill()
  await sleep(6000)
  over = true
  await filling
  const [stats] = [String(await redis.command('INFO', 'stats'))]
  assert.ok(Number(/evicted_keys:(\d+)/.exec(stats)?.[1]) > 100, 'keys were evicted')
  await open.together()
  await open.oneProbe()
  watch.untouched()
  watch.fast(quiet)
})
