import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
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
after(() => server.stop())
beforeEach(async () => {
  asked = []
  ill.clear()
  await server.command('FLUSHALL')
})
afterEach(async () => {
  await Promise.all(instances.map((instance) => instance.end()))
  instances = []
})

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

/** Waits, and says how many intervals more than so have begun meanwhile: a busy machine may wake late. */
async function over(ms: number, every = 200): Promise<number> {
  const from = performance.now()
  await sleep(ms)
  return Math.ceil((performance.now() - from - ms) / every)
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
  test(`a peer gets one probe an interval of ${count} instance${count === 1 ? '' : 's'}`, async () => {
    make(count)
    await until(() => asked.length >= 2)
    asked = []
    const late = await over(1400)
    // The first number is what a busy machine may leave of them; the second is what it is about.
    assert.ok(asked.length >= 4 && asked.length <= 8 + late, `${asked.length} in 7 intervals`)
    await sleep(100)
    for (const instance of instances) {
      assert.ok(Math.abs(instance.counted() - instances[0]!.counted()) <= 1)
      assert.ok(instance.counted() >= asked.length, 'all hear of all')
    }
    assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  })
}

test('twenty restarts leave one schedule of a probe, and its pace', async () => {
  const stays = new Instance('stays')
  for (let i = 0; i < 20; i++) {
    const instance = new Instance(`r${i}`)
    await sleep(30 + 5 * (i % 5))
    await instance.end()
  }
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  asked = []
  const before = stays.counted()
  const late = await over(1000)
  assert.ok(asked.length >= 2 && asked.length <= 6 + late, `${asked.length} in 5 intervals`)
  assert.ok(stays.counted() - before >= 2)
})

