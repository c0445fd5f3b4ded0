import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { groupKeys } from '../../../feedback/fleet/keys.ts'
import { packMinute, readMinute, sampleField } from '../../../feedback/fleet/sample-wire.ts'
import { Samples } from '../../../feedback/fleet/samples.ts'
import type { Minute } from '../../../feedback/reservoir.ts'
import type { Upstream } from '../../../feedback/upstream.ts'
import { seeded } from '../../support/dice.ts'
import { TestLink } from '../../support/link.ts'
import { group } from '../../support/peers.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'

let redis: RedisServer
let link: TestLink
before(async () => {
  redis = await redisServer()
  link = new TestLink({ urls: [redis.url], timeout: 1000 })
  link.start()
  await link.became(true)
})
after(async () => {
  await link?.stop()
  await redis?.stop()
})

const minuteMs = 60_000
/** The minute in which all clocks begin. */
const start = 29_930_000

let groups = 0

/** Instances of one group, each with a clock and timers of its own, which stand until they are moved. */
class Instance {
  wall = (start + 0.5) * minuteMs
  now = 0
  members = 2
  readonly upstream: Upstream
  readonly samples: Samples
  readonly keys
  readonly pending = new Set<() => void>()

  constructor(name: string, groupName: string, tracks = ['stable', 'canary']) {
    this.upstream = group(
      tracks.map((track) => ({ track })),
      { name: groupName },
    )
    this.keys = groupKeys('evenkeel', 'shop', groupName)
    this.samples = new Samples(name, {
      now: () => this.now,
      wall: () => this.wall,
      random: seeded(1),
      after: (_ms, run) => {
        this.pending.add(run)
        return () => this.pending.delete(run)
      },
      run: (script, keys, args) => link.run(script, keys, args),
    })
    const { upstream, keys } = this
    this.samples.use([{ upstream, keys, members: () => this.members }])
  }

  /** Attempts end now. */
  carry(track: string, attempts: number, errors = 0, ms = 20): void {
    for (let i = 0; i < attempts; i++) {
      const failed = i < errors
      this.upstream.tracks.get(track)!.reservoir!.add(failed, failed ? undefined : ms, this.wall, Math.random)
    }
  }

  /** What the others have told of the last ten minutes: a word for each part. */
  async heard(tracks = ['stable', 'canary']): Promise<string> {
    const to = Math.floor(this.wall / minuteMs)
    const { parts, instances, lack } = (await this.samples.hear(this.upstream, tracks, to - 10, to))!
    assert.equal(lack, undefined)
    const words = [...parts].map(([track, list]) => {
      const each = list.map(
        ({ minute, attempts, errors, timed, times }) =>
          `${minute - start}: ${attempts}/${errors}/${timed}/${times.length}`,
      )
      return `${track} ${each.join(' ')}`.trimEnd()
    })
    return `${instances} told, ${words.join(', ')}`
  }
}

function pair(names = ['one', 'two']): Instance[] {
  const name = `g${groups++}`
  return names.map((one) => new Instance(one, name))
}

test('each instance hears what the others have told, and not its own', async () => {
  const [one, two] = pair() as [Instance, Instance]
  one.carry('stable', 30, 2)
  two.carry('stable', 20)
  two.carry('canary', 10, 10)
  await one.samples.tell()
  await two.samples.tell()
  assert.equal(await one.heard(), '1 told, stable 0: 20/0/20/20, canary 0: 10/10/0/0')
  assert.equal(await two.heard(), '1 told, stable 0: 30/2/28/28, canary')
  assert.equal(await two.heard(['canary', 'other']), '0 told, canary, other')
})

test('a minute is told anew as long as it grows, and then no more', async () => {
  const [one, two] = pair() as [Instance, Instance]
  one.carry('canary', 5)
  await one.samples.tell()
  one.carry('canary', 5)
  one.wall += minuteMs
  one.carry('canary', 1)
  await one.samples.tell()
  two.wall = one.wall
  assert.equal(await two.heard(), '1 told, stable, canary 1: 1/0/1/1 0: 10/0/10/10')
  // Nothing is new: what is taken away stays away.
  await redis.command('DEL', one.keys.samples + start)
  await one.samples.tell()
  assert.equal(await two.heard(), '1 told, stable, canary 1: 1/0/1/1')
})

