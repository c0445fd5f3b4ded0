import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  downtime,
  exclusion,
  fail,
  forgive,
  peerState,
  succeed,
  throttle,
  usable,
} from '../../feedback/health.ts'
import { begin } from '../../feedback/observe.ts'
import { Attempt } from '../../feedback/outcome.ts'
import type { Peer } from '../../feedback/peer.ts'
import type { Upstream } from '../../feedback/upstream.ts'
import { attempted, chosen, ended } from '../support/attempts.ts'
import { Clock } from '../support/clock.ts'
import { group, type PeerSketch } from '../support/peers.ts'

/** A group whose first peer is the one in question, and another, so that the first is not alone. */
function pair(sketch: PeerSketch): { upstream: Upstream; peer: Peer; clock: Clock } {
  const upstream = group([sketch, 1])
  for (const { zone, index, options } of upstream.peers) zone.peers.effectiveWeight[index] = options.weight
  return { upstream, peer: upstream.peers[0]!, clock: new Clock() }
}

/**
 * Plays attempts that end at once: `f` fails, `o` succeeds, and a number moves the clock by so many seconds.
 * @returns after each attempt the failures counted, with `!` where the peer is set aside
 */
function play({ upstream, peer, clock }: ReturnType<typeof pair>, script: string): string {
  const seen: string[] = []
  for (const step of script.split(' ')) {
    if (step === 'f' || step === 'o') {
      attempted(upstream, peer, step === 'f' ? 'error' : 'ok', clock.now())
      const fails = peer.zone.peers.fails[peer.index]!
      seen.push(usable(peer, upstream.single, clock.now()) ? `${fails}` : `${fails}!`)
    } else clock.move(Number(step) * 1000)
  }
  return seen.join(' ')
}

// Failures add up until a success of an attempt chosen a whole fail_timeout after the latest of them.
const counting = [
  // max_fails, fail_timeout in seconds, what happens, failures afterwards
  [1, 10, 'f', '1!'],
  [1, 10, 'f 9.999 o', '1! 1!'],
  [1, 10, 'f 10 o', '1! 0'],
  [3, 3, 'f f o f', '1 2 2 3!'],
  [3, 3, 'f f f', '1 2 3!'],
  [3, 3, 'f 2.9 f 2.9 o f', '1 2 2 3!'],
  [3, 3, 'f 2.9 f 3 o f', '1 2 0 1'],
  [3, 3, 'f 100 f 100 f', '1 2 3!'],
  [2, 0.5, 'f f 0.499 o 0.001 o', '1 2! 2! 0'],
  [2, 0.5, 'f f 0.5 o', '1 2! 0'],
  [0, 10, 'f f f f', '1 2 3 4'],
  [0, 10, 'f f 10 o', '1 2 0'],
  [1, 0, 'f', '1'],
  [1, 0, 'f o f f', '1 0 1 2'],
] as const

for (const [maxFails, failTimeout, script, expected] of counting) {
  test(`counts "${script}" as ${expected} with max_fails=${maxFails} fail_timeout=${failTimeout}s`, () => {
    const scene = pair({ max_fails: maxFails, fail_timeout: failTimeout * 1000 })
    assert.equal(play(scene, script), expected)
  })
}

test('lets exactly one request try a peer that was set aside, each fail_timeout', () => {
  const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
  attempted(upstream, peer, 'error', clock.now())
  const admitted: number[] = []
  for (let ms = 0; ms < 3500; ms += 100) {
    if (usable(peer, false, clock.now())) {
      admitted.push(ms)
      chosen(upstream, peer, clock.now())
    }
    clock.move(100)
  }
  assert.deepEqual(admitted, [1000, 2000, 3000])
})

test('sets a peer aside a second time as it did the first: one attempt each fail_timeout', () => {
  const scene = pair({ max_fails: 3, fail_timeout: 1000 })
  const { upstream, peer, clock } = scene
  let attempts = 0
  const serve = (seconds: number, end: 'error' | 'ok') => {
    const before = attempts
    for (let ms = 0; ms < seconds * 1000; ms += 10) {
      if (usable(peer, false, clock.now())) {
        attempts += 1
        attempted(upstream, peer, end, clock.now())
      }
      clock.move(10)
    }
    return attempts - before
  }
  assert.equal(serve(0.5, 'error'), 3, 'out after three failures')
  assert.equal(serve(3, 'error'), 3, 'then one a second')
  serve(2, 'ok')
  assert.equal(serve(0.5, 'error'), 3, 'out again after three failures')
  assert.equal(serve(3, 'error'), 3, 'and again one a second')
})

