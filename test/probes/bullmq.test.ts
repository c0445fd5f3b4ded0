import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { monotonic } from '../../feedback/clock.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { SharedOptions } from '../../probes/shared.ts'
import { Prober } from '../../probes/timer.ts'
import { TestBoard } from '../support/board.ts'
import { answered, liveProbe, scriptedKind } from '../support/live-probe.ts'
import { group, type PeerSketch } from '../support/peers.ts'
import { type RedisServer, redisCluster, redisServer } from '../support/redis.ts'
import { undisturbed } from '../support/undisturbed.ts'
import { until } from '../support/until.ts'

let server: RedisServer
/** Who was asked, by which instance, and when. */
let asked: { peer: string; by: string; at: number }[] = []
/** Peers whose probes fail. */
const ill = new Set<string>()
let instances: Instance[] = []

before(async () => {
  server = await redisServer()
})
after(async () => {
  await end()
  await server.stop()
})

async function end(): Promise<void> {
  await Promise.all(instances.map((instance) => instance.end()))
  instances = []
}

/** A test of instances that come together and ask at a pace. */
const timed = (name: string, go: () => Promise<void>) =>
  test(name, () =>
    undisturbed(async () => {
      await end()
      server.resume()
      if (server.pid === undefined) await server.restart()
      await server.command('FLUSHALL')
      asked = []
      ill.clear()
      await go()
      await end()
    }),
  )

interface Sketch {
  readonly peers?: readonly PeerSketch[]
  readonly probe?: Partial<LiveProbe>
  readonly ports?: readonly number[]
  readonly cluster?: boolean
  readonly options?: Partial<SharedOptions>
  readonly random?: () => number
}

/** One instance of the fleet, with a group of its own. */
class Instance {
  readonly id: string
  readonly upstream: Upstream
  readonly board: TestBoard
  readonly prober: Prober
  /** What the answers wait for. */
  hold: Promise<void> | undefined
  /** Whether its way to the peers is broken. */
  lost = false
  readonly said: string[] = []

  constructor(
    id: string,
    { peers = [1], probe = {}, ports, cluster, options, random = Math.random }: Sketch = {},
  ) {
    this.id = id
    this.upstream = group(peers)
    this.board = new TestBoard(id, ports ?? [server.port], [this.upstream], cluster)
    this.prober = new Prober(
      {
        now: monotonic,
        wall: Date.now,
        random,
        after(ms, run) {
          const timer = setTimeout(run, ms)
          return () => clearTimeout(timer)
        },
        say: (text) => this.said.push(text),
      },
      options,
    )
    this.prober.share(this.board)
    this.probe(probe)
    instances.push(this)
  }

  /** Puts a probe in the place of the one before. */
  probe(more: Partial<LiveProbe>): void {
    const kind = scriptedKind(async ({ name }, { signal }) => {
      asked.push({ peer: name, by: this.id, at: performance.now() })
      const given = new Promise((resolve) => signal.addEventListener('abort', resolve))
      if (this.hold) await Promise.race([this.hold, given])
      return answered({ passed: !ill.has(name) && !this.lost })
    })
    const probe = liveProbe(this.upstream, kind, { interval: 200, timeout: 150, scope: 'fleet', ...more })
    this.prober.use([probe])
  }

  get health(): string {
    const { zone, peers } = this.upstream
    return peers.map(({ index }) => zone.peers.probeHealth[index]).join('')
  }

  counted(peer = 0): number {
    return this.upstream.zone.peers.probes[this.upstream.peers[peer]!.index]!
  }

  async end(): Promise<void> {
    await this.prober.stop()
    this.board.close()
  }
}

function make(count: number, sketch: Sketch = {}): Instance[] {
  return Array.from({ length: count }, (_, i) => new Instance(`i${i}`, sketch))
}

/** Keys of the queues, without what goes before and their names. */
async function schedulers(): Promise<string[]> {
  const keys = (await server.command('KEYS', '*:repeat')) as string[]
  const all = await Promise.all(keys.map((key) => server.command('ZRANGE', key, 0, -1) as Promise<string[]>))
  return all.flat().sort()
}

