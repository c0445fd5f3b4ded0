import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { exchange } from '../../../feedback/fleet/exchange.ts'
import { groupKeys } from '../../../feedback/fleet/keys.ts'
import type { Heard, Update } from '../../../feedback/fleet/told.ts'
import { packSent, readHeard } from '../../../feedback/fleet/wire.ts'
import { redisServer } from '../../support/redis.ts'
import { silent } from '../../support/silent-update.ts'

type Told = readonly { readonly name: string; readonly update: Update }[]

/** What one instance hears that tells this. */
async function tell(redis: Redis, id: string, updates: Told, known?: Heard): Promise<Heard> {
  const { state, changed, members, told } = groupKeys('evenkeel', 'app', 'wire')
  const { epoch = '', version = 0, at = 0, members: count = 0 } = known ?? {}
  const sent = { id, ttl: 5000, epoch, version, at, members: count, requests: 0, retries: 0, updates }
  const answer = await redis.callBuffer(
    'EVAL',
    exchange.text,
    4,
    state,
    changed,
    members,
    told + id,
    ...packSent(sent, 60_000, told),
  )
  return readHeard(answer, updates)
}

test('of a group of thousands every record goes to where it belongs, told or not', async () => {
  await using server = await redisServer()
  const redis = new Redis(server.url)
  try {
    const all: Told = Array.from({ length: 5000 }, (_, i) => ({
      name: `peer ${i}`,
      // Every third has more to tell than that it answers, and every seventh a limit.
      update: {
        ...silent,
        answers: i,
        good: i % 5,
        conns: i % 11,
        ejections: i % 3 === 0 ? 1 : 0,
        limit: i % 7 === 0 ? 100 : 0,
        want: 20,
      },
    }))
    const check = (heard: Heard, times: number) => {
      assert.equal(heard.peers.size, all.length)
      for (const [i, { name }] of all.entries()) {
        const record = heard.peers.get(name)!
        assert.equal(record.answers, times * i, name)
        assert.equal(record.good, times * (i % 5), name)
        assert.equal(record.conns, times * (i % 11), name)
        assert.equal(record.ejections, i % 3 === 0 ? times : 0, name)
        assert.equal(record.ejectedAt > 0, i % 3 === 0, name)
      }
    }
    // Nothing happens at the moment at which the state begins.
    const begun = await tell(redis, 'a', [])
    const first = await tell(redis, 'a', all, begun)
    check(first, 1)
    assert.deepEqual(
      first.leases,
      all.map((_, i) => (i % 7 === 0 ? 20 : 0)),
    )
    const joined = await tell(redis, 'b', [])
    check(joined, 1)
    const both = await tell(redis, 'b', all, joined)
    check(both, 2)
    // Who has told of nothing since hears what the other has.
    check(await tell(redis, 'a', [], first), 2)
    const some = all.slice(2000, 2003)
    const heard = await tell(redis, 'b', some, both)
    assert.deepEqual(
      [...heard.peers].map(([name, { answers }]) => [name, answers]),
      some.map(({ name, update }) => [name, 3 * update.answers]),
    )
    const left = await tell(
      redis,
      'a',
      all.map(({ name }) => ({ name, update: { ...silent, leaves: true } })),
    )
    assert.equal(left.peers.get('peer 7')?.members, 1)
    const gone = await tell(
      redis,
      'b',
      all.map(({ name }) => ({ name, update: { ...silent, leaves: true } })),
    )
    assert.equal(gone.peers.size, 0)
  } finally {
    redis.disconnect()
  }
})

test('what is no answer of the script is an error, and not numbers', () => {
  const answer = ['epoch', 1, '0.5', 1, 0, 0, 0, Buffer.alloc(0), Buffer.alloc(49), [], Buffer.alloc(0), []]
  assert.equal(readHeard(answer, [{ name: 'a' }]).peers.get('a')?.members, 0)
  for (const wrong of [undefined, 'OK', [], answer.slice(1)]) {
    assert.throws(() => readHeard(wrong, []), TypeError)
  }
  assert.throws(() => readHeard(answer, [{ name: 'a' }, { name: 'b' }]), RangeError)
  assert.throws(() => readHeard(answer.with(8, 'text'), [{ name: 'a' }]), TypeError)
})
