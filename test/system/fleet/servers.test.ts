// Instances that share through servers of which one turns read-only, and through one that is short of memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../support/invariants.ts'
import { redisServer } from '../../support/redis.ts'
import { shop } from '../../support/shop.ts'

/** Lets clients ask for a while with nothing wrong. @returns from and to */
async function quietTime(): Promise<readonly [number, number]> {
  const from = performance.now()
  await sleep(1500)
  return [from, performance.now()]
}

test('a server that turns read-only is left for the next one, and nothing comes back with it', async () => {
  await using one = await redisServer()
  await using two = await redisServer({ config: { replicaof: `127.0.0.1 ${one.port}` } })
  await eventually(
    'there is a copy',
    async () => String(await two.command('INFO', 'replication')).includes('master_link_status:up'),
    10_000,
  )
  const fleet = `${one.url} ${two.url} ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  await open.together()
  const quiet = await quietTime()
  const watch = open.watch()
  await two.command('REPLICAOF', 'NO', 'ONE')
  await one.command('REPLICAOF', '127.0.0.1', two.port)
  await open.together()
  await eventually('the new one is told', async () => Number(await two.command('DBSIZE')) > 0)
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
  for (const said of watch.fleetLines) {
    assert.equal(said.length, 2, said.join('\n'))
    assert.match(said[0]!, /cannot be used \(it is a read-only replica\)/)
  }
})

test('a Redis that evicts keys is warned of, and what is lost is unknown and not well', async () => {
  await using redis = await redisServer({ config: { maxmemory: '64mb', 'maxmemory-policy': 'allkeys-lru' } })
  const fleet = `${redis.url} ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  for (const { fleetLines } of open.instances) {
    const warnings = fleetLines.filter((line) =>
      line.includes('may evict keys (maxmemory-policy allkeys-lru)'),
    )
    assert.equal(warnings.length, 1, fleetLines.join('\n'))
  }
  await open.together()
  const quiet = await quietTime()
  const watch = open.watch()
  // Little more than it needs now: what is to be evicted is evicted from here on, and nothing before.
  const used = /used_memory:(\d+)/.exec(String(await redis.command('INFO', 'memory')))
  await redis.command('CONFIG', 'SET', 'maxmemory', Number(used![1]) + 20_000)
  let over = false
  const value = Buffer.alloc(1000, 'x')
  const fill = async () => {
    for (let i = 0; !over; i++) {
      // Now and then even all that can be evicted is not enough.
      await redis.command('SET', `other:${i}`, value).catch(() => {})
      await sleep(3)
    }
  }
  const filling = fill()
  await sleep(4500)
  over = true
  await filling
  const [stats] = [String(await redis.command('INFO', 'stats'))]
  assert.ok(Number(/evicted_keys:(\d+)/.exec(stats)?.[1]) > 100, 'keys were evicted')
  const resets = await open.instances[0]!.metric('evenkeel_upstream_fleet_resets_total')
  assert.ok(resets! > 2, 'what was shared was among them')
  await redis.command('CONFIG', 'SET', 'maxmemory', '64mb')
  await open.together()
  await open.oneProbe()
  watch.untouched()
  await watch.fast(quiet)
})