interface Pace {
  /** The interval, milliseconds. */
  readonly every?: number
  /** Askings that may come beside those of the pace. */
  readonly extra?: number
  /** Intervals that the middle one of all pauses may last. */
  readonly slow?: number
  /** Which askings are looked at. */
  readonly of?: (one: (typeof asked)[number]) => boolean
}

/**
 * Waits until a peer has been asked so many times more, and checks the pace: there is no burst, and the middle one of
 * the pauses is about an interval. A machine that stands still for a moment makes one pause longer, and no burst.
 */
async function paced(
  count: number,
  { every = 200, extra = 0, slow = 1.75, of = () => true }: Pace = {},
): Promise<void> {
  const from = performance.now()
  const all = () => asked.filter((one) => one.at >= from && of(one))
  await until(() => all().length >= count, 60 * every)
  const at = all()
    .slice(0, count)
    .map((one) => one.at)
  const pauses = at.slice(1).map((moment, i) => Math.round(moment - at[i]!))
  const said = `${pauses} ms between ${count} probes, the first after ${Math.round(at[0]! - from)} ms`
  // Of a pace the first may be due at once.
  assert.ok(at.at(-1)! - from >= (count - 1.5 - extra) * every, said)
  const middle = pauses.toSorted((a, b) => a - b)[Math.floor((pauses.length - 1) / 2)]!
  assert.ok(middle <= slow * every, said)
}

/** What Redis knows of each probe of each peer, as it is written there. */
async function recordsText(): Promise<string> {
  const all = (await server.command('HGETALL', 'evenkeel:{app/backend}:1:state')) as string[]
  return all.filter((_, i) => i % 2 === 1 && all[i - 1]!.startsWith('r')).join('\n')
}

/** Of the one list of that name. */
async function lengthOf(pattern: string): Promise<number> {
  const [key] = (await server.command('KEYS', pattern)) as string[]
  return key === undefined ? 0 : Number(await server.command('LLEN', key))
}

for (const count of [1, 3, 10]) {
  timed(`a peer gets one probe an interval of ${count} instance${count === 1 ? '' : 's'}`, async () => {
    make(count)
    await until(() => asked.length >= 2)
    asked = []
    // Each of those who begin together enters the schedule, which may move once.
    await paced(7, { extra: count > 1 ? 1 : 0 })
    const heard = asked.length
    // All hear of all.
    await until(() => instances.every((instance) => instance.counted() >= heard))
    await until(() => {
      const counts = instances.map((instance) => instance.counted())
      return Math.max(...counts) - Math.min(...counts) <= 1
    })
    assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  })
}

timed('twenty restarts leave one schedule of a probe, and its pace', async () => {
  const stays = new Instance('stays')
  for (let i = 0; i < 20; i++) {
    const instance = new Instance(`r${i}`)
    await sleep(30 + 5 * (i % 5))
    await instance.end()
  }
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  const before = stays.counted()
  await paced(5, { slow: 2.5 })
  await until(() => stays.counted() - before >= 4)
})

timed('a job that stalls and is run again by another instance counts once', async () => {
  let release = () => {}
  const options = { stalledAfter: 200 }
  const probe = { interval: 600, timeout: 4000 }
  const slow = new Instance('slow', { options, probe })
  await until(() => slow.counted() > 0)
  slow.hold = new Promise((resolve) => {
    release = resolve
  })
  asked = []
  // After a result the schedule comes first.
  await until(async () => asked.length > 0 && (await lengthOf('*:active')) > 0)
  ill.add('a')
  const other = new Instance('other', { options, probe })
  await until(() => other.board.up)
  // It says nothing more of the job, as when its event loop stands still for long.
  for (const client of slow.board.opened) client.disconnect()
  await until(() => asked.some(({ by }) => by === 'other') && other.health === '2')
  release()
  await sleep(50)
  // What it asks anew is answered at once.
  const [, , , , , took, by] = (await recordsText()).split(/\s/)
  assert.ok(by !== 'slow' || Number(took) < 150, `the answer that came late counts nowhere: ${by} ${took}`)
  await until(() => slow.counted() === other.counted())
  assert.equal(slow.health, '2')
})