test('counts an ejection once, though half-open attempts go on failing', () => {
  const scene = pair({ max_fails: 2, fail_timeout: 1000 })
  assert.equal(play(scene, 'f f 1 f 1 f'), '1 2! 3! 4!')
  const { peer } = scene
  const numbers = peer.zone.peers
  assert.equal(numbers.unavailable[peer.index], 1)
  assert.equal(numbers.failsTotal[peer.index], 4)
  play(scene, '1 o f f')
  assert.equal(numbers.unavailable[peer.index], 2)
  assert.equal(numbers.failsTotal[peer.index], 6)
})

test('a slow half-open attempt keeps others out for another fail_timeout only', () => {
  const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
  attempted(upstream, peer, 'error', clock.now())
  clock.move(1000)
  const slow = chosen(upstream, peer, clock.now())
  clock.move(999)
  assert.equal(usable(peer, false, clock.now()), false)
  clock.move(1)
  assert.equal(usable(peer, false, clock.now()), true)
  ended(slow, 'ok', clock.now())
  assert.equal(peerState(peer, clock.now()), 'up')
})

test('an answer to a request from before the failure does not take the peer back', () => {
  const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
  const long = chosen(upstream, peer, clock.now())
  clock.move(10)
  attempted(upstream, peer, 'error', clock.now())
  clock.move(1000)
  chosen(upstream, peer, clock.now())
  ended(long, 'ok', clock.now())
  assert.equal(usable(peer, false, clock.now()), false)
  assert.equal(peerState(peer, clock.now()), 'unavailable')
})

for (const ending of ['aborted', 'stale'] as const) {
  test(`a half-open attempt that ends as ${ending} neither takes the peer back nor delays the next one`, () => {
    const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
    attempted(upstream, peer, 'error', clock.now())
    clock.move(1000)
    const attempt = chosen(upstream, peer, clock.now())
    clock.move(300)
    ended(attempt, ending, clock.now())
    assert.equal(peer.zone.peers.fails[peer.index], 1)
    assert.equal(peerState(peer, clock.now()), 'unavailable')
    assert.equal(usable(peer, false, clock.now()), true, 'the next request may try at once')
    chosen(upstream, peer, clock.now())
    assert.equal(usable(peer, false, clock.now()), false, 'and only one')
  })
}

test('an aborted attempt from before the failure does not let another one through early', () => {
  const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
  const attempt = chosen(upstream, peer, clock.now())
  attempted(upstream, peer, 'error', clock.now())
  clock.move(500)
  ended(attempt, 'aborted', clock.now())
  assert.equal(usable(peer, false, clock.now()), false)
})

test('an aborted attempt does not free the way while a later half-open one runs', () => {
  const { upstream, peer, clock } = pair({ max_fails: 1, fail_timeout: 1000 })
  attempted(upstream, peer, 'error', clock.now())
  clock.move(1000)
  const first = chosen(upstream, peer, clock.now())
  clock.move(1000)
  chosen(upstream, peer, clock.now())
  ended(first, 'aborted', clock.now())
  assert.equal(usable(peer, false, clock.now()), false)
})

test('a peer that is alone is asked whatever its failures, and they are still counted', () => {
  const upstream = group([{ max_fails: 1, fail_timeout: 10_000 }])
  const peer = upstream.peers[0]!
  const clock = new Clock()
  for (let i = 0; i < 3; i++) {
    assert.equal(usable(peer, upstream.single, clock.now()), true)
    attempted(upstream, peer, 'error', clock.now())
    clock.move(1)
  }
  const numbers = peer.zone.peers
  assert.equal(numbers.failsTotal[peer.index], 3)
  assert.equal(numbers.unavailable[peer.index], 1)
  assert.equal(peerState(peer, clock.now()), 'unavailable')
})

test('one backup ends the rule of the lone peer', () => {
  const upstream = group([1], { backups: [1] })
  const peer = upstream.peers[0]!
  attempted(upstream, peer, 'error', 1_000_000)
  assert.equal(usable(peer, upstream.single, 1_000_000), false)
})

test('a peer that is alone may be down or busy all the same', () => {
  assert.equal(exclusion(group([{ down: true }]).peers[0]!, true, 1), 'down')
  const upstream = group([{ max_conns: 1 }])
  const peer = upstream.peers[0]!
  chosen(upstream, peer, 1)
  assert.equal(exclusion(peer, true, 1), 'busy')
})

