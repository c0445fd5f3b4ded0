import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Peer } from '../../../feedback/peer.ts'
import { keepReport } from '../../../feedback/report.ts'
import { signalOf } from '../../../feedback/signal.ts'
import { feedback } from '../../../sidecar/balance/feedback.ts'
import { Flow, percent } from '../../support/flow.ts'
import { ask, counts, env, group, type PeerSketch, turns } from '../../support/peers.ts'
import { fc } from '../../support/property.ts'

const load = { variable: '$load', decay: '0s' }
const inverse = { ...load, inverse: true }

interface Reported {
  /** What each peer has reported so far; undefined: nothing. */
  readonly values: readonly (number | undefined)[]
  readonly weights?: readonly PeerSketch[]
}

/** A group whose peers have just reported. */
function reporting({ values, weights }: Reported, args: object = load, seed = 1) {
  const flow = new Flow(weights ?? values.map(() => ({ max_fails: 0 })), 'feedback', args, seed)
  const { report, reportAt } = flow.upstream.zone.peers
  for (const [i, { index }] of flow.upstream.peers.entries()) {
    const value = values[i]
    if (value === undefined) continue
    report[index] = value
    reportAt[index] = flow.clock.now()
  }
  const balancer = flow.group.primary
  const shares = () => balancer.shares(() => true, flow.clock.now()).map((share) => 100 * share)
  const pick = () => {
    const asked = ask(undefined, flow.clock.now())
    return { peer: balancer.pick(asked), how: asked.pick }
  }
  const nth = (peer: Peer) => flow.upstream.peers.indexOf(peer)
  return { flow, balancer, shares, pick, nth, peers: flow.upstream.zone.peers }
}

function close(found: readonly number[], expected: readonly number[], tolerance = 1e-6): void {
  const text = found.map((one) => one.toFixed(4)).join(' ')
  assert.equal(found.length, expected.length)
  for (const [i, one] of found.entries()) {
    assert.ok(Math.abs(one - expected[i]!) <= tolerance, `${text} and not ${expected.join(' ')}`)
  }
}

describe('the shares of feedback', () => {
  test('are proportional to the values', () => {
    const { shares, pick, flow } = reporting({ values: [60, 30, 10] })
    close(shares(), [60, 30, 10])
    const found = counts(50_000, () => pick().peer)
    close(
      percent(new Map(flow.upstream.peers.map(({ name }) => [name, found.get(name)!]))),
      [60, 30, 10],
      0.7,
    )
  })

  test('are inverse to them with inverse', () => {
    close(reporting({ values: [0.2, 0.4, 0.8] }, inverse).shares(), [400 / 7, 200 / 7, 100 / 7])
  })

  test('are multiplied by the weights', () => {
    const weights = [1, 4, 1]
    close(reporting({ values: [30, 10, 30], weights }).shares(), [30, 40, 30])
    close(reporting({ values: [1, 4, 1], weights }, inverse).shares(), [100 / 3, 100 / 3, 100 / 3])
  })

  test('hold however many requests are in flight', () => {
    for (const [args, loads] of [
      [load, [60, 30, 10]],
      [inverse, [1, 2, 6]],
    ] as const) {
      for (const inFlight of [1, 2, 3, 5, 10, 40]) {
        const { flow, nth } = reporting({ values: loads }, args)
        const given = flow.run(8000, inFlight, (peer) => ({ ms: 20, load: loads[nth(peer)]! }))
        close(percent(given), [60, 30, 10], 3)
      }
    }
  })

  test('leave a peer that reports 0 one request in a hundred for each peer', () => {
    const { shares, pick, flow } = reporting({ values: [50, 50, 0] })
    // The floor is a hundredth of the mean share, on top of the others.
    close(shares(), [50 / 1.00333, 50 / 1.00333, 0.333 / 1.00333], 0.001)
    const found = counts(60_000, () => pick().peer)
    const part = found.get(flow.upstream.peers[2]!.name)! / 60_000
    assert.ok(part > 1 / 400 && part < 1 / 230, `one in ${1 / part}`)
  })

  test('of a peer that reports 0 with inverse are a hundred times an ordinary one, and no more', () => {
    close(reporting({ values: [0, 1, 1] }, inverse).shares(), [10_000 / 102, 100 / 102, 100 / 102], 1)
    close(reporting({ values: [0, 0, 1] }, inverse).shares(), [49.8, 49.8, 0.5], 0.1)
  })

  test('go by the weights where all report 0', () => {
    for (const args of [load, inverse]) {
      close(reporting({ values: [0, 0, 0], weights: [2, 1, 1] }, args).shares(), [50, 25, 25])
    }
  })

  test('of a peer that reports nothing are the mean', () => {
    close(reporting({ values: [30, undefined, 10] }).shares(), [50, 100 / 3, 100 / 6])
    close(reporting({ values: [1, undefined, 4] }, inverse).shares(), [100 / 1.875, 62.5 / 1.875, 25 / 1.875])
    close(reporting({ values: [30, undefined, 10], weights: [1, 2, 1] }).shares(), [37.5, 50, 12.5])
  })

  test('are less for a peer whose answers fail, by the cube of its rate of success', () => {
    for (const [args, share] of [
      [load, 1 / 8],
      [{ ...load, errors: 1 }, 1 / 2],
      [{ ...load, errors: 0 }, 1],
    ] as const) {
      const { shares, peers } = reporting({ values: [10, 10] }, args)
      peers.ok[0] = 0.5
      close(shares(), [(100 * share) / (1 + share), 100 / (1 + share)])
    }
  })

  test('of a peer that an agent leaves a part of its weight are that part', () => {
    const { shares, peers } = reporting({ values: [10, 10] })
    peers.weightFactor[0] = 0.25
    close(shares(), [20, 80])
  })

  test('hold in a group too large to look at every peer', () => {
    const values = Array.from({ length: 200 }, (_, i) => (i < 100 ? 3 : 1))
    const { pick, shares, nth } = reporting({ values })
    let heavy = 0
    for (let i = 0; i < 20_000; i++) if (nth(pick().peer!) < 100) heavy += 1
    assert.ok(Math.abs(heavy / 20_000 - 0.75) < 0.02, `${heavy}`)
    const told = shares()
    assert.ok(Math.abs(told.slice(0, 100).reduce((sum, one) => sum + one, 0) - 75) < 2)
  })

  test('in a large group of which few report, the others have the mean of those', () => {
    const values = Array.from({ length: 200 }, (_, i) => (i < 4 ? 5 : undefined))
    const { pick, nth } = reporting({ values })
    let few = 0
    for (let i = 0; i < 20_000; i++) if (nth(pick().peer!) < 4) few += 1
    assert.ok(few > 300 && few < 520, `${few} of 20000`)
  })
})