timed('a shorter interval takes effect at once, without a burst', async () => {
  make(2, { probe: { interval: 60_000 } })
  await sleep(300)
  for (const instance of instances) instance.probe({ interval: 200 })
  await paced(6, { extra: 1 })
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  const [delayed] = (await server.command('KEYS', '*:delayed')) as string[]
  assert.ok(Number(await server.command('ZCARD', delayed!)) <= 1, 'the old one is gone')
})

timed('a schedule that was written by halves heals', async () => {
  const [instance] = make(2)
  await until(() => asked.length >= 2)
  for (const part of ['*:delayed', '*:repeat:*']) {
    for (const key of (await server.command('KEYS', part)) as string[]) await server.command('DEL', key)
    const before = instance!.counted()
    await paced(5, { slow: 2 })
    await until(() => instance!.counted() - before >= 4)
    assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  }
})

timed(
  'while Redis is away each instance asks, not in step, and back again one does, without a burst',
  async () => {
    make(5)
    await until(() => asked.length >= 2)
    await server.kill()
    await sleep(100)
    asked = []
    await Promise.all(instances.map(({ id }) => paced(5, { slow: 2, of: ({ by }) => by === id })))
    const marks = new Set(asked.map(({ at }) => Math.floor(at / 20)))
    assert.ok(marks.size > asked.length / 3, 'spread')
    await server.restart()
    await until(() => instances.every(({ board }) => board.up))
    await sleep(50)
    await paced(5, { extra: 1 })
    assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  },
)

timed('a lost connection of BullMQ alone does not stop the probes', async () => {
  const [instance] = make(1)
  await until(() => asked.length >= 2)
  for (const client of instance!.board.opened) client.disconnect(true)
  await paced(5, { slow: 2.5 })
})

timed('ends in time when Redis stands still, and when it is gone', async () => {
  for (const away of ['pause', 'kill'] as const) {
    const [instance] = make(1)
    await until(() => instance!.counted() > 0)
    await server[away]()
    const startedAt = performance.now()
    await instance!.end()
    assert.ok(performance.now() - startedAt < 1000, away)
    if (away === 'pause') server.resume()
    else await server.restart()
    await sleep(300)
    // A client that is given up between two attempts to connect stays in the state that it was in.
    const over = instance!.board.opened.map(({ status }) => status)
    assert.ok(
      over.every((status) => status === 'end' || status === 'reconnecting'),
      over.join(' '),
    )
  }
})

timed('ends in good order: no job is left behind, and no connection', async () => {
  const [instance] = make(1, { probe: { timeout: 5000 } })
  await until(() => instance!.counted() > 0)
  instance!.hold = new Promise(() => {})
  asked = []
  await until(async () => asked.length > 0 && (await lengthOf('*:active')) > 0)
  await instance!.end()
  assert.equal(await lengthOf('*:active'), 0)
  await until(() => instance!.board.opened.every(({ status }) => status === 'end'))
})

timed('a schedule that nobody has any more is removed', async () => {
  const options = { announceEvery: 50, sweepEvery: 100, orphanAfter: 1000 }
  const [stays, goes] = make(2, { options })
  goes!.prober.use([])
  goes!.probe({ name: 'old' })
  await until(() => goes!.counted() > 0)
  // A peer is asked once it is known, and its schedule may come a moment later.
  await until(async () => (await schedulers()).length === 2)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1', 'backend/old/d/0-1'])
  await goes!.end()
  await until(async () => (await schedulers()).length === 1)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  const before = stays!.counted()
  await until(() => stays!.counted() > before + 1)
})

timed('what belongs to a queue is not kept forever', async () => {
  const [instance] = make(1, { options: { announceEvery: 50 } })
  await until(() => instance!.counted() > 1)
  instance!.probe({ interval: 100_000 })
  await sleep(200)
  for (const key of (await server.command('KEYS', '*')) as string[]) {
    assert.notEqual(await server.command('PTTL', key), -1, key)
  }
})