test('max_conns admits so many at once and no more', () => {
  const { upstream, peer, clock } = pair({ max_conns: 2 })
  const first = chosen(upstream, peer, clock.now())
  assert.equal(usable(peer, false, clock.now()), true)
  chosen(upstream, peer, clock.now())
  assert.equal(exclusion(peer, false, clock.now()), 'busy')
  ended(first, 'ok', clock.now())
  assert.equal(usable(peer, false, clock.now()), true)
})

// What a peer is shown as, and why it is excluded, when several things are true of it: the first one holds.
const precedence = [
  // retired, down, failed, busy, in its ramp, state, exclusion
  [true, true, true, true, true, 'draining', 'down'],
  [true, false, true, true, true, 'draining', 'draining'],
  [false, true, true, true, true, 'down', 'down'],
  [false, false, true, true, true, 'unavailable', 'unavailable'],
  [false, false, false, true, true, 'busy', 'busy'],
  [false, false, false, false, true, 'recovering', undefined],
  [false, false, false, false, false, 'up', undefined],
] as const

for (const [retired, down, failed, busy, ramp, state, excluded] of precedence) {
  test(`shows ${state} before what else is true of a peer`, () => {
    const { upstream, peer, clock } = pair({ down, slow_start: 5000, max_conns: 1, fail_timeout: 1000 })
    if (failed) fail(peer, false, clock.now())
    if (busy) chosen(upstream, peer, clock.now())
    if (ramp) peer.zone.peers.slowAt[peer.index] = clock.now()
    if (retired) peer.zone.free(peer.index)
    assert.equal(peerState(peer, clock.now()), state)
    assert.equal(exclusion(peer, false, clock.now()), excluded)
  })
}

test('stays unavailable until a success, also when the time to try again has come', () => {
  const scene = pair({ max_fails: 1, fail_timeout: 1000 })
  const { peer, clock } = scene
  play(scene, 'f 5')
  assert.equal(usable(peer, false, clock.now()), true)
  assert.equal(peerState(peer, clock.now()), 'unavailable')
  assert.equal(downtime(peer, clock.now()), 5000)
  play(scene, 'o 7')
  assert.equal(peerState(peer, clock.now()), 'up')
  assert.equal(downtime(peer, clock.now()), 5000)
  play(scene, 'f 1 o')
  assert.equal(downtime(peer, clock.now()), 6000)
})

test('a span of unavailability counts for nothing to a reader that began before it', () => {
  const scene = pair({ max_fails: 1, fail_timeout: 1000 })
  const { peer, clock } = scene
  const begun = clock.now()
  play(scene, '2 f')
  assert.equal(downtime(peer, begun), 0)
})

// The ramp of slow_start=10s, max_fails=1: shares of the weight after so many milliseconds.
const ramp = [
  [0, 0],
  [1000, 0.1],
  [5300, 0.53],
  [9999, 0.9999],
  [10_000, 1],
  [60_000, 1],
] as const

for (const [ms, share] of ramp) {
  test(`gives ${share} of the weight ${ms} ms into a ramp of 10 s`, () => {
    const scene = pair({ slow_start: 10_000, fail_timeout: 1000 })
    play(scene, 'f 1 o')
    scene.clock.move(ms)
    assert.equal(throttle(scene.peer, scene.clock.now()), share)
    assert.equal(peerState(scene.peer, scene.clock.now()), share < 1 ? 'recovering' : 'up')
  })
}

test('begins no ramp at the start, nor for failures that did not set the peer aside', () => {
  const scene = pair({ slow_start: 10_000, max_fails: 3, fail_timeout: 0 })
  assert.equal(throttle(scene.peer, scene.clock.now()), 1)
  play(scene, 'o')
  assert.equal(throttle(scene.peer, scene.clock.now()), 1)
})

// Failures below max_fails=4 set a ramp of 10 s back by a quarter each.
const steps = [
  ['after the ramp', 12, 'f', 0.75],
  ['twice after the ramp', 12, 'f f', 0.5],
  ['in the middle of it', 5, 'f', 0.25],
  ['at its beginning', 1, 'f', 0],
  ['and going on from there', 5, 'f 2.5', 0.5],
  ['at its beginning, and a while later', 1, 'f 1', 0.1],
  ['and another at its beginning, and a while later', 1, 'f f 1', 0.1],
] as const

