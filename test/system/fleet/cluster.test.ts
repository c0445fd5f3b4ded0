// Instances that share through a cluster of Redis servers, of which one hangs, and dies.

import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { redisCluster } from '../../support/redis.ts'
import { shop } from '../../support/shop.ts'

test('a cluster keeps what belongs together in one place, and goes on without a node', async () => {
  await using redis = await redisCluster()
  const fleet = `${redis.urls.join(' ')} cluster ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  await open.together()
  const quiet = await quietTime()
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
  await watch.fast(quiet)
})

/** Lets clients ask for a while with nothing wrong. @returns from and to */
async function quietTime(): Promise<readonly [number, number]> {
  const from = performance.now()
  await sleep(1500)
  return [from, performance.now()]
}