describe('feedback', () => {
  test('is weighted round robin as long as fewer than two peers have reported', () => {
    for (const values of [
      [undefined, undefined, undefined],
      [0.1, undefined, undefined],
    ]) {
      const { pick, shares } = reporting({ values, weights: [5, 1, 1] })
      assert.equal(
        turns(14, () => pick().peer),
        'a a b a c a a a a b a c a a',
      )
      close(shares(), [500 / 7, 100 / 7, 100 / 7])
    }
  })

  test('is weighted round robin where only one of those that are ready has reported', () => {
    const { balancer, flow } = reporting({ values: [1, 99, undefined] })
    const ready = (peer: Peer) => peer.name !== 'b'
    assert.equal(
      turns(4, () => balancer.pick(ask(ready, flow.clock.now()))),
      'a c a c',
    )
  })

  test('says where the floor held, and where there was no value', () => {
    const floors = reporting({ values: [50, 50, 0] })
    const words = new Map<string, string>()
    for (let i = 0; i < 3000; i++) {
      const { peer, how } = floors.pick()
      words.set(peer!.name, how)
    }
    assert.deepEqual(Object.fromEntries([...words].sort()), { a: '', b: '', c: 'floor' })
    const unknown = reporting({ values: [undefined, undefined] })
    assert.equal(unknown.pick().how, 'unmeasured')
  })

  test('keeps to requests in flight: a value that is no longer true does not flood a peer', () => {
    const { flow, nth } = reporting({ values: [10, 10, 10, 10] })
    // The first one has stopped to answer, and so to report.
    flow.run(400, 40, (peer) => (nth(peer) === 0 ? { ms: 1e9 } : { ms: 20, load: 10 }))
    const { conns } = flow.upstream.zone.peers
    assert.ok(conns[0]! <= 14, `${conns[0]} in flight`)
  })

  test('makes up for requests in flight beyond the share of a peer', () => {
    const { shares, peers } = reporting({ values: [20, 10] })
    peers.conns.set([20, 10])
    close(shares(), [200 / 3, 100 / 3])
    peers.conns.set([22, 8])
    assert.ok(shares()[0]! < 40, `${shares()}`)
    peers.conns.set([15, 15])
    assert.ok(shares()[0]! > 95, `${shares()}`)
  })

  test('forgets a value that nobody renews: it moves to the median of the group', () => {
    const { shares, peers, flow } = reporting({ values: [80, 10, 10] }, { variable: '$load' })
    close(shares(), [80, 10, 10])
    flow.clock.move(5000)
    peers.reportAt[1] = peers.reportAt[2] = flow.clock.now()
    // Half of `decay`, and as many answers as would make it stale by half.
    flow.upstream.zone.set('answers', 150)
    const value = 10 * 8 ** Math.exp(-0.5)
    close(shares(), [(100 * value) / (20 + value), 1000 / (20 + value), 1000 / (20 + value)], 1e-6)
    flow.clock.move(1e5)
    peers.reportAt[1] = peers.reportAt[2] = flow.clock.now()
    flow.upstream.zone.set('answers', 30_000)
    close(shares(), [100 / 3, 100 / 3, 100 / 3], 0.01)
  })

  test('lets a peer that reported 0 back in even where it is never asked', () => {
    const { shares, peers, flow } = reporting({ values: [10, 10, 0] }, { variable: '$load' })
    flow.clock.move(60_000)
    peers.reportAt[0] = peers.reportAt[1] = flow.clock.now()
    flow.upstream.zone.set('answers', 3000)
    assert.ok(shares()[2]! > 30)
  })

  test('takes a value that has expired for none, and one after that only once it lasts', () => {
    const { shares, peers, flow } = reporting({ values: [10, 30, 20] }, { ...load, expire: '1m' })
    const renew = (...indexes: number[]) => {
      for (const index of indexes) peers.reportAt[index] = flow.clock.now()
    }
    flow.clock.move(60_000)
    renew(1, 2)
    // The first one has the mean of the others.
    close(shares(), [100 / 3, 40, 80 / 3])
    peers.report[0] = 50
    peers.reportSince[0] = flow.clock.now() + 10_000
    renew(0)
    close(shares(), [100 / 3, 40, 80 / 3])
    flow.clock.move(10_000)
    close(shares(), [50, 30, 20])
    flow.clock.move(60_000)
    renew(0)
    // One value alone is nothing to compare.
    close(shares(), [100 / 3, 100 / 3, 100 / 3])
  })

  test('learns from answers, and shares by what it has learnt', () => {
    const { flow, shares, nth } = reporting({ values: [undefined, undefined] }, { ...load, factor: 0 })
    const loads = [30, 10]
    for (let i = 0; i < 20; i++) flow.serve((peer) => ({ ms: 5, load: loads[nth(peer)]! }))
    close(shares(), [75, 25])
    loads[0] = 10
    for (let i = 0; i < 60; i++) flow.serve((peer) => ({ ms: 5, load: loads[nth(peer)]! }))
    close(shares(), [50, 50])
  })

  test('begins anew where a reload changes what is reported, and goes on where it does not', () => {
    const { flow, peers } = reporting({ values: [10, 20] })
    const { upstream } = flow
    const make = (variable: string) => {
      const learning = feedback.learning({ variable }, () => () => '')
      Object.assign(upstream, { learning })
      feedback.create(upstream, upstream.peers, { variable }, env())
    }
    make('$load')
    assert.ok(peers.reportAt[0]! > 0)
    make('$upstream_http_x_capacity')
    assert.deepEqual([...peers.reportAt.subarray(0, 2)], [0, 0])
  })

  test('whatever was reported, shares are finite and sum to 1, and nobody goes without', () => {
    const value = fc.oneof(
      fc.constantFrom(0, 1e-100, 1e100, 1, 0.5, undefined),
      // Nothing between 0 and the first of these is kept.
      fc.double({ min: 1e-100, max: 1e100, noNaN: true }),
    )
    const peer = fc.record({
      value,
      weight: fc.constantFrom(1, 2, 1_000_000),
      ok: fc.double({ min: 0, max: 1, noNaN: true }),
      conns: fc.nat(50),
      age: fc.nat(100_000),
    })
    fc.assert(
      fc.property(fc.array(peer, { minLength: 1, maxLength: 6 }), fc.boolean(), (sketches, inverted) => {
        const values = sketches.map((one) => one.value)
        const weights = sketches.map((one) => one.weight)
        const args = { variable: '$load', inverse: inverted }
        const { balancer, flow, peers, pick } = reporting({ values, weights }, args)
        flow.upstream.zone.set('answers', 5000)
        for (const [i, { ok, conns, age }] of sketches.entries()) {
          peers.ok[i] = ok
          peers.conns[i] = conns
          if (peers.reportAt[i]! > 0) peers.reportAt[i]! -= age
        }
        const found = balancer.shares(() => true, flow.clock.now())
        const sum = found.reduce((total, share) => total + share, 0)
        assert.ok(Math.abs(sum - 1) < 1e-9, `${found}`)
        assert.ok(
          found.every((share) => share >= 0 && share <= 1 + 1e-9),
          `${found}`,
        )
        assert.ok(pick().peer)
        peers.conns.fill(0)
        const idle = balancer.shares(() => true, flow.clock.now())
        const known = values.filter((one) => one !== undefined).length
        if (known >= 2)
          assert.ok(
            idle.every((share) => share > 0.0099 / sketches.length / 1.01),
            `${idle}`,
          )
      }),
      { numRuns: 500 },
    )
  })

  test('peers whose value has become 0 share evenly, and one that has work to do gets little', () => {
    const { balancer, flow, peers } = reporting({ values: [1, 1, 5] }, { variable: '$load', inverse: true })
    const { zone } = flow.upstream
    for (let i = 0; i < 15_000; i++) {
      // One has had more answers than the other.
      keepReport(flow.upstream, flow.upstream.peers[0]!, 0, 0.9, 0, flow.clock.now())
      if (i % 2 === 0) keepReport(flow.upstream, flow.upstream.peers[1]!, 0, 0.9, 0, flow.clock.now())
      if (i % 100 > 0) continue
      zone.set('medianAt', 0)
      const told = balancer.shares(() => true, flow.clock.now())
      assert.ok(told[2]! > 0.003 && told[2]! < 0.2, `${[...peers.report.subarray(0, 3)]}: ${told}`)
    }
    assert.deepEqual(
      balancer.shares(() => true, flow.clock.now()).map((share) => Math.round(1000 * share)),
      [498, 498, 5],
    )
  })

  test('of two groups of a zone the backups have a draw of their own', () => {
    const learning = feedback.learning(load, () => () => '')
    const upstream = group([1], { backups: [1, 1], method: 'feedback', learning })
    const backups = feedback.create(upstream, upstream.backups, load, env())
    const { report, reportAt } = upstream.zone.peers
    for (const [i, { index }] of upstream.backups.entries()) {
      report[index] = [30, 10][i]!
      reportAt[index] = 1_000_000
    }
    close(
      backups.shares(() => true, 1_000_000).map((share) => 100 * share),
      [75, 25],
    )
  })
})

