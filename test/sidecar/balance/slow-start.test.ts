import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Attempt } from '../../../feedback/outcome.ts'
import { LeastConn } from '../../../sidecar/balance/least-conn.ts'
import { Flow } from '../../support/flow.ts'
import { ask, group, peers, spread } from '../../support/peers.ts'

const rampMs = 60_000
/** When the peers that are out at first can answer again. */
const backAt = { c: 10_000, d: 25_000 }
const windowMs = 5000

/** What each peer was given in one window of time, and what its weight at each of these moments would give it. */
interface Span {
  readonly from: number
  readonly given: Record<string, number>
  readonly fair: Record<string, number>
}

/**
 * Two peers that are always there, and c and d that fail until they can answer and then climb to their weight, d a
 * quarter of the ramp behind c.
 * @param rate requests a second, at random moments
 * @param serviceMs mean time of an answer
 */
function climb(method: string, rate: number, serviceMs: number): { spans: Span[]; up: Map<string, number> } {
  const back = { slow_start: rampMs, fail_timeout: 1000 }
  const flow = new Flow([1, 1, back, back], method, {}, 3)
  const { random } = flow.env
  const start = flow.clock.now()
  const running: { readonly attempt: Attempt; readonly endsAt: number }[] = []
  const up = new Map<string, number>()
  const spans: Span[] = []
  const exponential = (mean: number) => -Math.log(1 - random()) * mean
  const end = (attempt: Attempt) => {
    const { name } = attempt.peer!
    const at = flow.clock.now() - start
    const works = name === 'a' || name === 'b' || attempt.startedAt - start >= backAt[name as 'c' | 'd']
    flow.end(attempt, works ? {} : { ending: 'error' })
    if (works && !up.has(name)) up.set(name, at)
  }
  const part = (name: string, at: number): number => {
    if (name === 'a' || name === 'b') return 1
    const since = up.get(name)
    return since === undefined ? 0 : Math.min(1, (at - since) / rampMs)
  }
  for (let next = 0; next < 100_000; next += exponential(1000 / rate)) {
    for (;;) {
      const first = running.reduce((a, b, i) => (b.endsAt < (running[a]?.endsAt ?? Infinity) ? i : a), -1)
      if (first < 0 || running[first]!.endsAt > next) break
      const [{ attempt, endsAt }] = running.splice(first, 1) as [(typeof running)[0]]
      flow.clock.move(Math.max(0, start + endsAt - flow.clock.now()))
      end(attempt)
    }
    flow.clock.move(Math.max(0, start + next - flow.clock.now()))
    const attempt = flow.begin()!
    const from = Math.floor(next / windowMs) * windowMs
    if (spans.at(-1)?.from !== from) spans.push({ from, given: {}, fair: {} })
    const { given, fair } = spans.at(-1)!
    const parts = Array.from('abcd', (name) => part(name, next))
    const total = parts.reduce((a, b) => a + b)
    for (const [i, name] of [...'abcd'].entries()) {
      given[name] = (given[name] ?? 0) + (attempt.peer!.name === name ? 1 : 0)
      fair[name] = (fair[name] ?? 0) + parts[i]! / total
    }
    running.push({ attempt, endsAt: next + exponential(serviceMs) })
  }
  return { spans, up }
}

function share(span: Span, name: string): number {
  return span.given[name]! / Object.values(span.given).reduce((a, b) => a + b)
}

for (const [method, rate, serviceMs] of [
  ['round_robin', 100, 20],
  ['least_conn', 100, 1],
  ['least_conn', 100, 10],
  ['least_conn', 200, 20],
  ['least_conn', 400, 50],
  ['least_conn', 400, 300],
] as const) {
  describe(`${method}, ${(rate * serviceMs) / 1000} requests in progress`, () => {
    const { spans, up } = climb(method, rate, serviceMs)
    const climbing = (name: string) =>
      spans.filter(({ from }) => from > up.get(name)! && from + windowMs <= up.get(name)! + rampMs)

    test('a peer that came back climbs and never drops, also when another comes back after it', () => {
      for (const name of ['c', 'd']) {
        const shares = climbing(name).map((span) => share(span, name))
        assert.ok(shares.length >= 10)
        // Twice the width of a window, so that the dice of one do not count as a drop.
        for (let i = 2; i < shares.length; i++) {
          assert.ok(shares[i]! > shares[i - 2]!, `${name}: ${shares.map((one) => one.toFixed(3)).join(' ')}`)
        }
      }
    })

    test('it is given something from its first seconds on', () => {
      for (const name of ['c', 'd']) for (const span of climbing(name)) assert.ok(span.given[name]! > 0)
    })

    test('nobody gets much more than a fair share, from the first moment to the last', () => {
      // Before that a failed peer's one attempt a second is not by weight.
      for (const { from, given, fair } of spans.filter((span) => span.from >= windowMs)) {
        for (const name of 'abcd') {
          const most = 1.3 * fair[name]! + 6
          assert.ok(given[name]! <= most, `${name} from ${from} ms: ${given[name]}, fair are ${fair[name]}`)
        }
      }
    })

    test('all have the same share in the end', () => {
      const last = spans.slice(-2)
      for (const name of 'abcd') {
        const mean = last.reduce((sum, span) => sum + share(span, name), 0) / last.length
        assert.ok(Math.abs(mean - 0.25) < 0.04, `${name}: ${mean}`)
      }
    })
  })
}

test('a peer without any weight yet does not make busy peers look like idle ones', () => {
  const list = peers([{ slow_start: rampMs }, 1, 1])
  const { slowAt, conns } = list[0]!.zone.peers
  slowAt[0] = 1_000_000
  conns.set([0, 5, 1])
  const balancer = new LeastConn(list)
  assert.equal(
    spread(3, () => balancer.pick(ask())),
    'c: 3',
  )
})

test('where all are at the foot of their slow start somebody is found', () => {
  for (const method of ['round_robin', 'least_conn']) {
    const flow = new Flow([{ slow_start: rampMs }, { slow_start: rampMs }], method, {})
    flow.upstream.zone.peers.slowAt.fill(flow.clock.now())
    assert.ok(flow.begin())
  }
})

test('the shares of least_conn tell how the turns of a peer in its slow start fall', () => {
  const upstream = group([1, 1, { slow_start: rampMs }])
  const { zone, peers: list } = upstream
  const balancer = new LeastConn(list)
  const now = 1_000_000
  zone.peers.slowAt[2] = now - rampMs / 2
  for (const conns of [
    [0, 0, 0],
    [2, 1, 0],
    [2, 1, 1],
  ]) {
    zone.peers.conns.set(conns)
    zone.peers.currentWeight.fill(0)
    const shares = balancer.shares(() => true, now)
    const picks = 1000
    const given = [0, 0, 0]
    for (let i = 0; i < picks; i++) given[balancer.pick(ask(undefined, now))!.index]! += 1
    for (const [i, count] of given.entries()) {
      assert.ok(Math.abs(count / picks - shares[i]!) < 0.005, `${conns}: told ${shares}, got ${given}`)
    }
  }
})
