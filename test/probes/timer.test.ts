import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ProbeStateEvent, probeStateChannel } from '../../feedback/channels.ts'
import { exclusion } from '../../feedback/health.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { Answer, Asking, ProbeKind, Target } from '../../probes/probe.ts'
import { Prober } from '../../probes/timer.ts'
import { seeded } from '../support/dice.ts'
import { answered, liveProbe, scriptedKind } from '../support/live-probe.ts'
import { group } from '../support/peers.ts'
import { ManualTimers } from '../support/timers.ts'

/** A prober under a manual clock, and all that it asks. */
class Bench {
  readonly timers = new ManualTimers()
  readonly said: string[] = []
  readonly prober: Prober
  /** Who was asked, and when since the start. */
  readonly asked: { name: string; at: number }[] = []
  readonly #start = this.timers.now()

  constructor(seed = 1, random = seeded(seed)) {
    const { now, after } = this.timers
    this.prober = new Prober({ now, after, wall: () => 0, random, say: (text) => this.said.push(text) })
  }

  kind(
    check: (target: Target, asking: Asking) => Promise<Answer> | Answer = () => answered(),
    more: Partial<ProbeKind> = {},
  ): ProbeKind {
    return scriptedKind((target, asking) => {
      this.asked.push({ name: target.name, at: this.timers.now() - this.#start })
      return check(target, asking)
    }, more)
  }

  /** Moments at which a peer was asked, milliseconds since the start. */
  moments(name: string): number[] {
    return this.asked.filter((one) => one.name === name).map(({ at }) => Math.round(at))
  }
}

/** Answers when the test says so, or with a time-out when the time is over. */
class Held {
  readonly open: (() => void)[] = []
  readonly check = (_target: Target, { signal }: Asking): Promise<Answer> =>
    new Promise((resolve) => {
      this.open.push(() => resolve(answered()))
      const failure = { ending: 'timeout', reason: 'timeout_read' } as const
      signal.addEventListener('abort', () => resolve(answered({ failure, status: undefined })))
    })
}

function probe(upstream: Upstream, kind: ProbeKind, more: Partial<LiveProbe> = {}): LiveProbe {
  return liveProbe(upstream, kind, { interval: 1000, timeout: 500, ...more })
}

test('each peer is asked for the first time within one interval, and then in its own rhythm', async () => {
  const bench = new Bench()
  const backend = group([1, 1, 1])
  bench.prober.use([probe(backend, bench.kind())])
  await bench.timers.pass(4000)
  for (const name of ['a', 'b', 'c']) {
    const [first, ...later] = bench.moments(name)
    assert.ok(first! < 1000)
    assert.deepEqual(
      later,
      [1, 2, 3].map((i) => first! + 1000 * i),
    )
  }
  assert.equal(new Set(bench.moments('a').concat(bench.moments('b'), bench.moments('c'))).size, 12)
})

test('fifty instances that start together spread their first questions over the interval', async () => {
  const moments: number[] = []
  for (let instance = 0; instance < 50; instance++) {
    const bench = new Bench(instance + 1)
    bench.prober.use([probe(group(Array<number>(20).fill(1)), bench.kind())])
    await bench.timers.pass(1000)
    assert.equal(bench.asked.length, 20, 'each peer once in the first interval')
    moments.push(...bench.asked.map(({ at }) => at))
  }
  const tenths = Array.from(
    { length: 10 },
    (_, i) => moments.filter((at) => Math.floor(at / 100) === i).length,
  )
  // 100 of a thousand each; less than 60 or more than 140 has a chance of about one in 30,000.
  assert.ok(
    tenths.every((count) => count > 60 && count < 140),
    tenths.join(' '),
  )
})

test('one timer waits for all peers', async () => {
  const bench = new Bench()
  bench.prober.use([probe(group(Array<number>(300).fill(1)), bench.kind())])
  assert.equal(bench.timers.count, 1)
  await bench.timers.pass(2500)
  assert.equal(bench.timers.count, 1)
  assert.equal(bench.asked.length >= 600, true)
})

test('a peer that is slow is never asked twice at once, and delays nobody', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  const held = new Held()
  let flying = 0
  let most = 0
  const kind = bench.kind(async (target, asking) => {
    if (target.name === 'b') return answered()
    flying += 1
    most = Math.max(most, flying)
    const answer = await held.check(target, asking)
    flying -= 1
    return answer
  })
  bench.prober.use([probe(backend, kind, { timeout: 5000, fails: 2 })])
  await bench.timers.pass(20_000)
  assert.equal(most, 1)
  assert.equal(bench.moments('b').length, 20)
  const slow = bench.moments('a')
  assert.equal(slow.length, 4)
  assert.deepEqual(
    slow,
    slow.map((_, i) => slow[0]! + 5000 * i),
    'due times in between were left out',
  )
  // Each of the three that ended was counted once.
  assert.deepEqual([...backend.zone.peers.probes.slice(0, 2)], [3, 20])
  assert.equal(exclusion(backend.peers[0]!, false, bench.timers.now()), 'unhealthy')
})

test('a pause of the process makes up for nothing, and leaves the rhythm as it was', async () => {
  const bench = new Bench()
  bench.prober.use([probe(group([1]), bench.kind())])
  await bench.timers.pass(1000)
  const [first] = bench.moments('a')
  await bench.timers.jump(10_300)
  await bench.timers.pass(2000)
  const later = bench.moments('a').slice(1)
  const jumped = 11_300
  assert.equal(later[0], jumped)
  const next = Math.ceil((jumped - first!) / 1000) * 1000 + first!
  assert.deepEqual(
    later.slice(1),
    [next, next + 1000].filter((at) => at <= jumped + 2000),
  )
})

test('a kind that does not notice that its time is over has failed soon after', async () => {
  const bench = new Bench()
  const backend = group([1])
  const kind = bench.kind(() => new Promise<Answer>(() => {}))
  bench.prober.use([probe(backend, kind, { interval: 5000 })])
  await bench.timers.pass(20_000)
  assert.equal(bench.asked.length, 4)
  assert.equal(bench.prober.about(backend.peers[0]!)[0]!.last?.detail, 'no answer in time')
  assert.equal(bench.prober.about(backend.peers[0]!)[0]!.last?.passed, false)
})

test('an answer that comes after the end is dropped, and nobody is asked any more', async () => {
  const bench = new Bench()
  const backend = group([1])
  const held = new Held()
  bench.prober.use([probe(backend, bench.kind(held.check))])
  await bench.timers.pass(1000)
  bench.prober.stop()
  held.open[0]!()
  await bench.timers.pass(5000)
  assert.equal(bench.asked.length, 1)
  assert.equal(backend.zone.peers.probes[0], 0)
  assert.equal(bench.timers.count, 0)
})

test('a reload drops what is under way, begins streaks anew, and keeps the rhythm', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  let status = 503
  const http_503 = { retry: { ...liveProbe(backend, bench.kind()).retry, on: new Set(['http_503']) } }
  const held = new Held()
  let holding = false
  const kind = bench.kind((target, asking) => (holding ? held.check(target, asking) : answered({ status })))
  const one = () => probe(backend, kind, { fails: 3, ...http_503 })
  bench.prober.use([one()])
  await bench.timers.pass(2000)
  const peer = backend.peers[0]!
  assert.equal(bench.prober.about(peer)[0]!.standing.fails, 2)
  holding = true
  await bench.timers.pass(1000)
  bench.prober.use([one()])
  assert.equal(bench.prober.about(peer)[0]!.standing.fails, 0)
  held.open[0]!()
  holding = false
  await bench.timers.pass(2000)
  assert.equal(bench.prober.about(peer)[0]!.standing.fails, 2)
  assert.equal(backend.zone.peers.probes[0], 4)
  const moments = bench.moments('a')
  assert.deepEqual(
    moments,
    moments.map((_, i) => moments[0]! + 1000 * i),
  )
  status = 200
})

