import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countRequest, mayRetry, recent, retryBegan, retryWaits } from '../../feedback/budget.ts'
import type { RetryBudget } from '../../feedback/policy.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { Clock } from '../support/clock.ts'
import { group } from '../support/peers.ts'
import { fc } from '../support/property.ts'

function requests(upstream: Upstream, n: number, now: number): void {
  for (let i = 0; i < n; i++) countRequest(upstream, now)
}

/** Sends retries, one after the other, until the budget is spent. @returns how many went */
function drain(upstream: Upstream, budget: RetryBudget, now: number): number {
  let sent = 0
  while (sent < 10_000 && mayRetry(upstream, budget, now)) {
    retryWaits(upstream, 1)
    retryWaits(upstream, -1)
    retryBegan(upstream, now)
    sent += 1
  }
  return sent
}

// How many retries go after so many requests in the same second: the ratio's part and so many a second.
const allowances = [
  // requests, ratio, min a second, window in seconds, retries
  [0, 0.2, 10, 10, 100],
  [100, 0.2, 10, 10, 120],
  [1000, 0.2, 10, 10, 300],
  [1000, 0.2, 3, 10, 230],
  [1000, 0.2, 0, 10, 200],
  [10, 0.2, 3, 1, 5],
  [15, 0.2, 0, 10, 3],
  [4, 0.2, 0, 10, 0],
  [100, 0.29, 0, 10, 29],
  [100, 1, 0, 10, 100],
  [100, 0, 0, 10, 0],
  [0, 0, 1, 60, 60],
] as const

for (const [asked, ratio, min, seconds, retries] of allowances) {
  test(`${ratio * 100}% min=${min} window=${seconds}s lets ${retries} retries go after ${asked} requests`, () => {
    const upstream = group([1])
    requests(upstream, asked, 5000)
    assert.equal(drain(upstream, { ratio, min, window: seconds * 1000 }, 5000), retries)
  })
}

test('without a budget every retry goes', () => {
  const upstream = group([1])
  for (let i = 0; i < 1000; i++) {
    assert.equal(mayRetry(upstream, undefined, 5000), true)
    retryBegan(upstream, 5000)
  }
})

test('a thousand retries that wait at the same time stay within the budget', () => {
  const upstream = group([1])
  const budget = { ratio: 0.2, min: 0, window: 10_000 }
  requests(upstream, 1000, 5000)
  let waiting = 0
  for (let i = 0; i < 1000; i++) {
    if (!mayRetry(upstream, budget, 5000)) continue
    retryWaits(upstream, 1)
    waiting += 1
  }
  assert.equal(waiting, 200)
  assert.equal(upstream.zone.get('retriesWaiting'), 200)
  for (let i = 0; i < 200; i++) {
    retryWaits(upstream, -1)
    retryBegan(upstream, 5100)
  }
  assert.equal(upstream.zone.get('retriesWaiting'), 0)
  assert.equal(mayRetry(upstream, budget, 5200), false)
})

test('a retry that is given up while it waits gives its place back', () => {
  const upstream = group([1])
  const budget = { ratio: 0.2, min: 0, window: 10_000 }
  requests(upstream, 5, 5000)
  retryWaits(upstream, 1)
  assert.equal(mayRetry(upstream, budget, 5000), false)
  retryWaits(upstream, -1)
  assert.equal(mayRetry(upstream, budget, 5000), true)
})

test('what lies further back than the window counts no more', () => {
  const upstream = group([1])
  const budget = { ratio: 0.2, min: 0, window: 10_000 }
  requests(upstream, 10, 5000)
  assert.equal(drain(upstream, budget, 5000), 2)
  requests(upstream, 5, 14_999)
  assert.equal(drain(upstream, budget, 14_999), 1)
  assert.equal(drain(upstream, budget, 15_000), 0, 'five requests and one retry are left in the window')
  requests(upstream, 5, 15_000)
  assert.equal(drain(upstream, budget, 15_000), 1)
})

test('locations with budgets of their own share the counters of the group', () => {
  const upstream = group([1])
  requests(upstream, 100, 5000)
  assert.equal(drain(upstream, { ratio: 0.1, min: 0, window: 10_000 }, 5000), 10)
  assert.equal(drain(upstream, { ratio: 0.3, min: 0, window: 10_000 }, 5000), 20)
  assert.equal(mayRetry(upstream, { ratio: 0.3, min: 0, window: 10_000 }, 5000), false)
})

test('counts requests and retries of the group for ever, beside the window', () => {
  const upstream = group([1])
  requests(upstream, 3, 5000)
  retryBegan(upstream, 5000)
  requests(upstream, 2, 500_000)
  assert.deepEqual([upstream.zone.get('requests'), upstream.zone.get('retries')], [5, 1])
  assert.deepEqual(recent(upstream.zone, 10_000, 500_000), { requests: 2, retries: 0 })
})

test('the second right after the clock began has nothing before it', () => {
  const upstream = group([1])
  requests(upstream, 3, 0)
  assert.deepEqual(recent(upstream.zone, 64_000, 10), { requests: 3, retries: 0 })
  assert.deepEqual(recent(upstream.zone, 64_000, 64_000), { requests: 0, retries: 0 })
})

test('at every moment a retry is let go, retries are within the ratio or the least allowance', () => {
  const event = fc.record({
    act: fc.constantFrom('request', 'request', 'request', 'retry', 'retry', 'go', 'leave'),
    wait: fc.constantFrom(0, 0, 0, 1, 100, 1000, 5000),
    times: fc.integer({ min: 1, max: 30 }),
  })
  const limits = fc.record({
    ratio: fc.constantFrom(0, 0.1, 0.2, 0.5),
    min: fc.constantFrom(0, 1, 3),
    window: fc.constantFrom(1000, 10_000, 60_000),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 100 }), limits, (events, budget) => {
      const upstream = group([1])
      const clock = new Clock()
      // The same by a list of moments.
      const asked: number[] = []
      const gone: number[] = []
      let waiting = 0
      const within = (list: readonly number[]) => {
        const oldest = Math.floor(clock.now() / 1000) - budget.window / 1000
        return list.filter((at) => Math.floor(at / 1000) > oldest).length
      }
      for (const { act, wait, times } of events) {
        clock.move(wait)
        for (let i = 0; i < times; i++) {
          if (act === 'request') {
            countRequest(upstream, clock.now())
            asked.push(clock.now())
          } else if (act === 'retry') {
            const most = budget.ratio * within(asked) + (budget.min * budget.window) / 1000
            const room = within(gone) + waiting + 1 <= most + 1e-6
            assert.equal(mayRetry(upstream, budget, clock.now()), room)
            if (!room) continue
            retryWaits(upstream, 1)
            waiting += 1
          } else if (waiting > 0) {
            retryWaits(upstream, -1)
            waiting -= 1
            if (act === 'leave') continue
            retryBegan(upstream, clock.now())
            gone.push(clock.now())
          }
        }
      }
      assert.equal(upstream.zone.get('retriesWaiting'), waiting)
    }),
    { numRuns: 200, seed: 1 },
  )
})