test('an instance that falls silent still counts for what it has told', async () => {
  const [one, two, three] = pair(['one', 'two', 'three']) as [Instance, Instance, Instance]
  one.carry('canary', 5)
  await one.samples.stop()
  two.carry('canary', 7)
  await two.samples.tell()
  assert.equal(one.pending.size, 0)
  assert.match(await three.heard(), /^2 told, stable, canary 0: (5|7)\/.* 0: (5|7)\//)
})

test('one that begins anew under its name after a reload is not there twice', async () => {
  const name = `g${groups++}`
  const before = new Instance('one', name)
  before.carry('canary', 5)
  await before.samples.stop()
  const again = new Instance('one', name)
  again.carry('canary', 5)
  await again.samples.tell()
  const two = new Instance('two', name)
  assert.equal(await two.heard(), '1 told, stable, canary 0: 5/0/5/5')
})

test('after a loss an hour is told anew, a few minutes at a time, the latest first', async () => {
  const [one, two] = pair() as [Instance, Instance]
  for (let minute = 0; minute < 6; minute++) {
    one.carry('canary', 1 + minute)
    await one.samples.tell()
    one.wall += minuteMs
  }
  two.wall = one.wall
  await redis.command('FLUSHALL')
  await one.samples.tell()
  assert.equal(await two.heard(), '0 told, stable, canary')
  one.samples.forget()
  await one.samples.tell()
  assert.equal(await two.heard(), '1 told, stable, canary 5: 6/0/6/6 4: 5/0/5/5 3: 4/0/4/4 2: 3/0/3/3')
  await one.samples.tell()
  assert.match(await two.heard(), / 1: 2\/0\/2\/2 0: 1\/0\/1\/1$/)
})

test('what is told expires by itself, all keys of a group lie in one slot, and nothing grows', async () => {
  const [one, two] = pair() as [Instance, Instance]
  for (let minute = 0; minute < 70; minute++) {
    one.carry('canary', 2000)
    one.carry('stable', 2000)
    await one.samples.tell()
    one.wall += minuteMs
  }
  const keys = (await redis.command('KEYS', `${one.keys.samples}*`)) as string[]
  assert.equal(keys.length, 70)
  for (const key of keys) {
    assert.ok(key.startsWith(`evenkeel:{shop/${one.upstream.name}}:`), key)
    const minute = Number(key.slice(one.keys.samples.length))
    const left = Number(await redis.command('PTTL', key))
    assert.ok(left > 60 * minuteMs && left <= 62 * minuteMs, `${minute - start}: ${left}`)
    assert.equal(await redis.command('HLEN', key), 2)
    const bytes = Number(
      await redis.command('HSTRLEN', key, ((await redis.command('HKEYS', key)) as string[])[0]!),
    )
    assert.equal(bytes, 24 + 4 * 1000)
  }
  two.wall = one.wall
  assert.match(await two.heard(), /^1 told, stable 69: 2000\/0\/2000\/1000 /)
})

test('the more instances share a group, the fewer times each tells, and the counts stay whole', async () => {
  const [one, two] = pair() as [Instance, Instance]
  one.carry('canary', 900)
  for (const [members, times] of [
    [0, 900],
    [2, 900],
    [4, 500],
    [15, 134],
    [100, 100],
  ] as const) {
    one.members = members
    one.samples.forget()
    await one.samples.tell()
    assert.equal(await two.heard(), `1 told, stable, canary 0: 900/0/900/${times}`)
  }
})

test('a minute of hundreds of instances is read in parts', async () => {
  const [one] = pair() as [Instance]
  const minute: Minute = { minute: start, attempts: 3, errors: 1, timed: 2, times: Float32Array.of(1, 2) }
  const fields = Array.from({ length: 300 }, (_, i) => [sampleField('canary', `i${i}`), packMinute(minute)])
  await redis.command('HSET', one.keys.samples + start, ...fields.flat().map((part) => part as string))
  const { parts, instances } = (await one.samples.hear(one.upstream, ['canary'], start, start))!
  assert.deepEqual([parts.get('canary')!.length, instances], [300, 300])
})

test('what cannot be right is left out, and another kind of key is no trouble', async () => {
  const [one, two] = pair() as [Instance, Instance]
  one.carry('canary', 3)
  await redis.command('SET', one.keys.samples + start, 'something')
  assert.equal(await two.heard(), '0 told, stable, canary')
  await one.samples.tell()
  await redis.command('HSET', one.keys.samples + start, 'canary/x', 'garbage', 'nonsense', 'y', 'canary/', '')
  assert.equal(await two.heard(), '1 told, stable, canary 0: 3/0/3/3')
})

test('names of tracks may have any characters', async () => {
  const name = `g${groups++}`
  const tracks = ['a/b', 'a', 'ä%2F']
  const [one, two] = [new Instance('x/y', name, tracks), new Instance('z', name, tracks)]
  for (const [i, track] of tracks.entries()) one.carry(track, 1 + i)
  await one.samples.tell()
  assert.equal(await two.heard(tracks), '1 told, a/b 0: 1/0/1/1, a 0: 2/0/2/2, ä%2F 0: 3/0/3/3')
})

test('where Redis does not answer that is said, with what was read before', async () => {
  const [one, two] = pair() as [Instance, Instance]
  one.carry('canary', 3)
  await one.samples.tell()
  let calls = 0
  const failing = new Samples('two', {
    now: () => 0,
    wall: () => two.wall,
    random: Math.random,
    after: () => () => {},
    run: async (script, keys, args) => {
      if (++calls > 1) throw new Error('no answer within 100 ms')
      return link.run(script, keys, args)
    },
  })
  failing.use([{ upstream: two.upstream, keys: two.keys, members: () => 2 }])
  const heard = (await failing.hear(two.upstream, ['canary'], start - 10, start))!
  assert.deepEqual([heard.instances, heard.lack, calls], [1, 'no answer within 100 ms', 2])
  // Nor does telling fail for it.
  two.carry('canary', 1)
  await failing.tell()
  assert.equal(calls, 3)
})

test('reading ends after two seconds, and says so', async () => {
  const [one] = pair() as [Instance]
  const slow = new Samples('two', {
    now: () => one.now,
    wall: () => one.wall,
    random: Math.random,
    after: () => () => {},
    run: async () => {
      one.now += 300
      return ['0']
    },
  })
  slow.use([{ upstream: one.upstream, keys: one.keys, members: () => 2 }])
  const heard = (await slow.hear(one.upstream, ['canary'], start - 59, start))!
  assert.equal(heard.lack, 'not all was read within 2 s')
  assert.equal(one.now, 2100)
})

test('a group that is not shared has nothing to be heard', async () => {
  const [one] = pair() as [Instance]
  assert.equal(await one.samples.hear(group([1], { name: 'other' }), ['canary'], start, start), undefined)
})

test('a minute comes out of its bytes as it went in, and broken bytes are nothing', () => {
  const times = Float32Array.of(0, 0.25, 1e6)
  const minute: Minute = { minute: 7, attempts: 2000, errors: 3, timed: 1997, times }
  const bytes = packMinute(minute)
  assert.deepEqual(readMinute(7, bytes), minute)
  const broken = (change: (bytes: Buffer) => Buffer | undefined) => {
    const copy = Buffer.from(bytes)
    return readMinute(7, change(copy) ?? copy)
  }
  const numbers: [number, number][] = [
    [0, Number.NaN],
    [0, 0],
    [0, -1],
    [0, 1.5],
    [8, 2001],
    [8, Number.POSITIVE_INFINITY],
    [16, 2],
    [16, 2001],
    [16, 1e300],
  ]
  for (const [at, value] of numbers) {
    assert.equal(
      broken((copy) => void copy.writeDoubleLE(value, at)),
      undefined,
      `${at} ${value}`,
    )
  }
  for (const value of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
    assert.equal(
      broken((copy) => void copy.writeFloatLE(value, 28)),
      undefined,
      `${value}`,
    )
  }
  for (const length of [0, 1, 23, 24, 25, 35]) {
    assert.equal(
      broken((copy) => copy.subarray(0, length)),
      undefined,
      `${length} bytes`,
    )
  }
  assert.equal(
    broken((copy) => Buffer.concat([copy, Buffer.alloc(4 * 998)])),
    undefined,
  )
})