test('a probe whose interval a reload changes starts a new rhythm, and one that is gone stops at once', async () => {
  const bench = new Bench(1, () => 0.5)
  const backend = group([1])
  bench.prober.use([probe(backend, bench.kind(), { name: 'x' }), probe(backend, bench.kind(), { name: 'y' })])
  await bench.timers.pass(600)
  assert.deepEqual(bench.moments('a'), [500, 500])
  bench.prober.use([probe(backend, bench.kind(), { name: 'x', interval: 200 })])
  await bench.timers.pass(600)
  assert.deepEqual(bench.moments('a').slice(2), [700, 900, 1100])
  bench.prober.use([])
  await bench.timers.pass(5000)
  assert.equal(bench.asked.length, 5)
})

test('a peer that is marked down is not asked', async () => {
  const bench = new Bench()
  bench.prober.use([probe(group([1, { down: true }], { backups: [1] }), bench.kind())])
  await bench.timers.pass(1000)
  assert.deepEqual(bench.asked.map(({ name }) => name).sort(), ['a', 'c'])
})

test('what was found stays in force for a peer that leaves, and ends where nobody probes any more', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  const [a, b] = backend.peers
  const failure = { ending: 'error', reason: 'refused' } as const
  bench.prober.use([
    probe(
      backend,
      bench.kind(() => answered({ failure, status: undefined })),
    ),
  ])
  await bench.timers.pass(1000)
  bench.prober.use([], new Set([a!]))
  assert.equal(exclusion(a!, false, 0), 'unhealthy')
  assert.equal(exclusion(b!, false, 0), undefined)
})

