import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { signalOf } from '../../../feedback/signal.ts'
import { leastTime } from '../../../sidecar/balance/least-time.ts'
import { Flow, percent } from '../../support/flow.ts'
import { ask, counts } from '../../support/peers.ts'

const lastByte = { mode: 'last_byte' }
const best = { mode: 'last_byte', best: true }
const plain = { mode: 'last_byte', plain: true }

/** Failures are to be the method's affair here, so nobody is set aside for them. */
const ones = (count: number) => Array.from({ length: count }, () => ({ max_fails: 0 }))

/** A group whose peers always answer after a time of their own, and are known to. */
function steady(times: readonly number[], args: object, seed = 1) {
  const flow = new Flow(ones(times.length), 'least_time', args, seed)
  const { avg, answeredAt } = flow.upstream.zone.peers
  const of = (peer: Peer) => ({ ms: times[flow.upstream.peers.indexOf(peer)]! })
  for (const [i, { index }] of flow.upstream.peers.entries()) {
    avg[index] = times[i]!
    answeredAt[index] = flow.clock.now()
  }
  return { flow, of, avg }
}

function close(found: readonly number[], expected: readonly number[], tolerance: readonly number[]): void {
  const text = found.map((one) => one.toFixed(2)).join(' ')
  for (const [i, one] of found.entries()) {
    assert.ok(Math.abs(one - expected[i]!) <= tolerance[i]!, `${text} and not ${expected.join(' ')}`)
  }
}