for (const [when, seconds, script, share] of steps) {
  test(`a failure ${when} leaves ${share} of the weight`, () => {
    const scene = pair({ slow_start: 10_000, max_fails: 4, fail_timeout: 1000 })
    play(scene, `f f f f 1 o ${seconds} ${script}`)
    assert.equal(throttle(scene.peer, scene.clock.now()), share)
  })
}

test('a failure sets the share back also where no ramp has been, and right after the start of the clock', () => {
  const { peer } = pair({ slow_start: 30_000, max_fails: 4 })
  fail(peer, false, 5)
  assert.equal(throttle(peer, 5), 0.75)
  const other = pair({ slow_start: 1000, max_fails: 2 }).peer
  fail(other, false, 500)
  assert.equal(throttle(other, 500), 0.5)
})

test('being set aside ends the ramp; the next recovery begins another', () => {
  const scene = pair({ slow_start: 10_000, max_fails: 1, fail_timeout: 1000 })
  play(scene, 'f 1 o 5 f')
  assert.equal(throttle(scene.peer, scene.clock.now()), 1)
  play(scene, '1 o')
  assert.equal(throttle(scene.peer, scene.clock.now()), 0)
})

// What a failure takes off the effective weight of round robin: the weight divided by max_fails, in whole numbers.
const decay = [
  // weight, max_fails, slow_start, failures, effective weight
  [1, 1, 0, 1, 0],
  [1, 3, 0, 3, 1],
  [5, 2, 0, 1, 3],
  [5, 2, 0, 3, 0],
  [10, 0, 0, 4, 10],
  [10, 2, 1000, 2, 10],
] as const

for (const [weight, maxFails, slowStart, failures, left] of decay) {
  test(`${failures} failures leave ${left} of weight=${weight} max_fails=${maxFails} slow_start=${slowStart}`, () => {
    const { peer, clock } = pair({ weight, max_fails: maxFails, slow_start: slowStart })
    for (let i = 0; i < failures; i++) fail(peer, false, clock.now())
    assert.equal(peer.zone.peers.effectiveWeight[peer.index], left)
  })
}

test('says of a failure or success whether the peer was set aside or taken back by it', () => {
  const { peer, clock, upstream } = pair({ max_fails: 2, fail_timeout: 1000 })
  const said = [
    fail(peer, false, clock.now()),
    fail(peer, false, clock.now()),
    fail(peer, false, clock.now()),
  ]
  assert.deepEqual(said, [false, true, false])
  clock.move(1000)
  begin(new Attempt(upstream, peer, 0, ''), clock.now())
  assert.deepEqual([succeed(peer, clock.now()), succeed(peer, clock.now())], [true, false])
})

test('a peer that is forgiven is as if it had not failed: picked at once, with all of its weight', () => {
  const { upstream, peer, clock } = pair({ weight: 8, max_fails: 2, fail_timeout: 10_000 })
  for (let i = 0; i < 2; i += 1) attempted(upstream, peer, 'error', clock.now())
  assert.deepEqual([usable(peer, false, clock.now()), peerState(peer, clock.now())], [false, 'unavailable'])
  clock.move(500)
  forgive(peer, clock.now())
  assert.deepEqual([usable(peer, false, clock.now()), peerState(peer, clock.now())], [true, 'up'])
  const { effectiveWeight, fails } = peer.zone.peers
  assert.deepEqual([effectiveWeight[peer.index], fails[peer.index], downtime(peer, clock.now())], [8, 0, 500])
  attempted(upstream, peer, 'error', clock.now())
  assert.equal(fails[peer.index], 1)
})

test('a peer that is forgiven comes back step by step under slow_start, and only where it was set aside', () => {
  const { upstream, peer, clock } = pair({ max_fails: 2, slow_start: 1000 })
  attempted(upstream, peer, 'error', clock.now())
  clock.move(1000)
  forgive(peer, clock.now())
  assert.equal(throttle(peer, clock.now()), 1)
  for (let i = 0; i < 2; i += 1) attempted(upstream, peer, 'error', clock.now())
  forgive(peer, clock.now())
  clock.move(250)
  assert.deepEqual([usable(peer, false, clock.now()), throttle(peer, clock.now())], [true, 0.25])
})

test('what probes and agents have found of a peer is not forgiven', () => {
  const { peer, clock } = pair({ max_fails: 1 })
  peer.zone.peers.barred[peer.index] = 3
  forgive(peer, clock.now())
  assert.equal(exclusion(peer, false, clock.now()), 'unhealthy')
})