test('mode idle spares peers that clients keep busy, while they are healthy', async () => {
  const bench = new Bench()
  const backend = group([1, 1, 1])
  const { checkedAt, selected, conns, probeHealth } = backend.zone.peers
  selected.fill(1)
  conns[2] = 1
  bench.prober.use([probe(backend, bench.kind(), { mode: 'idle' })])
  const traffic = async (spanMs: number) => {
    for (let at = 0; at < spanMs; at += 100) {
      checkedAt[0] = bench.timers.now()
      await bench.timers.pass(100)
    }
  }
  await traffic(5000)
  assert.deepEqual(bench.moments('a'), [], 'served a client in each interval')
  assert.equal(bench.moments('b').length, 5, 'served nobody')
  assert.equal(bench.moments('c').length, 5, 'has a request that may be hanging')
  probeHealth[0] = 2
  await traffic(2000)
  // One question is enough for it to be healthy again.
  assert.equal(bench.moments('a').length, 1)
})

test('mode onfail asks a peer that failed requests have set aside', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  bench.prober.use([probe(backend, bench.kind(), { mode: 'onfail' })])
  await bench.timers.pass(2000)
  backend.zone.peers.downAt[0] = bench.timers.now()
  await bench.timers.pass(3000)
  assert.equal(bench.moments('a').length, 3)
  assert.deepEqual(bench.moments('b'), [])
})

test('mode onfail asks peers that are not healthy, and no others', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  let good = true
  bench.prober.use([
    probe(backend, bench.kind(), { mode: 'onfail', passes: 2, essential: true }),
    probe(
      backend,
      scriptedKind(({ name }) => answered({ passed: good || name === 'b' })),
      { name: 'other' },
    ),
  ])
  await bench.timers.pass(5000)
  assert.equal(bench.moments('a').length, 2, 'until it had passed')
  good = false
  await bench.timers.pass(4000)
  good = true
  await bench.timers.pass(4000)
  const asked = bench.moments('a').length
  assert.ok(asked >= 5 && asked <= 7, `${asked}`)
  assert.equal(exclusion(backend.peers[0]!, false, bench.timers.now()), undefined)
  assert.equal(bench.moments('b').length, 2)
})

test('what could not be asked changes nothing', async () => {
  const bench = new Bench()
  const backend = group([1])
  const failure = { ending: 'error', reason: 'unreachable', local: true } as const
  const kind = bench.kind(() => answered({ failure, status: undefined, detail: 'connect EMFILE' }))
  bench.prober.use([probe(backend, kind)])
  await bench.timers.pass(3000)
  const { last, standing } = bench.prober.about(backend.peers[0]!)[0]!
  assert.deepEqual([last?.passed, last?.detail], [undefined, 'connect EMFILE'])
  assert.deepEqual([standing.fails, standing.passes, backend.zone.peers.probes[0]], [0, 0, 0])
})

test('a kind learns whether its last question failed, and its caveat is said once', async () => {
  const bench = new Bench()
  const failing: boolean[] = []
  let passed = true
  const kind = bench.kind(
    (_, asking) => {
      failing.push(asking.failing)
      passed = !passed
      return answered({ passed })
    },
    { caveat: async () => 'the table cannot be read' },
  )
  const probes = [probe(group([1]), kind), probe(group([1]), kind, { name: 'b', args: { limit: 2 } })]
  bench.prober.use(probes.slice(0, 1))
  await bench.timers.pass(3000)
  assert.deepEqual(failing, [false, true, false])
  bench.prober.use(probes)
  await bench.timers.pass(0)
  assert.deepEqual(bench.said, ['the table cannot be read'])
})

