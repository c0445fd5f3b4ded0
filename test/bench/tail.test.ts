import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { arrivals } from './tail-arrivals.ts'
import { figures, median, medians, misses, percentile, ratios } from './tail-figures.ts'
import { IdealQueue, idealTimes } from './tail-ideal.ts'
import { isDisturbed } from './tail-machine.ts'
import { readOptions } from './tail-options.ts'
import { Workshop } from './tail-peer.ts'
import { arrivalRate, doneAt, failsAt, type Plan, speedAt } from './tail-plan.ts'
import { type Run, summary } from './tail-report.ts'
import { scenarios } from './tail-scenarios.ts'
import { configuration, ideal, subjects } from './tail-subjects.ts'

const five: Plan = { speeds: [1, 1, 1, 1, 1], faults: [] }

function faulty(peer: number, from: number, until: number, rate: number, fails = false): Plan {
  return { speeds: [1, 2], faults: [{ peer, from, until, rate, fails }] }
}

function scenario(name: string) {
  return scenarios.find((one) => one.name === name)!
}

describe('arrivals', () => {
  test('are the same for the same seed and others for another', () => {
    const one = arrivals(7, 700, 5000)
    assert.deepEqual(arrivals(7, 700, 5000), one)
    assert.notDeepEqual(arrivals(8, 700, 5000), one)
  })

  test('of a longer run begin like those of a shorter', () => {
    const short = arrivals(7, 700, 1000)
    const long = arrivals(7, 700, 2000)
    assert.deepEqual(long.at.subarray(0, short.at.length), short.at)
    assert.deepEqual(long.work.subarray(0, short.work.length), short.work)
  })

  test('come at the rate, in order, with work of 20 ms in the mean', () => {
    const { at, work } = arrivals(1, 700, 100_000)
    assert.ok(Math.abs(at.length - 70_000) < 1000, `${at.length} in 100 s`)
    assert.ok(at.every((moment, i) => i === 0 || moment >= at[i - 1]!))
    const mean = work.reduce((sum, one) => sum + one, 0) / work.length
    assert.ok(Math.abs(mean - 20) < 0.4, `${mean} ms of work`)
    // As spread as exponential ones: their deviation is their mean.
    const square = work.reduce((sum, one) => sum + (one - mean) ** 2, 0) / work.length
    assert.ok(Math.abs(Math.sqrt(square) - 20) < 0.6)
  })
})

describe('a plan', () => {
  test('offers 70 % of what its peers can do, the same in every scenario', () => {
    for (const { name, plan } of scenarios) {
      assert.ok(Math.abs(arrivalRate(plan(20_000)) - 700) < 1e-9, name)
    }
  })

  test('has work done later where the peer is slow or stands still in between', () => {
    assert.equal(doneAt(five, 0, 100, 20), 120)
    assert.equal(doneAt(faulty(1, 105, 205, 0), 1, 100, 20), 210)
    assert.equal(doneAt(faulty(1, 105, 205, 0.1), 1, 100, 20), 155)
    assert.equal(doneAt(faulty(1, 105, 125, 0.1), 1, 100, 20), 128)
    assert.equal(doneAt(faulty(1, 105, 205, 0), 0, 100, 20), 120)
    assert.equal(doneAt(faulty(1, 50, 205, 0), 1, 100, 20), 215)
  })

  test('is in trouble from the beginning of a fault until before its end', () => {
    const plan = faulty(1, 100, 200, 0.5, true)
    assert.deepEqual(
      [99, 100, 199, 200].map((at) => [speedAt(plan, 1, at), failsAt(plan, 1, at)]),
      [
        [2, false],
        [1, true],
        [1, true],
        [2, false],
      ],
    )
    assert.equal(failsAt(plan, 0, 150), false)
  })

  test('keeps faults within the measured part, and pauses one peer at a time', () => {
    for (const { name, plan } of scenarios) {
      for (const ms of [4000, 20_000, 35_000]) {
        const faults = [...plan(ms).faults].sort((a, b) => a.from - b.from)
        for (const [i, { from, until }] of faults.entries()) {
          assert.ok(from >= 0 && until <= ms && until > from, name)
          if (i > 0) assert.ok(from >= faults[i - 1]!.until, name)
        }
      }
    }
    assert.equal(scenario('pauses').plan(20_000).faults.length, 10)
    const [stall] = scenario('stall').plan(20_000).faults
    assert.ok(Math.abs(stall!.until - stall!.from - 5000) < 1e-6)
  })
})

