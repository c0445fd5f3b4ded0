import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cluster, Redis } from 'ioredis'
import { type ProbeStateEvent, probeStateChannel } from '../../feedback/channels.ts'
import type { Board } from '../../feedback/fleet/board.ts'
import { groupKeys } from '../../feedback/fleet/keys.ts'
import { peerId } from '../../feedback/fleet/peer-id.ts'
import type { Script } from '../../feedback/fleet/script.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { Answer } from '../../probes/probe.ts'
import { type ProbeRecord, recordField } from '../../probes/record.ts'
import { Prober } from '../../probes/timer.ts'
import { seeded } from '../support/dice.ts'
import { answered, liveProbe, scriptedKind } from '../support/live-probe.ts'
import { group } from '../support/peers.ts'
import { ManualTimers } from '../support/timers.ts'

/** A board without Redis: a test says what the scripts answer. The server's clock is half a million ahead. */
class FakeBoard implements Board {
  readonly id = 'me'
  readonly keep = 1000
  readonly group = 'app'
  readonly prefix = 'evenkeel'
  readonly ran: string[] = []
  /** When each claim was to be given. */
  readonly claims: string[] = []
  up = true
  /** Whether a turn is given to whoever asks. */
  free = true
  /** Scripts are not answered. */
  broken = false
  seq = 0
  readonly #timers: ManualTimers
  #turn: (up: boolean) => void = () => {}
  #hear: (upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void = () => {}

  constructor(timers: ManualTimers) {
    this.#timers = timers
  }

  get clock(): number {
    return this.#timers.now() + 500_000
  }

  onChange(hear: (up: boolean) => void): () => void {
    this.#turn = hear
    return () => {}
  }

  onRecords(hear: (upstream: Upstream, records: ReadonlyMap<string, Buffer>) => void): () => void {
    this.#hear = hear
    return () => {}
  }

  keys(upstream: Upstream) {
    return groupKeys(this.prefix, this.group, upstream.name)
  }

  async run({ name }: Script, _keys: readonly string[], args: readonly (string | number | Buffer)[]) {
    if (this.broken || !this.up) throw new Error('redis is away')
    this.ran.push(name)
    const clock = String(this.clock)
    if (name === 'announce') return [clock, []]
    if (name === 'claim') this.claims.push(String(args[5]))
    if (name === 'claim') return [clock, args.slice(6).flatMap((_, i) => (i % 2 ? [this.free ? 1 : 0] : []))]
    const told = args.slice(3).filter((_, i) => i % 6 === 2)
    return [
      clock,
      told.map((said) => {
        const passed = said === '+'
        const result = { seq: ++this.seq, by: 'me', streak: passed ? 1 : -1, fails: passed ? 0 : 1 }
        return Buffer.from(said === '?' ? '' : text(result, this.clock))
      }),
    ]
  }

  connect(): Redis | Cluster {
    throw new Error('no schedules here')
  }

  turn(up: boolean): void {
    this.up = up
    this.#turn(up)
  }

  /** Lets the instance hear of a result, `ago` milliseconds old. */
  record(upstream: Upstream, more: Partial<ProbeRecord> = {}, ago = 0): void {
    const field = recordField({ name: 'health', definition: 'd' }, peerId(upstream.peers[0]!))
    this.#hear(upstream, new Map([[field, Buffer.from(text(more, this.clock - ago))]]))
  }
}

/** A record as Redis has it. */
function text(record: Partial<ProbeRecord>, at: number): string {
  const { seq = 1, fails = 0, streak = 1, before = 0, by = 'other', detail = '', orders = null } = record
  const result = `${seq} ${fails} ${streak} ${before} ${at.toFixed(3)} 3 ${by} job${seq}`
  return [result, '- - 0 0 0 0', JSON.stringify(detail), JSON.stringify(orders)].join('\n')
}

class Bench {
  readonly timers = new ManualTimers()
  readonly board = new FakeBoard(this.timers)
  readonly upstream = group([1])
  readonly asked: number[] = []
  readonly prober: Prober
  answer: Answer = answered()
  readonly said: string[] = []

  constructor(seed = 1, probe: Partial<LiveProbe> = {}) {
    const { now, after } = this.timers
    this.prober = new Prober({
      now,
      after,
      wall: now,
      random: seeded(seed),
      say: (text) => this.said.push(text),
    })
    this.prober.share(this.board)
    this.use(probe)
  }

  use(probe: Partial<LiveProbe> = {}): void {
    const kind = scriptedKind(() => {
      this.asked.push(this.timers.now() - 1_000_000)
      return this.answer
    })
    this.prober.use([
      liveProbe(this.upstream, kind, { interval: 1000, timeout: 500, scope: 'fleet', ...probe }),
    ])
  }