test('a mistake of this program is said once, and no peer suffers for it', async () => {
  const bench = new Bench()
  const backend = group([1, 1])
  const kind = bench.kind(() => {
    throw new Error('no such thing')
  })
  bench.prober.use([probe(backend, kind)])
  await bench.timers.pass(3000)
  assert.equal(bench.said.length, 1)
  assert.match(bench.said[0]!, /^probe "health" broke: Error: no such thing\n/)
  assert.equal(exclusion(backend.peers[0]!, false, bench.timers.now()), undefined)
})

test('changes are told once, with the probe that made them and what it saw', async () => {
  const events: ProbeStateEvent[] = []
  const hear = (message: unknown) => events.push(message as ProbeStateEvent)
  probeStateChannel.subscribe(hear)
  const bench = new Bench()
  const backend = group([1])
  let answer = answered()
  bench.prober.use([
    probe(
      backend,
      bench.kind(() => answer),
      { fails: 2 },
    ),
  ])
  await bench.timers.pass(2000)
  answer = answered({ passed: false, detail: 'queue 12 of 10' })
  await bench.timers.pass(3000)
  answer = answered({ orders: { operational: 'down' }, detail: 'down #maintenance' })
  await bench.timers.pass(2000)
  probeStateChannel.unsubscribe(hear)
  const told = events.map(
    (event) => `${event.peer.name} ${event.state} ${event.probe} ${event.streak} ${event.detail}`,
  )
  assert.deepEqual(told, [
    'a unhealthy health 2 queue 12 of 10',
    'a down health 0 down #maintenance',
    'a healthy health 1 down #maintenance',
  ])
})

test("an agent's orders outlive a reload, and end when nobody hears it any more", async () => {
  const bench = new Bench()
  const backend = group([1])
  const [peer] = backend.peers
  const agent = bench.kind(() => answered({ passed: true, orders: { administrative: 'drain' } }))
  bench.prober.use([probe(backend, agent)])
  await bench.timers.pass(1000)
  bench.prober.use([probe(backend, agent)])
  assert.equal(exclusion(peer!, true, 0), 'draining')
  bench.prober.use([
    probe(
      backend,
      bench.kind(() => answered(), { name: 'other' }),
    ),
  ])
  assert.equal(exclusion(peer!, true, 0), undefined)
})

test('where a group takes on other peers, those that stay notice nothing', async () => {
  const bench = new Bench()
  const held = new Held()
  const kind = bench.kind(held.check)
  const upstream = group([1, 1])
  const old = probe(upstream, kind, { essential: true, passes: 2 })
  bench.prober.use([old])
  await bench.timers.pass(1000)
  for (const answer of held.open.splice(0)) answer()
  await bench.timers.pass(0)
  const [stays, goes] = upstream.peers
  const { standing, last } = bench.prober.about(stays!)[0]!
  assert.equal(standing.passes, 1)
  // The same group with one of its peers, as objects that were made anew.
  const { peers } = upstream
  const renewed = Object.create(upstream, { peers: { value: [stays], enumerable: true } })
  const anew = probe(renewed, kind, { essential: true, passes: 2 })
  bench.prober.use([anew], new Set(peers.slice(1)), true)
  const about = bench.prober.about(stays!)[0]!
  assert.equal(about.standing, standing)
  assert.deepEqual([about.last, about.probe], [last, anew])
  assert.deepEqual(bench.prober.about(goes!), [])
  const before = bench.asked.length
  await bench.timers.pass(1000)
  assert.deepEqual(
    bench.asked.slice(before).map(({ name }) => name),
    [stays!.name],
  )
  for (const answer of held.open.splice(0)) answer()
  await bench.timers.pass(0)
  assert.equal(about.standing.passes, 2)
})

test('a question under way to a peer that stays goes on where others come and go', async () => {
  const bench = new Bench()
  const held = new Held()
  const kind = bench.kind(held.check)
  const upstream = group([1, 1])
  bench.prober.use([probe(upstream, kind)])
  await bench.timers.pass(1000)
  assert.equal(held.open.length, 2)
  bench.prober.use([probe(upstream, kind)], new Set(), true)
  for (const answer of held.open.splice(0)) answer()
  await bench.timers.pass(0)
  for (const peer of upstream.peers) assert.equal(bench.prober.about(peer)[0]!.standing.passes, 1)
})
