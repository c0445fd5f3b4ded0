// The verdict on a canary over all instances that have sent to it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Backends, backends } from '../../support/backend.ts'
import { dial } from '../../support/client.ts'
import { type Instances, instances } from '../../support/instances.ts'
import { eventually } from '../../support/invariants.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'
import type { Sidecar } from '../../support/sidecar.ts'

interface Verdict {
  readonly verdict: string
  readonly scope: string
  readonly instances: number
  readonly samples: Readonly<
    Record<'baseline' | 'canary', { attempts: number; errors: number; times: number }>
  >
  readonly grounds: readonly { readonly about: string; readonly text: string }[]
}

let redis: RedisServer
let peers: Backends
let fleet: Instances
before(async () => {
  redis = await redisServer()
  peers = await backends([
    { body: 'ok', after: 2 },
    { body: 'ok', after: 8 },
  ])
  const [stable, canary] = peers.list.map(({ address }) => address)
  fleet = await instances(
    2,
    `fleet ${redis.url} group=shop ttl=2s;
http {
  access_log off;
  upstream u { zone u 64k; server ${stable}; server ${canary} track=canary; }
  server { listen 127.0.0.1:PORT; location / { proxy_pass http://u; } }
}`,
  )
})
after(async () => {
  await fleet?.[Symbol.asyncDispose]()
  await peers?.[Symbol.asyncDispose]()
  await redis?.stop()
})

async function drive(sidecar: Sidecar, count: number): Promise<void> {
  const connection = await dial(sidecar.port)
  for (let i = 0; i < count; i++) await connection.ask('/')
  connection.close()
}

const verdictOf = (sidecar: Sidecar, query = '') => sidecar.json<Verdict>(`/canary/u${query}`)

const counts = ({ samples }: Verdict) => [samples.baseline.attempts, samples.canary.attempts]
const whose = ({ grounds }: Verdict) => grounds.find(({ about }) => about === 'samples')!.text

test('the samples of all instances are judged together, and those of one where that is asked for', async () => {
  await Promise.all([drive(fleet.at(0), 120), drive(fleet.at(1), 160)])
  for (const [i, own] of [60, 80].entries()) {
    const one = fleet.at(i)
    await eventually('all are heard', async () => counts(await verdictOf(one))[1] === 140, 8000)
    const merged = await verdictOf(one)
    assert.deepEqual(counts(merged), [140, 140])
    assert.deepEqual([merged.samples.canary.times, merged.samples.baseline.times], [140, 140])
    assert.deepEqual([merged.verdict, merged.scope, merged.instances], ['fail', 'fleet', 2])
    assert.equal(whose(merged), 'samples: of 2 instances; 2 share the group now')
    const alone = await verdictOf(one, '?scope=instance')
    assert.deepEqual(counts(alone), [own, own])
    assert.deepEqual([alone.verdict, alone.scope, alone.instances], ['inconclusive', 'instance', 1])
  }
})

test('what an instance that has ended has seen still counts', async () => {
  const { list } = fleet
  await drive(fleet.at(1), 20)
  // In order, so that the last of it is told.
  fleet.at(1).signal('SIGTERM')
  await fleet.at(1).exited
  assert.equal(list.length, 2)
  const merged = await verdictOf(fleet.at(0))
  assert.deepEqual([counts(merged), merged.instances], [[150, 150], 2])
})

test('without Redis the answer is the instance’s own, at once, and says so', async () => {
  await redis.kill()
  const one = fleet.at(0)
  await eventually('it is said', async () => (await verdictOf(one)).scope === 'instance', 5000)
  const began = performance.now()
  const alone = await verdictOf(one)
  assert.ok(performance.now() - began < 1000)
  assert.deepEqual([counts(alone), alone.instances, alone.verdict], [[60, 60], 1, 'inconclusive'])
  assert.match(
    whose(alone),
    /^samples: of this instance alone; of the others not all could be asked: redis at \S+ cannot be reached \(/,
  )
})

test('a Redis that comes back empty is told anew', async () => {
  await redis.start()
  const one = fleet.at(0)
  await eventually('Redis answers', async () => (await verdictOf(one)).scope === 'fleet', 5000)
  await fleet.add(1)
  const other = fleet.list.at(-1)!
  await eventually('it is told', async () => counts(await verdictOf(other))[1] === 60, 8000)
  assert.deepEqual(counts(await verdictOf(other, '?scope=instance')), [0, 0])
})