describe('the arguments of feedback', () => {
  const variable = (text: string) => () => text

  test('have the defaults of the group', () => {
    const { value, ...rest } = feedback.learning({ variable: '$load' }, variable, 0.8)
    assert.deepEqual(rest, {
      signal: signalOf('$load'),
      mode: 'header',
      factor: 0.8,
      errors: 3,
      decay: 10_000,
      account: undefined,
      probes: false,
    })
    const { read, ...told } = value
    assert.deepEqual(told, { name: '$load', orca: false, inverse: false, expire: 180_000 })
    assert.equal(feedback.learning({ variable: '$load' }, variable).factor, 0.9)
  })

  test('are read in the units of the file', () => {
    const args = { variable: '$load', inverse: true, last_byte: true, factor: 70, account: '$a', errors: 1 }
    const found = feedback.learning({ ...args, decay: '1500ms', expire: '1m' }, variable)
    assert.deepEqual([found.mode, found.factor, found.errors, found.decay], ['last_byte', 0.7, 1, 1500])
    assert.deepEqual([found.value.inverse, found.value.expire], [true, 60_000])
  })

  test('are asked what they are made of: of probes, and of load reports', () => {
    const involves = (text: string, is: (name: string) => boolean) =>
      text === '$good' ? is('upstream_probe') : is(text.slice(1))
    const learning = (args: { variable: string; account?: string }) =>
      feedback.learning(args, variable, 0.9, involves)
    assert.equal(learning({ variable: '$load', account: '$good' }).probes, true)
    assert.equal(learning({ variable: '$load', account: '$other' }).probes, false)
    assert.equal(learning({ variable: '$upstream_probe' }).probes, false)
    assert.equal(learning({ variable: '$orca_named_queue' }).value.orca, true)
    assert.equal(learning({ variable: '$load' }).value.orca, false)
  })

  test('must have been given to the group', () => {
    const upstream = group([1])
    assert.throws(
      () => feedback.create(upstream, upstream.peers, load, env()),
      /learns no value for feedback/,
    )
  })
})
