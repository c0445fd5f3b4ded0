import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet } from '../../../feedback/fleet/fleet.ts'
import type { Upstream } from '../../../feedback/upstream.ts'
import { fleetEnv, fleetOptions } from '../../support/fleet-options.ts'
import { group } from '../../support/peers.ts'
import { redisServer } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

function shared(name: string): Upstream {
  return Object.assign(group([1], { name }), { fleet: true })
}

test('that what was shared is gone is said once, whatever the number of groups and of losses', async () => {
  await using server = await redisServer()
  const lines: string[] = []
  const fleet = new Fleet(
    fleetOptions(server),
    fleetEnv((text) => lines.push(text)),
  )
  const groups = [shared('a'), shared('b')]
  const resets = () => groups.map((one) => fleet.upstream(one)?.resets)
  fleet.use(groups)
  fleet.start()
  await until(() => groups.every((one) => fleet.upstream(one)?.age !== undefined))
  const at = `redis at 127.0.0.1:${server.port}`
  assert.deepEqual(lines, [`[notice] fleet: sharing through ${at}`])
  await server.command('FLUSHALL')
  await until(() => resets().every((count) => count === 1))
  await server.command('FLUSHALL')
  await until(() => resets().every((count) => count === 2))
  await fleet.stop()
  assert.deepEqual(lines.slice(1), [`[warn] fleet: what was shared is gone from ${at}; beginning anew`])
})

test('what was heard last counts, over a loss of Redis and in the place of another fleet', async () => {
  await using server = await redisServer()
  const lines: string[] = []
  const env = fleetEnv((text) => lines.push(text))
  const one = new Fleet(fleetOptions(server, { timeout: 100 }), env)
  assert.equal(one.silence, undefined)
  one.use([shared('a')])
  one.start()
  await until(() => one.exchanges > 0)
  assert.ok(one.silence! < 500)
  assert.equal(one.required, false)
  one.require(true)
  assert.equal(one.required, true)
  await server.kill()
  await until(() => !one.up)
  await sleep(300)
  assert.ok(one.silence! > 250 && one.silence! < 5000)
  assert.match(lines.at(-1)!, /, not ready after 1000 ms$/)
  const other = new Fleet(fleetOptions(server, { interval: 60 }), env, one)
  assert.ok(other.silence! >= 300)
  await Promise.all([one.stop(), other.stop()])
})