test('a job that stalls and is run again by another instance counts once', async () => {
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

test('a shorter interval takes effect at once, without a burst', async () => {
  make(2, { probe: { interval: 60_000 } })
  await sleep(300)
  asked = []
  for (const instance of instances) instance.probe({ interval: 200 })
  const late = await over(1000)
  assert.ok(asked.length >= 3 && asked.length <= 7 + late, `${asked.length} in 5 intervals`)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  const [delayed] = (await server.command('KEYS', '*:delayed')) as string[]
  assert.ok(Number(await server.command('ZCARD', delayed!)) <= 1, 'the old one is gone')
})

test('a schedule that was written by halves heals', async () => {
  const [instance] = make(2)
  await until(() => asked.length >= 2)
  for (const part of ['*:delayed', '*:repeat:*']) {
    for (const key of (await server.command('KEYS', part)) as string[]) await server.command('DEL', key)
    const before = instance!.counted()
    asked = []
    const late = await over(1200)
    assert.ok(asked.length >= 3 && asked.length <= 7 + late, `${part}: ${asked.length} in 6 intervals`)
    assert.ok(instance!.counted() - before >= 2)
    assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  }
})

test('while Redis is away each instance asks, not in step, and back again one does, without a burst', async () => {
  make(5)
  await until(() => asked.length >= 2)
  await server.kill()
  await sleep(100)
  asked = []
  await sleep(1000)
  for (const { id } of instances) {
    const own = asked.filter(({ by }) => by === id)
    assert.ok(own.length >= 3 && own.length <= 6, `${own.length} in 5 intervals while it is away`)
  }
  const marks = new Set(asked.map(({ at }) => Math.floor(at / 20)))
  assert.ok(marks.size > asked.length / 3, 'spread')
  await server.restart()
  await until(() => instances.every(({ board }) => board.up))
  await sleep(50)
  asked = []
  const late = await over(1000)
  assert.ok(asked.length >= 3 && asked.length <= 7 + late, `${asked.length} in 5 intervals`)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
})

test('a lost connection of BullMQ alone does not stop the probes', async () => {
  const [instance] = make(1)
  await until(() => asked.length >= 2)
  for (const client of instance!.board.opened) client.disconnect(true)
  asked = []
  const late = await over(1000)
  assert.ok(asked.length >= 2 && asked.length <= 6 + late, `${asked.length} in 5 intervals`)
})

test('ends in time when Redis stands still, and when it is gone', async () => {
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

test('ends in good order: no job is left behind, and no connection', async () => {
  const [instance] = make(1, { probe: { timeout: 5000 } })
  await until(() => instance!.counted() > 0)
  instance!.hold = new Promise(() => {})
  asked = []
  await until(async () => asked.length > 0 && (await lengthOf('*:active')) > 0)
  await instance!.end()
  assert.equal(await lengthOf('*:active'), 0)
  await until(() => instance!.board.opened.every(({ status }) => status === 'end'))
})

test('a schedule that nobody has any more is removed', async () => {
  const options = { announceEvery: 50, sweepEvery: 100, orphanAfter: 300 }
  const [stays, goes] = make(2, { options })
  goes!.prober.use([])
  goes!.probe({ name: 'old' })
  await until(() => goes!.counted() > 0)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1', 'backend/old/d/0-1'])
  await goes!.end()
  await until(async () => (await schedulers()).length === 1)
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1'])
  const before = stays!.counted()
  await until(() => stays!.counted() > before + 1)
})

test('what belongs to a queue is not kept forever', async () => {
  const [instance] = make(1, { options: { announceEvery: 50 } })
  await until(() => instance!.counted() > 1)
  instance!.probe({ interval: 100_000 })
  await sleep(200)
  for (const key of (await server.command('KEYS', '*')) as string[]) {
    assert.notEqual(await server.command('PTTL', key), -1, key)
  }
})

test('nor where an instance is killed, however long it was there', async () => {
  for (const ms of [300, 1000]) {
    const [instance] = make(1)
    await until(() => asked.length > 0)
    await sleep(ms)
    for (const client of instance!.board.opened) client.disconnect()
    const keys = (await server.command('KEYS', 'evenkeel:*/probes}*')) as string[]
    assert.ok(keys.some((key) => key.endsWith(':delayed')))
    for (const key of keys) assert.notEqual(await server.command('PTTL', key), -1, key)
    await instance!.end()
    await server.command('FLUSHALL')
    asked = []
  }
})

test('instances that ask different questions by one name have a schedule and a result each', async () => {
  const [first, second] = make(2)
  second!.probe({ definition: 'e' })
  second!.lost = true
  await until(() => first!.counted() > 0 && second!.counted() > 0)
  const from = instances.map((one) => one.counted())
  const late = await over(1600)
  for (const [i, { id, counted }] of instances
    .map((one) => ({ id: one.id, counted: one.counted() }))
    .entries()) {
    const more = counted - from[i]!
    assert.ok(more >= 4 && more <= 9 + late, `${id}: ${more} in 8 intervals`)
  }
  assert.deepEqual([first!.health, second!.health], ['0', '2'])
  assert.deepEqual(first!.said.concat(second!.said), [])
  assert.deepEqual(await schedulers(), ['backend/health/d/0-1', 'backend/health/e/0-1'])
  second!.probe({ definition: 'd' })
  second!.lost = false
  await until(() => second!.health === '0')
})

test('one whose own way to a peer is broken takes it from the others once, and asks again when that is mended', async () => {
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
})

test('a dead peer costs one question more, and nobody is contradicted', async () => {
  make(3, { probe: { interval: 500 } })
  await until(() => instances.every((one) => one.counted() > 1))
  ill.add('a')
  await until(() => instances.every((one) => one.health === '2'))
  asked = []
  const late = await over(2000, 500)
  assert.ok(asked.length >= 3 && asked.length <= 6 + late, `${asked.length} in 4 intervals`)
  ill.clear()
  await until(() => instances.every((one) => one.health === '0'))
  await sleep(600)
  assert.deepEqual(
    instances.flatMap(({ said }) => said),
    [],
  )
})

test('instances that know different peers have all of them asked', async () => {
  const first = new Instance('first', { peers: [1, 1] })
  const second = new Instance('second', { peers: [{ down: true }, 1, 1] })
  await sleep(400)
  asked = []
  const late = await over(1600)
  const times = (peer: string) => asked.filter((one) => one.peer === peer).length
  for (const peer of ['a', 'b', 'c']) {
    assert.ok(times(peer) >= 4 && times(peer) <= 9 + late, `${peer}: ${times(peer)} in 8 intervals`)
  }
  assert.ok(first.counted(1) >= 5 && second.counted(1) >= 5)
})

test('a newcomer learns of an ill peer at once, and who found it', async () => {
  ill.add('a')
  const [first] = make(1, { probe: { interval: 2000, fails: 2 } })
  first!.probe({ interval: 100, fails: 2 })
  await until(() => first!.health === '2')
  first!.probe({ interval: 60_000, fails: 2 })
  asked = []
  const late = new Instance('late', { probe: { interval: 60_000, fails: 2 } })
  await until(() => late.health === '2', 1000)
  assert.deepEqual(asked, [])
  const [facts] = late.prober.about(late.upstream.peers[0]!)
  assert.equal(facts!.shared, true)
  assert.deepEqual([facts!.last?.by, facts!.last?.passed], ['i0', false])
})

test('large groups are split, and each peer still gets one probe an interval', async () => {
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

test('a cluster has all keys of a queue in one slot', async () => {
  await using cluster = await redisCluster()
  make(2, { ports: cluster.nodes.map(({ port }) => port), cluster: true })
  await until(() => asked.length >= 2, 8000)
  asked = []
  const late = await over(1000)
  assert.ok(asked.length >= 2 && asked.length <= 6 + late, `${asked.length} in 5 intervals`)
  assert.ok(instances.every((instance) => instance.counted() >= 3))
})

test('a probe of the instance is asked by each, and nothing of it is in Redis', async () => {
  make(2, { probe: { scope: 'instance' } })
  await sleep(700)
  for (const instance of instances) assert.ok(instance.counted() >= 2)
  assert.deepEqual(await server.command('KEYS', '*'), [])
  assert.ok(instances.every(({ board }) => board.opened.length === 0))
})

test('nothing is printed, whatever the server does with its memory', async () => {
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

test('a server that does not say what it is keeps nobody from anything', async () => {
  await denied('-info', async () => {
    await until(() => asked.length >= 2)
    asked = []
    await sleep(800)
    assert.ok(asked.length >= 5 && asked.length <= 10, `${asked.length} of two peers in 4 intervals`)
  })
})

test('where schedules are refused they are not asked for without end, and peers are asked all the same', async () => {
  await denied('resetkeys ~evenkeel:{app/backend}*', async (own) => {
    await sleep(500)
    asked = []
    const before = await refusals(own)
    await sleep(1000)
    const after = await refusals(own)
    assert.ok(after - before < 50, `${after - before} refusals in a second`)
    assert.ok(asked.length >= 4, `${asked.length} of two peers in 5 intervals`)
  })
})

async function refusals(server: RedisServer): Promise<number> {
  const text = String(await server.command('INFO', 'stats'))
  return Number(/total_error_replies:(\d+)/.exec(text)![1])
}
