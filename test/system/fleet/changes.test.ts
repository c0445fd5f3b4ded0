// Instances that leave and come back, and configurations that change while they share.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { Instances, instances, sharedGroup, sharedPeer, Visitors } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'

let redis: RedisServer
before(async () => {
  redis = await redisServer()
})
after(() => redis.stop())

const limit = 12

/** @param fleet parameters after the URL; undefined: there is none */
function config(peer: string, rest: string, fleet: string | undefined): string {
  return `${fleet === undefined ? '' : `fleet ${redis.url} ${fleet};`}
http {
  access_log off;
  upstream u { zone u 64k; least_time header;
    server ${peer} max_conns=${limit} ${fleet === undefined ? '' : 'max_conns_scope=fleet'};
    server ${rest} backup; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
}`
}

test('an instance that is told to end is gone for the others at once, with its lease, and so is a new one there', async () => {
  await using peer = await backend({ body: 'peer', after: 150 })
  await using rest = await backend({ body: 'rest', after: 10 })
  await using fleet = await instances(2, config(peer.address, rest.address, 'group=ends ttl=3s'))
  const [first, second] = [fleet.at(0), fleet.at(1)]
  const lease = async () => (await sharedPeer(second, peer.address)).fleet?.lease ?? 0
  {
    await using busy = new Visitors([first], 20, 1)
    // For as long as a ttl nobody gets more than a fair part of what may be anybody's.
    await eventually('the first has most', async () => (await lease()) <= 1 && peer.busy >= limit - 2, 12_000)
    assert.deepEqual(await busy.stop(), [])
  }
  await using visitors = new Visitors([second], 20, 1)
  first.signal('SIGTERM')
  assert.deepEqual(await first.exited, { code: 0, signal: null })
  fleet.list.shift()
  const endedAt = performance.now()
  await fleet.together('u', 1)
  assert.ok(performance.now() - endedAt < 2000, 'long before the ttl')
  await eventually('the other has its lease', async () => (await lease()) === limit && peer.busy === limit)
  await fleet.add(1)
  await fleet.together('u', 2)
  assert.equal(peer.peak, limit)
  assert.deepEqual(await visitors.stop(), [])
})

test('a fleet is joined, changed and left by reloads under load, without a request that fails', async () => {
  await using peer = await backend({ body: 'peer', after: 20 })
  await using rest = await backend({ body: 'rest', after: 10 })
  const text = (fleet: string | undefined) => config(peer.address, rest.address, fleet)
  await using fleet = new Instances(text(undefined), {})
  await fleet.add(2)
  await using visitors = new Visitors(fleet.list, 10, 2)
  const one = fleet.at(0)
  const reload = async (its: string | undefined) => {
    for (const each of fleet.list) await each.reload(text(its))
  }
  await sleep(300)
  assert.equal((await sharedGroup(one)).fleet, undefined)
  const { avg } = (await sharedPeer(one, peer.address)).evenkeel
  assert.ok(avg > 15, `${avg}`)

  await reload('group=reloads')
  await fleet.together()
  await eventually('answers are told', async () => {
    return ((await sharedPeer(one, peer.address)).fleet?.answers ?? 0) > 20
  })
  const { selected, fleet: before } = await sharedPeer(one, peer.address)
  await reload('group=reloads')
  const kept = await sharedPeer(one, peer.address)
  assert.ok(kept.selected.total >= selected.total, 'counts go on')
  assert.ok(kept.fleet!.answers >= before!.answers, 'and so do those of the fleet')

  await reload('group=reloads interval=100ms')
  await fleet.together()
  await eventually('they share as before', async () => {
    return ((await sharedPeer(one, peer.address)).fleet?.answers ?? 0) > before!.answers
  })
  assert.equal((await sharedGroup(one)).fleet?.resets, 0)
  assert.equal(await one.json<number>('/status/fleet/interval'), 100)
  await eventually('the limit holds', () => peer.busy <= limit)
  peer.peak = peer.busy
  await eventually('all of it is used', () => peer.peak >= limit)
  await sleep(600)
  assert.equal(peer.peak, limit, 'the limit is still common')

  await reload(undefined)
  assert.equal((await sharedGroup(one)).fleet, undefined)
  peer.peak = peer.busy
  await eventually('each has the limit for its own', () => peer.peak > limit + 4)
  assert.ok((await sharedPeer(one, peer.address)).evenkeel.avg > 15, 'what was learnt is known')
  assert.deepEqual(await visitors.stop(), [])
})