  get facts() {
    return this.prober.about(this.upstream.peers[0]!)[0]!
  }

  get health(): number {
    return this.upstream.zone.peers.probeHealth[this.upstream.peers[0]!.index]!
  }
}

test('as long as others ask, this instance does not', async () => {
  const bench = new Bench()
  await bench.timers.pass(0)
  for (let seq = 1; seq <= 20; seq++) {
    bench.board.record(bench.upstream, { seq, streak: seq })
    await bench.timers.pass(1400)
  }
  assert.deepEqual(bench.asked, [])
  assert.equal(bench.upstream.zone.peers.probes[0], 20)
  assert.deepEqual(
    [bench.facts.shared, bench.facts.last?.by, bench.facts.standing.passes],
    [true, 'other', 20],
  )
})

test('where nobody does it asks after one and a half to two intervals, if it gets the turn', async () => {
  const moments = await Promise.all(
    Array.from({ length: 20 }, async (_, seed) => {
      const bench = new Bench(seed + 1)
      await bench.timers.pass(0)
      bench.board.record(bench.upstream)
      await bench.timers.pass(2100)
      return bench.asked[0]!
    }),
  )
  assert.ok(moments.every((at) => at >= 1500 && at <= 2000))
  assert.ok(Math.max(...moments) - Math.min(...moments) > 300)
  const bench = new Bench()
  bench.board.free = false
  await bench.timers.pass(10_000)
  assert.deepEqual(bench.asked, [])
})

test('a claim that is not answered is no reason not to ask', async () => {
  const bench = new Bench()
  bench.board.broken = true
  bench.answer = answered({ passed: false })
  await bench.timers.pass(1000)
  assert.equal(bench.asked.length, 1)
  assert.equal(bench.health, 2)
  assert.equal(bench.facts.last?.by, undefined)
})

test('a result that cannot be told is judged here', async () => {
  const bench = new Bench()
  bench.answer = answered({ passed: false })
  const { run } = bench.board
  bench.board.run = async function (script, keys, args) {
    if (script.name === 'tell') throw new Error('redis is away')
    return run.call(this, script, keys, args)
  }
  await bench.timers.pass(1010)
  assert.equal(bench.asked.length, 1)
  assert.equal(bench.health, 2)
})

test('instances that lose Redis ask within an interval or so, not in step, and then in their rhythm', async () => {
  const firsts: number[] = []
  for (let seed = 1; seed <= 30; seed++) {
    const bench = new Bench(seed)
    await bench.timers.pass(0)
    bench.board.record(bench.upstream)
    await bench.timers.pass(500)
    bench.board.turn(false)
    await bench.timers.pass(4500)
    firsts.push(bench.asked[0]!)
    assert.ok(bench.asked.length >= 3 && bench.asked.length <= 4)
  }
  assert.ok(Math.min(...firsts) >= 1000 && Math.max(...firsts) <= 2000)
  assert.ok(Math.max(...firsts) - Math.min(...firsts) > 600)
})

test('back again they leave the others the time to ask', async () => {
  const bench = new Bench()
  bench.board.turn(false)
  await bench.timers.pass(5000)
  bench.board.free = false
  bench.board.turn(true)
  await bench.timers.pass(0)
  const { length } = bench.asked
  bench.board.free = true
  await bench.timers.pass(400)
  assert.equal(bench.asked.length, length)
})

test('a connection that comes and goes neither hurries anybody nor keeps them from asking', async () => {
  const bench = new Bench()
  for (let i = 0; i < 400; i++) {
    bench.board.turn(i % 2 === 1)
    await bench.timers.pass(50)
  }
  assert.ok(bench.asked.length >= 9 && bench.asked.length <= 20, `${bench.asked.length} in 20 intervals`)
})

test('what others found before Redis was away, or long ago, is not trusted', async () => {
  const bench = new Bench(1, { interval: 5000 })
  bench.board.free = false
  await bench.timers.pass(0)
  bench.board.record(bench.upstream, { streak: -3, fails: 3, seq: 3 }, 16_000)
  assert.equal(bench.health, 0)
  bench.board.turn(false)
  await bench.timers.pass(1000)
  bench.board.turn(true)
  bench.board.record(bench.upstream, { streak: -4, fails: 4, seq: 4 }, 500)
  // The clock is known with the next answer.
  await bench.timers.pass(10_000)
  assert.equal(bench.health, 0)
  bench.board.record(bench.upstream, { streak: -5, fails: 5, seq: 5 }, 10)
  assert.equal(bench.health, 2)
})