describe('the best possible', () => {
  /** Peers that requests 0, 1, … go to while nothing is freed; `-` waits. */
  function places(queue: IdealQueue, count: number, at: number): string {
    return Array.from({ length: count }, (_, request) => {
      queue.arrive(request)
      return queue.next(at)?.peer ?? '-'
    }).join(' ')
  }

  test('sends to a free worker only, the fastest first, and in order', () => {
    const queue = new IdealQueue({ speeds: [1, 2], faults: [] })
    assert.equal(places(queue, 10, 0), '1 1 1 1 0 0 0 0 - -')
    assert.equal(queue.next(0), undefined)
    queue.freed(0)
    queue.freed(1)
    assert.deepEqual(queue.next(0), { request: 8, peer: 1 })
    assert.deepEqual(queue.next(0), { request: 9, peer: 0 })
    queue.freed(1)
    assert.equal(queue.next(0), undefined, 'nobody waits any more')
  })

  test('never sends to a peer that stands still or fails, and knows who is slow now', () => {
    assert.equal(places(new IdealQueue(faulty(1, 100, 200, 0)), 5, 150), '0 0 0 0 -')
    assert.equal(places(new IdealQueue(faulty(1, 100, 200, 1, true)), 5, 150), '0 0 0 0 -')
    assert.equal(places(new IdealQueue(faulty(1, 100, 200, 0.1)), 5, 150), '0 0 0 0 1')
    assert.equal(places(new IdealQueue(faulty(1, 100, 200, 0)), 5, 200), '1 1 1 1 0')
  })

  test('by arithmetic takes the times that follow from the work', () => {
    const stream = { at: Float64Array.of(0, 1, 2, 3, 4, 5), work: Float64Array.of(10, 10, 10, 10, 10, 10) }
    const one: Plan = { speeds: [1], faults: [] }
    // The fifth waits for the first worker until 10, the sixth for the second until 11.
    assert.deepEqual([...idealTimes(one, stream, 0)], [10, 10, 10, 10, 16, 16])
    assert.deepEqual([...idealTimes(one, stream, 4)], [16, 16])
    // Faults count from the measured part: the peer stands still from 6 to 26 of the stream.
    const still: Plan = { speeds: [1], faults: [{ peer: 0, from: 2, until: 22, rate: 0, fails: false }] }
    assert.deepEqual([...idealTimes(still, stream, 4)], [36, 36])
  })

  test('by arithmetic is close to what theory says of exponential work while few wait', () => {
    const stream = arrivals(3, arrivalRate(five), 60_000)
    const { p99, p50 } = figures(idealTimes(five, stream, 0), 0)
    assert.ok(Math.abs(p99 - 20 * Math.log(100)) < 4, `p99 is ${p99}`)
    assert.ok(Math.abs(p50 - 20 * Math.log(2)) < 1.5, `p50 is ${p50}`)
  })
})

describe('a peer', () => {
  test('works on four requests at a time and on the others in turn', () => {
    const peer = new Workshop(five, 0)
    const ends = [30, 10, 20, 40, 5, 5].map((work) => peer.take(0, work))
    assert.deepEqual(ends, [30, 10, 20, 40, 15, 20])
  })

  test('answers 503 at once while it fails, and does what it had begun', () => {
    const peer = new Workshop(faulty(0, 100, 200, 1, true), 0)
    assert.equal(peer.take(95, 20), 115)
    assert.equal(peer.take(100, 20), undefined)
    assert.equal(peer.take(200, 20), 220)
  })

  test('reports how long one more request would take', () => {
    const peer = new Workshop(five, 0)
    assert.equal(peer.drainMs, 5)
    for (let i = 0; i < 7; i++) peer.take(0, 20)
    assert.ok(peer.drainMs > 39 && peer.drainMs < 41, `${peer.drainMs}`)
    for (let i = 0; i < 7; i++) peer.answered()
    assert.ok(peer.drainMs > 4.9 && peer.drainMs < 5.1, `${peer.drainMs}`)
  })
})

describe('figures', () => {
  test('are the nearest ranks, whatever the order', () => {
    const values = Float64Array.from({ length: 1000 }, (_, i) => ((i * 7) % 1000) + 1)
    assert.deepEqual(figures(values, 15), { p50: 500, p99: 990, p999: 999, errors: 0.015 })
    const few = Float64Array.of(1, 2, 3)
    assert.deepEqual(
      [0, 0.34, 0.99, 1].map((share) => percentile(few, share)),
      [1, 2, 3, 3],
    )
  })

  test('of several runs are medians, each by itself', () => {
    assert.equal(median([3, 1, 2]), 2)
    assert.equal(median([4, 1, 2, 3]), 2.5)
    assert.deepEqual(
      medians([
        { a: 1, b: 9 },
        { a: 2, b: 8 },
        { a: 3, b: 7 },
      ]),
      { a: 2, b: 8 },
    )
  })

  test('over those of the best possible are ratios', () => {
    const best = { p50: 10, p99: 100, p999: 200, errors: 0 }
    assert.deepEqual(ratios({ p50: 15, p99: 110, p999: 500, errors: 0.1 }, best), {
      p50: 1.5,
      p99: 1.1,
      p999: 2.5,
    })
  })
})