timed('nor where an instance is killed, however long it was there', async () => {
  for (const ms of [300, 1000]) {
    let forever: readonly string[] = ['unknown']
    // One that is killed in the moment between what BullMQ writes and what makes that end leaves it; few are.
    for (let go = 0; go < 3 && forever.length > 0; go++) {
      const [instance] = make(1)
      await until(() => asked.length > 0)
      await sleep(ms)
      for (const client of instance!.board.opened) client.disconnect()
      const keys = (await server.command('KEYS', 'evenkeel:*/probes}*')) as string[]
      assert.ok(keys.length > 5, `${keys}`)
      const kept = await Promise.all(keys.map((key) => server.command('PTTL', key)))
      forever = keys.filter((_, i) => kept[i] === -1)
      await instance!.end()
      await server.command('FLUSHALL')
      asked = []
    }
    assert.deepEqual(forever, [])
  }
})

timed('instances that ask different questions by one name have a schedule and a result each', async () => {
  const [first, second] = make(2)
  second!.probe({ definition: 'e' })
  second!.lost = true
  await until(() => first!.counted() > 0 && second!.counted() > 0)
  await Promise.all(instances.map(({ id }) => paced(6, { slow: 2.2, of: ({ by }) => by === id })))
  assert.deepEqual([first!.health, second!.health], ['0', '2'])
  assert.deepEqual(first!.said.concat(second!.said), [])
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1', 'backend/health/e/0-1'])
  second!.probe({ definition: 'd' })
  second!.lost = false
  await until(() => second!.health === '0')
})

timed(
  'one whose own way to a peer is broken takes it from the others once, and asks again when that is mended',
  async () => {
    const probe = { interval: 100 }
    const [one, two] = make(2, { probe })
    await until(() => one!.counted() > 2 && two!.counted() > 2)
    const lost = new Instance('lost', { probe })
    lost.lost = true
    await until(() => lost.said.length > 0)
    const taken = () => one!.upstream.zone.peers.unhealthy[0]!
    await until(() => one!.health === '0' && lost.health === '0', 500)
    const from = performance.now()
    await until(() => asked.some(({ by, at }) => by === 'lost' && at > from), 8000)
    assert.ok(performance.now() - from > 700, 'not before ten intervals are over')
    await sleep(500)
    assert.ok(taken() <= 2, `${taken()} times`)
    assert.equal(lost.said.length, 1)
    assert.match(lost.said[0]!, /^probe "health" of peer a .* fails from here and passes at other instances/)
    lost.lost = false
    // The next try is after twice the time.
    await until(() => lost.prober.about(lost.upstream.peers[0]!)[0]!.last?.by === undefined, 8000)
    assert.equal(lost.health, '0')
  },
)

timed('a dead peer costs one question more, and nobody is contradicted', async () => {
  make(3, { probe: { interval: 500 } })
  await until(() => instances.every((one) => one.counted() > 1))
  ill.add('a')
  await until(() => instances.every((one) => one.health === '2'))
  // All know it by now, so the one question more has been asked.
  await paced(4, { every: 500 })
  ill.clear()
  await until(() => instances.every((one) => one.health === '0'))
  await sleep(600)
  assert.deepEqual(
    instances.flatMap(({ said }) => said),
    [],
  )
})

timed('instances that know different peers have all of them asked', async () => {
  const first = new Instance('first', { peers: [1, 1] })
  const second = new Instance('second', { peers: [{ down: true }, 1, 1] })
  await sleep(400)
  await Promise.all(['a', 'b', 'c'].map((peer) => paced(6, { slow: 2.2, of: (one) => one.peer === peer })))
  await until(() => first.counted(1) >= 5 && second.counted(1) >= 5)
})