describe('least_time', () => {
  test('gives idle peers shares inverse to their times, and the slowest its floor', () => {
    const times = [5, 10, 20, 40, 100, 10_000]
    for (const args of [lastByte, plain]) {
      const { flow } = steady(times, args)
      const balancer = flow.group.primary
      const found = counts(400_000, () => balancer.pick(ask(undefined, flow.clock.now())))
      const given = new Map(flow.upstream.peers.map(({ name }) => [name, found.get(name) ?? 0]))
      const documented = [51.86, 25.93, 12.97, 6.48, 2.59, 0.166]
      close(percent(given), documented, [0.4, 0.4, 0.3, 0.2, 0.15, 0.03])
      close(
        balancer.shares(() => true, flow.clock.now()).map((share) => 100 * share),
        documented,
        [0.005, 0.005, 0.005, 0.005, 0.005, 0.0005],
      )
    }
  })

  test('keeps to the same shares where ten requests are always in flight', () => {
    const times = [10, 20, 40, 80, 160]
    const draw = steady(times, lastByte)
    // Fixed times go in step by the phases they began with: that is worth a point or two.
    close(percent(draw.flow.run(40_000, 10, draw.of)), [53.5, 25.2, 12.2, 6.1, 3], [2, 1, 0.8, 0.5, 0.4])
    const letter = steady(times, plain)
    close(
      percent(letter.flow.run(40_000, 10, letter.of)),
      [51.6, 25.8, 13, 6.5, 3.1],
      [1, 0.8, 0.6, 0.5, 0.4],
    )
    const first = steady(times, best)
    close(
      percent(first.flow.run(40_000, 10, first.of)),
      [76.1, 18.8, 3.5, 1.4, 0.2],
      [1.8, 1.8, 0.5, 1.2, 0.2],
    )
  })

  test('gives a very slow peer about one request in a hundred for each peer of the group', () => {
    for (const size of [4, 10]) {
      const { flow } = steady([...Array<number>(size - 1).fill(10), 1e7], lastByte)
      const picks = 200_000
      const words = new Map<string, number>()
      const found = counts(picks, () => {
        const asked = ask(undefined, flow.clock.now())
        const peer = flow.group.primary.pick(asked)
        words.set(asked.pick, (words.get(asked.pick) ?? 0) + 1)
        return peer
      })
      const slow = found.get('abcdefghij'[size - 1]!)!
      const expected = picks / (100 * size)
      assert.ok(Math.abs(slow / expected - 1) < 0.2, `${slow} and not ${expected}`)
      assert.equal(words.get('floor'), slow)
    }
  })

  test('gives a peer that fails fast less than a fair share, and less as it goes on', () => {
    for (const mode of ['header', 'last_byte']) {
      for (const more of [{}, { best: true }]) {
        const flow = new Flow([1, 1], 'least_time', { mode, ...more })
        const answer = ({ name }: Peer) => (name === 'a' ? { ms: 50 } : { ms: 1, status: 500 })
        const parts = [500, 500, 1000].map((requests) => flow.run(requests, 4, answer).get('b')! / requests)
        assert.ok(parts[0]! < 0.5, `${parts}`)
        assert.ok(parts[1]! < parts[0]! && parts[2]! < 0.05, `${parts}`)
      }
    }
  })

  test('never expects less of a peer after a failure', () => {
    const { flow, of } = steady([20, 30, 40], lastByte)
    flow.run(300, 3, of)
    const [peer] = flow.upstream.peers
    const expected = () => flow.group.primary.expected!(peer!, flow.clock.now())
    let compared = 0
    for (const ending of ['error', 'timeout', 'http'] as const) {
      for (let i = 0; i < 20; i++) {
        const attempt = flow.begin()!
        const before = expected()
        flow.clock.move(0.1)
        flow.end(attempt, ending === 'http' ? { status: 503, failed: true } : { ending })
        if (attempt.peer !== peer || ending === 'timeout') continue
        assert.ok(expected() >= before - 1e-9)
        compared += 1
      }
    }
    assert.ok(compared > 0)
  })

  test('changes nothing where all peers fail alike', () => {
    const { flow } = steady([10, 20, 40], lastByte)
    const shares = () => flow.group.primary.shares(() => true, flow.clock.now())
    const before = shares()
    for (const { index } of flow.upstream.peers) flow.upstream.zone.peers.ok[index] = 0.7
    close(shares(), before, [1e-9, 1e-9, 1e-9])
  })

  test('does not starve peers whose first answers were slow', () => {
    for (const args of [lastByte, best]) {
      const flow = new Flow(ones(5), 'least_time', args, 3)
      let early = true
      const answer = ({ name }: Peer) => ({ ms: early && name > 'b' ? 2000 : 20 })
      flow.run(100, 5, answer)
      early = false
      flow.run(20_000, 5, answer)
      for (const share of percent(flow.run(5000, 5, answer))) assert.ok(share >= 10, `${share} %`)
    }
  })

  test('sends little to a peer that stalls, before any answer says so', () => {
    const { flow, of } = steady([20, 20, 20, 20], lastByte)
    flow.run(400, 8, of)
    const stalled = flow.run(400, 8, (peer) => (peer.name === 'a' ? { ms: 5000 } : of(peer)))
    assert.ok(stalled.get('a')! <= 6, `${stalled.get('a')} went to the stalled peer`)
  })

  test('counts the time that requests have waited into what it expects', () => {
    const { flow } = steady([20, 20], lastByte)
    const expected = (place: number) =>
      flow.group.primary.expected!(flow.upstream.peers[place]!, flow.clock.now())
    const attempt = flow.begin()!
    const place = flow.upstream.peers.indexOf(attempt.peer!)
    flow.clock.move(1000)
    assert.ok(Math.abs(expected(place) - 120) < 1e-9)
    flow.end(attempt, { ending: 'aborted' })
  })

  test('takes a new peer for an average one, and says so', () => {
    const { flow, avg } = steady([10, 30, 20], lastByte)
    avg[2] = 0
    const { primary } = flow.group
    close(
      primary.shares(() => true, flow.clock.now()),
      [6 / 11, 2 / 11, 3 / 11],
      [1e-9, 1e-9, 1e-9],
    )
    const only = ask(({ name }) => name === 'c', flow.clock.now())
    assert.equal(primary.pick(only)!.name, 'c')
    assert.equal(only.pick, 'unmeasured')
    assert.equal(flow.group.primary.expected!(flow.upstream.peers[2]!, flow.clock.now()), 20)
  })

  test('draws evenly while nothing is known', () => {
    const flow = new Flow(ones(4), 'least_time', lastByte)
    const found = counts(20_000, () => flow.group.primary.pick(ask(undefined, flow.clock.now())))
    for (const count of found.values()) assert.ok(Math.abs(count / 20_000 - 0.25) < 0.02)
  })

  test('lets the average of an idle peer drift to the median, and learns from there', () => {
    const { flow, of, avg } = steady([10, 20, 30, 1000], { mode: 'last_byte', decay: '10s' })
    const [, , , slow] = flow.upstream.peers
    const expected = () => flow.group.primary.expected!(slow!, flow.clock.now())
    assert.equal(expected(), 1000)
    // Time alone does not age the averages of a quiet group.
    flow.clock.move(60_000)
    assert.equal(expected(), 1000)
    for (let i = 0; i < 2000; i++) {
      flow.upstream.zone.peers.conns[slow!.index] = 1000
      flow.serve(of)
      flow.upstream.zone.peers.conns[slow!.index] = 0
    }
    const drifted = expected()
    assert.ok(drifted < 100, `${drifted}`)
    const asked = ask((peer) => peer === slow, flow.clock.now())
    flow.group.primary.pick(asked)
    assert.ok(asked.drifted > 0 && asked.drifted < 100)
    assert.equal(avg[3], 1000)
  })

  test('forgets nothing with decay=0', () => {
    const { flow } = steady([10, 1000], { mode: 'last_byte', decay: '0s' })
    flow.upstream.zone.set('answers', 1e6)
    flow.clock.move(1e6)
    assert.equal(flow.group.primary.expected!(flow.upstream.peers[1]!, flow.clock.now()), 1000)
  })

  test('comes back to a peer that was slow for a while', () => {
    const { flow, of } = steady([20, 20, 20, 20], lastByte)
    let slow = true
    const answer = (peer: Peer) => (slow && peer.name === 'a' ? { ms: 1000 } : of(peer))
    flow.run(2000, 8, answer)
    slow = false
    const began = flow.clock.now()
    let given = 0
    while (given < 250 / 2 && flow.clock.now() - began < 20_000) given = flow.run(1000, 8, answer).get('a')!
    assert.ok(flow.clock.now() - began < 5000, `${flow.clock.now() - began} ms to half a fair share`)
  })

  test('takes the best peer with best, and explores with one request in a hundred', () => {
    const { flow } = steady([10, 20, 30, 40], best)
    const words = new Map<string, number>()
    const found = counts(100_000, () => {
      const asked = ask(undefined, flow.clock.now())
      const peer = flow.group.primary.pick(asked)
      words.set(asked.pick, (words.get(asked.pick) ?? 0) + 1)
      return peer
    })
    assert.ok(Math.abs(words.get('explored')! - 1000) < 150)
    assert.ok(Math.abs(found.get('d')! - 250) < 80)
    assert.ok(found.get('a')! > 99_000)
  })

  test('explores only peers that have nothing in flight', () => {
    const { flow } = steady([10, 20], best)
    flow.upstream.zone.peers.conns[1] = 1
    const found = counts(5000, () => flow.group.primary.pick(ask(undefined, flow.clock.now())))
    assert.equal(found.get('b'), undefined)
  })

  test('weighs what is in flight against the time with best', () => {
    const { flow } = steady([10, 25], best)
    const { conns } = flow.upstream.zone.peers
    const name = () => flow.group.primary.pick(ask(undefined, flow.clock.now()))!.name
    conns.set([1, 3])
    assert.equal(name(), 'a')
    conns.set([3, 1])
    // 4 × 10 against 2 × 25, and then 6 × 10.
    assert.equal(name(), 'a')
    conns.set([5, 1])
    assert.equal(name(), 'b')
  })

  test('draws among equals with best', () => {
    const { flow } = steady([10, 10, 10, 99], best)
    const found = counts(30_000, () => flow.group.primary.pick(ask(undefined, flow.clock.now())))
    for (const name of ['a', 'b', 'c']) assert.ok(Math.abs(found.get(name)! - 9950) < 400)
  })

  test('goes by samples in a large group, and still by time', () => {
    const times = Array.from({ length: 300 }, (_, i) => (i < 100 ? 10 : i < 200 ? 20 : 40))
    for (const args of [lastByte, plain]) {
      const { flow } = steady(times, args)
      const picks = 120_000
      const thirds = [0, 0, 0]
      for (let i = 0; i < picks; i++) {
        const { index } = flow.group.primary.pick(ask(undefined, flow.clock.now()))!
        thirds[Math.floor(index / 100)]! += 100 / picks
      }
      close(thirds, [400 / 7, 200 / 7, 100 / 7], [1, 1, 1])
      const told = flow.group.primary.shares(() => true, flow.clock.now())
      const sums = [0, 100, 200].map((from) =>
        told.slice(from, from + 100).reduce((sum, one) => sum + 100 * one, 0),
      )
      close(sums, thirds, [1, 1, 1])
    }
  })

  test('says of a large group under best how likely each is the best of a sample', () => {
    const times = Array.from({ length: 200 }, (_, i) => 10 + i)
    const { flow } = steady(times, best)
    const told = flow.group.primary.shares(() => true, flow.clock.now())
    const picks = 60_000
    const found = counts(picks, () => flow.group.primary.pick(ask(undefined, flow.clock.now())))
    for (const [i, { name }] of flow.upstream.peers.slice(0, 10).entries()) {
      assert.ok(Math.abs((found.get(name) ?? 0) / picks - told[i]!) < 0.04, `${name}: ${told[i]}`)
    }
  })

  test('finds ready peers of a large group whatever their number, under the plain rule too', () => {
    for (const args of [lastByte, best, plain]) {
      const { flow } = steady(Array<number>(1000).fill(10), args)
      for (const ready of [1, 20, 100, 999]) {
        for (let i = 0; i < 20; i++) {
          const asked = ask(({ index }) => (index * 7) % 1000 < ready, flow.clock.now())
          assert.ok((flow.group.primary.pick(asked)!.index * 7) % 1000 < ready)
        }
      }
    }
  })

  test('expects more where requests of other instances are stuck, and says whether it does', () => {
    for (const args of [lastByte, best, plain]) {
      const { flow } = steady([10, 10], args)
      const { primary, upstream } = flow.group
      const { zone, peers } = upstream
      const now = flow.clock.now()
      const before = primary.expected!(peers[0]!, now)
      zone.peers.stuckCount[peers[0]!.index] = 2
      zone.peers.stuckStart[peers[0]!.index] = 2 * now - 1500
      zone.set('stuckPeers', 1)
      const more = primary.expected!(peers[0]!, now) - before
      const { factor } = upstream.learning!
      const adds = primary.heedsStuck ? (1 - factor) * 1500 : 0
      assert.ok(Math.abs(more - adds) < 1e-6, `${more} and not ${adds}`)
      assert.equal(more > 0, args === lastByte)
    }
  })
})

