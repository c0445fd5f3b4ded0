import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet } from '../../../feedback/fleet/fleet.ts'
import { holdConn } from '../../../feedback/held.ts'
import type { Upstream } from '../../../feedback/upstream.ts'
import { fleetEnv, fleetOptions } from '../../support/fleet-options.ts'
import { group } from '../../support/peers.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

let server: RedisServer
before(async () => {
  server = await redisServer()
})
after(() => server.stop())

function fleetOf(name: string): Fleet {
  return new Fleet(fleetOptions(server, { name }), fleetEnv())
}

let groups = 0

/** A group that is shared, with a peer whose limit is. */
function limited(name = `limited${groups++}`): Upstream {
  const upstream = group([{ max_conns: 12, max_conns_scope: 'fleet' }], { name })
  return Object.assign(upstream, { fleet: true })
}

test('an answer that comes while the fleet is being left changes nothing any more', async () => {
  const upstream = limited()
  const fleet = fleetOf('one')
  fleet.use([upstream])
  fleet.start()
  const { lease } = upstream.zone.peers
  await until(() => lease[0]! > 0)
  server.pause()
  // There is something to tell, and soon an exchange is under way.
  holdConn(upstream.zone, 0, 1)
  await sleep(100)
  const stopped = fleet.stop()
  assert.equal(lease[0], 0)
  server.resume()
  await stopped
  await sleep(50)
  assert.equal(lease[0], 0, 'the limit is this instance’s own again')
  assert.equal(fleet.upstream(upstream), undefined)
})

test('an answer for a group that a reload has taken out changes nothing any more', async () => {
  const [kept, gone] = [limited(), limited()]
  const fleet = fleetOf('two')
  fleet.use([kept, gone])
  fleet.start()
  await until(() => kept.zone.peers.lease[0]! > 0 && gone.zone.peers.lease[0]! > 0)
  server.pause()
  for (const { zone } of [kept, gone]) holdConn(zone, 0, 1)
  await sleep(100)
  fleet.use([kept])
  server.resume()
  await sleep(150)
  assert.equal(gone.zone.peers.lease[0], 0)
  assert.ok(kept.zone.peers.lease[0]! > 0)
  await fleet.stop()
})

test('whoever ends is gone for the others at their next exchange', async () => {
  const [mine, others] = [limited('common'), limited('common')]
  const [one, other] = [fleetOf('one'), fleetOf('other')]
  for (const [fleet, upstream] of [[one, mine] as const, [other, others] as const]) {
    fleet.use([upstream])
    fleet.start()
  }
  await until(() => other.upstream(others)?.members === 2)
  const from = performance.now()
  await one.stop()
  await until(() => other.upstream(others)?.members === 1)
  assert.ok(performance.now() - from < 500, 'long before the ttl of a second')
  await other.stop()
})

test('where another fleet comes in its place an instance takes no more of a limit than a fair part', async () => {
  const upstreams = [limited('handed'), limited('handed')] as const
  const fleets = [fleetOf('one'), fleetOf('other')] as const
  for (const [i, fleet] of fleets.entries()) {
    fleet.use([upstreams[i]!])
    fleet.start()
  }
  await until(() => fleets[0].upstream(upstreams[0])?.members === 2)
  await fleets[0].stop(true)
  const { lease } = upstreams[0].zone.peers
  assert.equal(lease[0], 6 + 1)
  const next = fleetOf('one')
  next.use([upstreams[0]])
  assert.equal(lease[0], 6 + 1, 'until it has heard how many there are')
  next.start()
  await until(() => next.upstream(upstreams[0])?.members === 2)
  await Promise.all([next.stop(), fleets[1].stop()])
  assert.equal(lease[0], 0)
})