timed('a newcomer learns of an ill peer at once, and who found it', async () => {
  ill.add('a')
  const [first] = make(1, { probe: { interval: 2000, fails: 2 } })
  first!.probe({ interval: 100, fails: 2 })
  await until(() => first!.health === '2')
  first!.probe({ interval: 60_000, fails: 2 })
  // What was under way comes to its end.
  do {
    asked = []
    await sleep(300)
  } while (asked.length > 0)
  const late = new Instance('late', { probe: { interval: 60_000, fails: 2 } })
  await until(() => late.health === '2', 1000)
  assert.deepEqual(asked, [])
  const [facts] = late.prober.about(late.upstream.peers[0]!)
  assert.equal(facts!.shared, true)
  assert.deepEqual([facts!.last?.by, facts!.last?.passed], ['i0', false])
})

timed('large groups are split, and each peer still gets one probe an interval', async () => {
  make(2, { peers: Array<number>(120).fill(1), probe: { interval: 400 } })
  await until(() => new Set(asked.map(({ peer }) => peer)).size === 120)
  asked = []
  await sleep(1600)
  assert.deepEqual(
    await schedulers(),
    [0, 1, 2, 3].map((i) => `backend/health/d/${i}-4`),
  )
  const counts = [...Map.groupBy(asked, ({ peer }) => peer).values()].map((all) => all.length)
  assert.equal(counts.length, 120)
  assert.ok(
    Math.min(...counts) >= 2 && Math.max(...counts) <= 5,
    `${Math.min(...counts)} ${Math.max(...counts)}`,
  )
})

timed('a cluster has all keys of a queue in one slot', async () => {
  await using cluster = await redisCluster()
  make(2, { ports: cluster.nodes.map(({ port }) => port), cluster: true })
  await until(() => asked.length >= 2, 8000)
  await paced(5, { slow: 2.5 })
  await until(() => instances.every((instance) => instance.counted() >= 3))
})

timed('a probe of the instance is asked by each, and nothing of it is in Redis', async () => {
  make(2, { probe: { scope: 'instance' } })
  await sleep(700)
  for (const instance of instances) assert.ok(instance.counted() >= 2)
  assert.deepEqual(await server.command('KEYS', '*'), [])
  assert.ok(instances.every(({ board }) => board.opened.length === 0))
})

timed('nothing is printed, whatever the server does with its memory', async () => {
  await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  const { warn, error } = console
  const printed: unknown[] = []
  console.warn = console.error = (...what: unknown[]) => printed.push(what)
  try {
    const [instance] = make(1)
    await until(() => instance!.counted() > 1)
    await server.kill()
    await sleep(300)
    await instance!.end()
  } finally {
    Object.assign(console, { warn, error })
    await server.restart()
  }
  assert.deepEqual(printed, [])
})

/** A server of its own where the user may not do everything. */
async function denied(rights: string, meet: (own: RedisServer) => Promise<void>): Promise<void> {
  const own = await redisServer()
  try {
    make(1, { ports: [own.port], peers: [1, 1] })
    await until(() => instances[0]!.board.up)
    // What is open already is open with the rights of before.
    await own.command('ACL', 'SETUSER', 'default', ...rights.split(' '))
    const opened = instances[0]!.board.opened.length
    await own.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await until(() => instances[0]!.board.opened.length > opened)
    await meet(own)
  } finally {
    await Promise.all(instances.map((instance) => instance.end()))
    await own.stop()
  }
}

timed('a server that does not say what it is keeps nobody from anything', async () => {
  await denied('-info', async () => {
    await until(() => asked.length >= 2)
    await Promise.all(['a', 'b'].map((peer) => paced(4, { slow: 2.5, of: (one) => one.peer === peer })))
  })
})

timed(
  'where schedules are refused they are not asked for without end, and peers are asked all the same',
  async () => {
    await denied('resetkeys ~evenkeel:{app/backend}*', async (own) => {
      await sleep(500)
      asked = []
      const before = await refusals(own)
      await sleep(1000)
      const after = await refusals(own)
      assert.ok(after - before < 50, `${after - before} refusals in a second`)
      await until(() => asked.length >= 4)
    })
  },
)

async function refusals(server: RedisServer): Promise<number> {
  const text = String(await server.command('INFO', 'stats'))
  return Number(/total_error_replies:(\d+)/.exec(text)![1])
}