test('the same record counts once, over reloads and lost connections', async () => {
  const bench = new Bench()
  await bench.timers.pass(0)
  const record = () =>
    bench.board.record(bench.upstream, { streak: 2, seq: 2 }, bench.timers.now() - 1_000_000)
  record()
  record()
  bench.use()
  record()
  assert.equal(bench.upstream.zone.peers.probes[0], 1)
})

test('a change says who saw it, and orders are obeyed by all', async () => {
  const bench = new Bench()
  await bench.timers.pass(0)
  const events: ProbeStateEvent[] = []
  const hear = (message: unknown) => events.push(message as ProbeStateEvent)
  probeStateChannel.subscribe(hear)
  bench.board.record(bench.upstream, { streak: -1, fails: 1, detail: 'status 503' })
  bench.board.record(bench.upstream, { seq: 2, orders: { administrative: 'drain' } }, -1)
  probeStateChannel.unsubscribe(hear)
  assert.deepEqual(
    events.map(({ state, by, detail, streak }) => [state, by, detail, streak]),
    [
      ['unhealthy', 'other', 'status 503', 1],
      ['draining', 'other', '', 0],
      ['healthy', 'other', '', 1],
    ],
  )
})

test('one that is alone again asks in its own rhythm', async () => {
  const bench = new Bench()
  await bench.timers.pass(0)
  bench.board.record(bench.upstream)
  bench.prober.share(undefined)
  await bench.timers.pass(3000)
  assert.equal(bench.asked.length, 3)
  assert.equal(bench.facts.shared, false)
  assert.ok(!bench.board.ran.includes('claim'))
})

test('a failure of another has a second opinion at once, from here if nobody else gives it', async () => {
  const moments: number[] = []
  for (let seed = 1; seed <= 20; seed++) {
    const bench = new Bench(seed)
    await bench.timers.pass(0)
    bench.board.record(bench.upstream)
    await bench.timers.pass(200)
    bench.board.record(bench.upstream, { seq: 2, streak: -1, before: 1, fails: 1 })
    assert.equal(bench.health, 2)
    await bench.timers.pass(510)
    assert.equal(bench.asked.length, 1)
    assert.deepEqual(bench.board.claims, ['second'])
    moments.push(bench.asked[0]! - 200)
  }
  assert.ok(Math.max(...moments) <= 500 && Math.max(...moments) - Math.min(...moments) > 300, `${moments}`)
})

test('a second opinion is nobody’s any more once another has given it, and failures that go on have none', async () => {
  const bench = new Bench()
  await bench.timers.pass(0)
  bench.board.record(bench.upstream, { streak: -1, fails: 1 })
  bench.board.record(bench.upstream, { seq: 2, streak: -2, fails: 2 }, -1)
  await bench.timers.pass(1400)
  assert.deepEqual(bench.asked, [])
  const patient = new Bench(1, { fails: 3 })
  await patient.timers.pass(0)
  patient.board.record(patient.upstream, { streak: -1, fails: 1 })
  await patient.timers.pass(600)
  assert.deepEqual(patient.asked, [], 'it is not out')
  patient.board.record(patient.upstream, { seq: 3, streak: -3, fails: 3 })
  await patient.timers.pass(510)
  assert.equal(patient.asked.length, 1)
})

test('one that fails where another passes says so once, and leaves the peer to the others as long as they ask', async () => {
  const bench = new Bench()
  bench.answer = answered({ passed: false })
  await bench.timers.pass(1000)
  assert.equal(bench.asked.length, 1)
  assert.equal(bench.health, 2)
  let seq = ++bench.board.seq
  bench.board.record(bench.upstream, { seq, streak: 1, before: -1, fails: 1 })
  assert.equal(bench.health, 0)
  const line =
    'probe "health" of peer a of upstream "backend" fails from here and passes at other instances; leaving it to them'
  assert.deepEqual(bench.said, [line])
  assert.ok(bench.facts.leavesMs > 9000)
  for (let i = 0; i < 20; i++) {
    await bench.timers.pass(2200)
    seq += 1
    bench.board.record(bench.upstream, { seq, streak: i + 2, before: -1, fails: 1 })
  }
  // Another's failure is not doubted by one that would find the same.
  bench.board.record(bench.upstream, { seq: seq + 1, streak: -1, before: 20, fails: 2 }, -1)
  await bench.timers.pass(600)
  assert.equal(bench.asked.length, 1)
  bench.board.seq = seq + 1
  await bench.timers.pass(2200)
  assert.equal(bench.asked.length, 2, 'nobody else asks')
  assert.equal(bench.board.claims.at(-1), 'alone')
  assert.equal(bench.said.length, 1)
})
