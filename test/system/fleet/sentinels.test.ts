// Instances that share through a master that sentinels watch, and that is replaced.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisSentinels } from '../../support/redis.ts'
import { shop } from '../../support/shop.ts'

/** Lets clients ask for a while with nothing wrong. @returns from and to */
async function quietTime(): Promise<readonly [number, number]> {
  const from = performance.now()
  await sleep(1500)
  return [from, performance.now()]
}

test('a master that is made a replica is left for the new one, and so is one that dies', async () => {
  await using redis = await redisSentinels()
  const [sentinel] = redis.sentinels
  // How often the sentinel looks; ten seconds are usual.
  await sentinel!.command('SENTINEL', 'DEBUG', 'info-period', '500')
  const fleet = `${redis.urls[0]} sentinel=${redis.name} ttl=2s`
  await using open = await shop({ fleets: [fleet, fleet] })
  await open.begin()
  await open.together()
  const quiet = await quietTime()
  const first = open.watch()
  await sentinel!.command('SENTINEL', 'FAILOVER', redis.name)
  await roleOf(redis.replica, 'master')
  await roleOf(redis.master, 'slave')
  await open.together()
  await open.oneProbe()
  first.untouched()
  await first.fast(quiet)
  for (const said of first.fleetLines) assert.ok(said.length <= 2, said.join('\n'))
  await follows(redis.master, sentinel!, redis.name)
  const second = open.watch()
  await redis.killMaster()
  await open.apart()
  await roleOf(redis.master, 'master')
  await open.together()
  await open.oneProbe()
  second.untouched()
  await second.fast(quiet)
  for (const said of second.fleetLines) assert.equal(said.length, 2, said.join('\n'))
})

/** Waits until the sentinel would let a server take over. */
async function follows(server: RedisServer, sentinel: RedisServer, name: string): Promise<void> {
  await eventually(
    'the old master follows the new one',
    async () => {
      const known = (await sentinel.command('SENTINEL', 'replicas', name)) as string[][]
      return known.some((fields) => {
        const value = (word: string) => fields[fields.indexOf(word) + 1]
        return value('port') === `${server.port}` && value('master-link-status') === 'ok'
      })
    },
    15_000,
  )
}

async function roleOf(server: RedisServer, role: string): Promise<void> {
  const is = async () => {
    // Clients are thrown out as the role changes.
    const answer = await server.command('ROLE').catch(() => [])
    return Array.isArray(answer) && answer[0] === role
  }
  await eventually(`port ${server.port} is a ${role}`, is, 15_000)
}