describe('a verdict', () => {
  const best = subjects.find(({ target }) => target === 'best')!
  const usual = subjects.find(({ target }) => target === 'default')!

  function measured(p99: number, errors = 0, disturbed = false): Run {
    const figures = { p50: 10, p99: 100 * p99, p999: 200, errors }
    return { figures, ratios: { p50: 1, p99, p999: 1 }, unanswered: 0, disturbed }
  }

  function verdict(name: string, subject: typeof best, ...runs: Run[]) {
    const { verdict: found, missed } = summary({ scenario: scenario(name), subject, runs })
    return [found, ...missed].join(' ')
  }

  test('counts a limit as reached, and says what is missed', () => {
    assert.deepEqual(misses({ p99: 1.1, errors: 0.003 }, 1.1, 0.003), [])
    assert.deepEqual(misses({ p99: 1.1, errors: 0.003 }, 1.101, 0.004), ['p99', 'errors'])
    assert.deepEqual(misses({ p99: 1.1, errors: 0.003 }, Number.NaN, 0), ['p99'])
  })

  test('goes by the targets of scenario and method', () => {
    const limits = scenarios.map(({ name, targets: { best, default: usual } }) => [name, best.p99, usual.p99])
    assert.deepEqual(limits, [
      ['speeds', 1.1, 1.35],
      ['slow', 1.08, 1.12],
      ['stall', 1.15, 1.15],
      ['failing', 1.1, 1.08],
      ['pauses', 1.18, 1.22],
    ])
    assert.equal(verdict('speeds', best, measured(1.2)), 'missed p99')
    assert.equal(verdict('speeds', usual, measured(1.2)), 'reached')
    assert.equal(verdict('failing', best, measured(1, 0.0031)), 'missed errors')
    assert.equal(verdict('failing', usual, measured(1, 0.015)), 'reached')
    assert.equal(verdict('failing', ideal, measured(1)), '', 'nothing is asked of the best possible')
  })

  test('goes by the median of the runs', () => {
    assert.equal(verdict('speeds', best, measured(1), measured(3), measured(1.1)), 'reached')
    assert.equal(verdict('speeds', best, measured(1), measured(3), measured(1.2)), 'missed p99')
  })

  test('leaves disturbed runs out, and is none when most of them were', () => {
    const spoilt = measured(9, 0, true)
    assert.equal(verdict('speeds', best, measured(1), spoilt, measured(1.1)), 'reached')
    assert.equal(verdict('speeds', best, measured(1), spoilt, spoilt), 'undecided')
    assert.equal(verdict('speeds', best, spoilt), 'undecided p99')
  })

  test('takes a machine for disturbed that was late, held the sidecar up or slowed the best possible', () => {
    const quiet = { p99: 2, max: 15 }
    const fine = { sending: quiet, sidecar: quiet, excess: 1.03 }
    assert.equal(isDisturbed(fine), false)
    assert.equal(isDisturbed({ ...fine, sending: { p99: 13, max: 15 } }), true)
    assert.equal(isDisturbed({ ...fine, sidecar: { p99: 2, max: 100 } }), true)
    assert.equal(isDisturbed({ ...fine, excess: 1.3 }), true)
  })
})

describe('the command line', () => {
  test('takes all unless told otherwise, and directives as methods', () => {
    const usual = readOptions([])
    assert.equal(usual.scenarios.length, 5)
    assert.deepEqual([usual.seconds, usual.runs, usual.json], [20, 3, false])
    const told = readOptions([
      '--scenario',
      'stall,pauses',
      '--methods',
      'least_conn,least_time header',
      '--json',
    ])
    assert.deepEqual(
      told.scenarios.map(({ name }) => name),
      ['stall', 'pauses'],
    )
    assert.deepEqual(
      told.methods.map(({ words }) => words),
      ['least_conn;', 'least_time header;'],
    )
  })

  test('says what it does not know', () => {
    assert.throws(() => readOptions(['--scenario', 'stal']), /no scenario "stal", there are speeds, slow/)
    assert.throws(() => readOptions(['--methods', 'best']), /no method "best", there are round_robin/)
    assert.throws(() => readOptions(['--seconds', '1.5']), /--seconds is "1.5", not a whole number from 2/)
  })
})

test('every method has a group and a port of its own', () => {
  const text = configuration([
    { words: 'least_conn;', ports: [1001, 1002] },
    { words: '', ports: [1003] },
  ])
  assert.match(text, /upstream group1 \{\s+least_conn;\s+server 127\.0\.0\.1:1001; server 127\.0\.0\.1:1002;/)
  assert.match(text, /listen 127\.0\.0\.1:PORT2;[^}]*proxy_pass http:\/\/group2;/)
})