describe('the arguments of least_time', () => {
  const learning = (args: Parameters<typeof leastTime.learning>[0], keep?: number) =>
    leastTime.learning(args, (text) => () => text, keep)

  test('have the defaults of the group and of best', () => {
    assert.deepEqual(learning({ mode: 'header' }), {
      signal: signalOf('least_time header'),
      mode: 'header',
      factor: 0.9,
      errors: 3,
      decay: 10_000,
      account: undefined,
      probes: false,
      plain: false,
    })
    assert.equal(learning({ mode: 'header' }, 0.5).factor, 0.5)
    assert.equal(learning({ mode: 'header', best: true }, 0.5).factor, 0.98)
    assert.equal(learning({ mode: 'header', best: true, factor: 70 }).factor, 0.7)
    assert.equal(learning({ mode: 'header', inflight: true }).factor, 0.9)
  })

  test('are read in the units of the file', () => {
    const found = learning({ mode: 'last_byte', errors: 0, decay: '1500ms', account: '$learn' })
    assert.equal(found.errors, 0)
    assert.equal(found.decay, 1500)
    assert.equal(found.account?.(new Call()), '$learn')
    assert.equal(learning({ mode: 'last_byte', decay: '2m' }).decay, 120_000)
    assert.equal(learning({ mode: 'last_byte', decay: '0s' }).decay, 0)
  })

  test('of plain leave nothing to failures and forgetting', () => {
    const { errors, decay } = learning({ mode: 'header', plain: true })
    assert.deepEqual([errors, decay], [0, 0])
    assert.equal(leastTime.misfit({ mode: 'header', plain: true, best: true }), 'plain')
    assert.equal(leastTime.misfit({ mode: 'header', plain: true, inflight: true }), 'plain')
    assert.equal(leastTime.misfit({ mode: 'header', plain: true, errors: 2 }), 'errors=2')
    assert.equal(leastTime.misfit({ mode: 'header', plain: true, decay: '5s' }), 'decay=5s')
    assert.equal(leastTime.misfit({ mode: 'header', plain: true, factor: 50 }), undefined)
    assert.equal(leastTime.misfit({ mode: 'header', best: true, errors: 2 }), undefined)
  })

  test('refuse weight and slow_start of servers', () => {
    assert.deepEqual([...leastTime.supports], ['backup'])
  })
})
