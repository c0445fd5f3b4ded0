import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { peerFields } from '../../../feedback/fields.ts'
import { learnProbe } from '../../../feedback/learn.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { forgetPicks } from '../../../feedback/shadow.ts'
import type { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { ask, env, type PeerSketch } from '../../support/peers.ts'
import { type Shadowed, type ShadowedOptions, shadowed } from '../../support/shadowed.ts'
import { type Variant, variants } from '../../support/variants.ts'

const of = (title: string): Variant => variants.find((one) => one.title === title)!
const inTurn = of('round_robin')
const leastConn = of('least_conn')
const leastTime = of('least_time header')
const best = of('least_time last_byte best')

function tried(sketches: readonly PeerSketch[], own: Variant, other: Variant, more: ShadowedOptions = {}) {
  const around = env(5)
  return { ...shadowed(sketches, own, other, around, { dice: env(11), ...more }), around }
}

type Tried = ReturnType<typeof tried>

/** One request's attempt, its time being moved by as much as it takes. */
function serve(
  { group, around }: Tried,
  took: (peer: Peer) => number,
  call = new Call(),
): Attempt | undefined {
  const attempt = new Selection(group, call, around).next()
  if (attempt === undefined) return undefined
  around.clock.move(took(attempt.peer!))
  answer(attempt, around.clock.now(), call)
  return attempt
}

function answer(attempt: Attempt, now: number, call = new Call()): void {
  call.attempts.push(attempt)
  Object.assign(attempt, { peerStatus: 200, ending: 'ok', headers: [] })
  measured(attempt, call, now)
  observe(attempt, call, now)
}

function fail(attempt: Attempt, now: number): void {
  Object.assign(attempt, { ending: 'error', reason: 'refused', failed: true, next: true })
  observe(attempt, undefined, now)
}

const names = (peers: readonly Peer[], column: Float64Array) =>
  Object.fromEntries(peers.map(({ name, index }) => [name, column[index]!]))

const columns = ({ zone }: Shadowed['upstream']) =>
  JSON.stringify([...peerFields.map((field) => [...zone.peers[field]]), [...zone.group]])

describe('a shadow leaves the group alone', () => {
  for (const own of variants) {
    test(`${own.title} picks and learns as without one, whatever is tried`, () => {
      const sketches: PeerSketch[] = [1, { max_conns: 2 }, { max_fails: 2 }, 1]
      const run = (group: Group, around: Tried['around']) => {
        const running: Attempt[] = []
        let said = ''
        for (let i = 0; i < 300; i++) {
          const call = Object.assign(new Call(), { target: `/${i % 17}`, remoteAddr: `10.0.${i % 13}.1` })
          const selection = new Selection(group, call, around)
          const attempt = selection.next()
          said += attempt ? `${attempt.peer!.name} ${attempt.pick},` : '-'
          if (attempt) running.push(attempt)
          around.clock.move(3)
          if (i % 5 === 0 && running[0]) fail(running.shift()!, around.clock.now())
          while (running.length > 4) answer(running.shift()!, around.clock.now())
        }
        return said
      }
      const plain = env(5)
      const without = own.make(sketches, plain)
      const expected = run(without, plain)
      const untouched = columns(without.upstream)
      for (const other of variants) {
        const made = tried(sketches, own, other)
        assert.equal(run(made.group, made.around), expected, other.title)
        // Moments by the wall clock differ.
        const wall = /\b17\d{11}\b/g
        assert.equal(columns(made.upstream).replace(wall, 'now'), untouched.replace(wall, 'now'), other.title)
      }
    })
  }
})

describe('what a shadow goes by', () => {
  for (const title of ['least_time last_byte 0', 'least_time header', 'least_time last_byte plain']) {
    test(`${title} learns from what was really answered, as it does in force`, () => {
      const sketches = [10, 25, 60].map(() => ({ max_fails: 0 }))
      const made = tried(sketches, of(title), of(title))
      for (let i = 0; i < 500; i++) {
        const attempt = new Selection(made.group, new Call(), made.around).next()!
        made.around.clock.move([10, 25, 60][attempt.peer!.index]!)
        if (i % 7 === 0) fail(attempt, made.around.clock.now())
        else answer(attempt, made.around.clock.now())
        // Averages that are not renewed drift meanwhile.
        if (i % 11 === 0) made.around.clock.move(3000)
      }
      for (const field of ['avg', 'ok', 'answeredAt', 'answersMark', 'waiting', 'startSum'] as const) {
        const own = names(made.upstream.peers, made.upstream.zone.peers[field])
        assert.deepEqual(names(made.twins.peers, made.twins.zone.peers[field]), own, field)
      }
    })
  }

  test('it learns by its own rules what the method in force does not learn at all', () => {
    const made = tried([1, 1], inTurn, leastTime)
    for (let i = 0; i < 100; i++) serve(made, ({ name }) => (name === 'a' ? 10 : 30))
    const { avg } = made.twins.zone.peers
    assert.deepEqual([Math.round(avg[0]!), Math.round(avg[1]!)], [10, 30])
    assert.equal(made.upstream.zone.peers.avg[0], 0)
    const shares = made.group.shadow!.balancer.shares(() => true, made.around.clock.now())
    assert.ok(Math.abs(shares[0]! - 0.75) < 0.01, `${shares}`)
    assert.equal(made.upstream.zone.peers.selected[0], 50)
    const picked = made.twins.zone.peers.selected
    assert.equal(picked[0]! + picked[1]!, 100)
    assert.ok(picked[0]! > 60, `${picked[0]}`)
  })

  test('its picks are in flight where they fell, for as long as the real attempt lasts', () => {
    const made = tried([1, 1], inTurn, best)
    const { avg } = made.twins.zone.peers
    avg[0] = 10
    avg[1] = 1000
    const { conns, waiting } = made.twins.zone.peers
    const attempts = [1, 2, 3].map(() => new Selection(made.group, new Call(), made.around).next()!)
    assert.deepEqual(
      attempts.map(({ peer }) => peer!.name),
      ['a', 'b', 'a'],
    )
    assert.deepEqual(names(made.twins.peers, conns), { a: 3, b: 0 })
    // Who waits is known of the real ones alone.
    assert.deepEqual(names(made.twins.peers, waiting), { a: 2, b: 1 })
    answer(attempts[1]!, made.around.clock.now())
    assert.deepEqual(names(made.twins.peers, conns), { a: 2, b: 0 })
    assert.deepEqual(names(made.twins.peers, waiting), { a: 2, b: 0 })
    fail(attempts[0]!, made.around.clock.now())
    Object.assign(attempts[2]!, { ending: 'aborted' })
    observe(attempts[2]!, undefined, made.around.clock.now())
    observe(attempts[2]!, undefined, made.around.clock.now())
    assert.deepEqual(names(made.twins.peers, conns), { a: 0, b: 0 })
  })

  test('it balances its own requests in flight, not those that are there', () => {
    const made = tried([1, 1, 1], of('hash $request_uri'), leastConn)
    const call = Object.assign(new Call(), { target: '/same' })
    for (let i = 0; i < 9; i++) new Selection(made.group, call, made.around).next()
    assert.equal(Math.max(...made.upstream.zone.peers.conns), 9)
    assert.deepEqual(names(made.twins.peers, made.twins.zone.peers.conns), { a: 3, b: 3, c: 3 })
  })

  test('it may pick whom the group may pick at that moment, and no other', () => {
    const sketches: PeerSketch[] = [1, { down: true }, { max_conns: 1 }, 1]
    for (const other of variants) {
      const made = tried(sketches, inTurn, other)
      const seen = new Set<string>()
      for (let i = 0; i < 60; i++) {
        const call = Object.assign(new Call(), { target: `/${i}`, remoteAddr: `10.${i}.0.1` })
        const selection = new Selection(made.group, call, made.around)
        const first = selection.next()!
        seen.add(first.shadow!.held!.name)
        fail(first, made.around.clock.now())
        const second = selection.next()!
        assert.notEqual(second.shadow!.held!.name, first.peer!.name, 'one that was tried')
        made.upstream.zone.peers.fails.fill(0)
        answer(second, made.around.clock.now())
      }
      assert.ok(!seen.has('b'), other.title)
      // Full: nothing of the group's own says so of the twin.
      made.upstream.zone.peers.conns[2] = 1
      for (let i = 0; i < 40; i++) {
        const attempt = new Selection(made.group, new Call(), made.around).next()!
        assert.notEqual(attempt.shadow!.held!.name, 'c', other.title)
        answer(attempt, made.around.clock.now())
      }
    }
  })

  test('a peer that is asked half-open may be picked here too', () => {
    const made = tried([1, 1], inTurn, best)
    made.twins.zone.peers.avg[0] = 500
    made.twins.zone.peers.avg[1] = 1
    const [, b] = made.upstream.peers
    made.upstream.zone.peers.fails[b!.index] = 1
    made.upstream.zone.peers.checkedAt[b!.index] = made.around.clock.now()
    const next = () => new Selection(made.group, new Call(), made.around).next()!
    assert.equal(next().shadow!.held!.name, 'a')
    made.around.clock.move(10_001)
    assert.equal(next().shadow!.held!.name, 'b')
  })

  test('what failures, agents and a slow start leave of a weight holds here too', () => {
    const sketches: PeerSketch[] = [
      { weight: 4, max_fails: 4 },
      { weight: 4 },
      { weight: 4, slow_start: 10_000 },
    ]
    const made = tried(sketches, of('random'), inTurn)
    const { zone } = made.upstream
    const shares = () => {
      made.shadow.heed()
      const all = made.group.shadow!.balancer.shares(() => true, made.around.clock.now())
      return all.map((share) => Number(share.toFixed(4)))
    }
    assert.deepEqual(shares(), [0.3333, 0.3333, 0.3333])
    zone.peers.slowAt[2] = made.around.clock.now() - 5000
    assert.deepEqual(shares(), [0.4, 0.4, 0.2])
    zone.peers.slowAt[2] = 0
    zone.peers.weightFactor[1] = 0.5
    zone.set('mostFactor', 1)
    assert.deepEqual(shares(), [0.4, 0.2, 0.4])
    zone.peers.weightFactor[1] = 1
    zone.set('mostFactor', 0)
    assert.deepEqual(shares(), [0.3333, 0.3333, 0.3333])
    const attempt = new Attempt(made.upstream, made.upstream.peers[0], made.around.clock.now(), '')
    attempt.reserved = true
    made.shadow.begin(attempt, undefined, 0, made.around.clock.now())
    fail(attempt, made.around.clock.now())
    assert.deepEqual(shares(), [0.2727, 0.3636, 0.3636])
  })

  test('what peers report is read of the real answers', () => {
    const made = tried([1, 1], inTurn, of('feedback $load'))
    for (let i = 0; i < 20; i++) {
      const call = new Call()
      const attempt = new Selection(made.group, call, made.around).next()!
      call.args = attempt.peer!.name === 'a' ? '30' : '10'
      answer(attempt, made.around.clock.now(), call)
    }
    assert.deepEqual(
      made.twins.peers.map(({ index }) => Math.round(made.twins.zone.peers.report[index]!)),
      [30, 10],
    )
    const shares = made.group.shadow!.balancer.shares(() => true, made.around.clock.now())
    assert.deepEqual(
      shares.map((share) => Number(share.toFixed(2))),
      [0.75, 0.25],
    )
  })

  test('answers of probes teach it where its own condition asks about probes', () => {
    const made = tried([1, 1], inTurn, leastTime)
    const probe = () => {
      const attempt = new Attempt(made.upstream, made.upstream.peers[1], made.around.clock.now(), 'probe')
      Object.assign(attempt, { peerStatus: 200, ending: 'ok', headerMs: 40, responseMs: 50 })
      learnProbe(attempt, new Call(), made.around.clock.now() + 50)
    }
    probe()
    assert.equal(made.twins.zone.peers.avg[1], 0)
    Object.assign(made.twins.learning!, { probes: true })
    probe()
    assert.equal(made.twins.zone.peers.avg[1], 40)
    assert.equal(made.upstream.zone.peers.avg[1], 0)
  })
})

describe('where a shadow picks', () => {
  const canary = { track: 'canary' }
  const rule = {
    variable: { text: '$args', read: (call: Call) => call.args },
    percents: new Map<string, number>(),
    key: undefined,
  }

  test('inside of the track that the request is in, also once that is stable', () => {
    for (const other of variants) {
      const made = tried([1, canary, 1, canary], inTurn, other, { split: rule })
      for (let i = 0; i < 40; i++) {
        const call = Object.assign(new Call(), {
          args: i % 2 ? 'canary' : '',
          target: `/${i}`,
          remoteAddr: `10.${i}.0.1`,
        })
        const selection = new Selection(made.group, call, made.around)
        for (let attempt = selection.next(); attempt; attempt = selection.next()) {
          assert.equal(attempt.shadow!.held!.options.track, attempt.peer!.options.track, other.title)
          fail(attempt, made.around.clock.now())
        }
        made.upstream.zone.peers.fails.fill(0)
      }
      assert.deepEqual([...made.twins.zone.peers.conns], [0, 0, 0, 0])
    }
  })

  test('nowhere when a backup is asked, of which it learns nothing', () => {
    const made = tried([1], inTurn, leastTime, { backups: [1] })
    made.upstream.zone.peers.barred[0] = 1
    const attempt = new Selection(made.group, new Call(), made.around).next()!
    assert.equal(attempt.pick, 'backup')
    assert.equal(attempt.shadow, undefined)
    answer(attempt, made.around.clock.now())
    assert.equal(made.twins.zone.get('answers'), 0)
    assert.equal(made.twins.zone.peers.selected[0], 0)
  })

  test('the same as before when the same peer is asked on a fresh connection, which is no pick', () => {
    const made = tried([1, 1], inTurn, leastTime)
    const selection = new Selection(made.group, new Call(), made.around)
    const first = selection.next()!
    const { held } = first.shadow!
    Object.assign(first, { ending: 'stale' })
    observe(first, undefined, made.around.clock.now())
    const again = selection.reserve(first.peer!, first.pick)
    assert.equal(again.shadow!.held, held)
    const { selected, conns } = made.twins.zone.peers
    assert.equal(selected[0]! + selected[1]!, 1)
    assert.equal(conns[held!.index], 1)
    answer(again, made.around.clock.now())
    assert.equal(conns[held!.index], 0)
    assert.equal(made.twins.zone.get('answers'), 1)
  })

  test('nowhere, when a peer is asked that no method has picked, and learns all the same', () => {
    const made = tried([1, 1], inTurn, leastTime)
    const attempt = new Selection(made.group, new Call(), made.around).reserve(
      made.upstream.peers[1]!,
      'sticky',
    )
    assert.equal(attempt.shadow!.held, undefined)
    made.around.clock.move(20)
    answer(attempt, made.around.clock.now())
    assert.deepEqual(names(made.twins.peers, made.twins.zone.peers.avg), { a: 0, b: 20 })
    assert.deepEqual(names(made.twins.peers, made.twins.zone.peers.selected), { a: 0, b: 0 })
  })
})

describe('what is counted', () => {
  test('pairs of peers whose times are known, how many fell on one peer, and the times of both', () => {
    const made = tried([1, 1], inTurn, best)
    const { zone } = made.upstream
    const said = () =>
      (['shadowPicks', 'shadowSame', 'pickedMs', 'shadowMs'] as const).map((field) =>
        made.twins.zone.get(field),
      )
    const one = () => new Selection(made.group, new Call(), made.around).next()!
    made.twins.zone.peers.avg[0] = 10
    made.twins.zone.peers.avg[1] = 10_000
    const first = one()
    assert.equal(first.peer!.name, 'a')
    assert.deepEqual(said(), [0, 0, 0, 0], 'no times yet')
    zone.peers.headerTime[0] = 8
    assert.deepEqual([one().peer!.name, said()], ['b', [0, 0, 0, 0]], 'b has none')
    assert.deepEqual([one().peer!.name, said()], ['a', [1, 1, 8, 8]], 'of the header alone')
    zone.peers.responseTime[0] = 12
    zone.peers.responseTime[1] = 100
    assert.deepEqual([one().peer!.name, said()], ['b', [2, 1, 108, 20]])
    assert.equal(made.twins.zone.peers.selected[0], 4)
    forgetPicks(made.twins.zone)
    assert.deepEqual(said(), [0, 0, 0, 0])
    assert.equal(made.twins.zone.peers.selected[0], 0)
    assert.equal(made.twins.zone.peers.avg[0], 10, 'what was learnt stays')
  })

  test('of two methods that pick alike all pairs fell on one peer', () => {
    const made = tried([3, 1], inTurn, inTurn)
    for (let i = 0; i < 40; i++) serve(made, () => 5)
    const { zone } = made.twins
    assert.equal(zone.get('shadowPicks'), zone.get('shadowSame'))
    assert.ok(zone.get('shadowPicks') >= 36)
    assert.deepEqual(names(made.twins.peers, zone.peers.selected), { a: 30, b: 10 })
  })
})

test('whatever happens, a shadow holds as many requests as are in progress, and none in the end', () => {
  for (const own of [inTurn, leastTime, leastConn]) {
    for (const other of variants) {
      const made = tried([1, { max_conns: 3 }, 1, { weight: 1, max_fails: 3 }], own, other, { backups: [1] })
      const { random } = env(3)
      const running: Attempt[] = []
      const held = () => running.filter(({ shadow }) => shadow?.held !== undefined).length
      for (let i = 0; i < 400; i++) {
        const call = Object.assign(new Call(), { target: `/${i}`, args: String(i % 9) })
        const attempt = new Selection(made.group, call, made.around).next()
        if (attempt) running.push(attempt)
        made.around.clock.move(20 * random())
        while (running.length > 8 || (running.length > 0 && random() < 0.4)) {
          const [one] = running.splice(Math.floor(random() * running.length), 1)
          const now = made.around.clock.now()
          const dice = random()
          if (dice < 0.2) fail(one!, now)
          else if (dice < 0.3) {
            Object.assign(one!, { ending: 'aborted' })
            observe(one!, call, now)
          } else answer(one!, now, call)
        }
        const { conns } = made.twins.zone.peers
        assert.equal(
          conns.reduce((sum, count) => sum + count, 0),
          held(),
          other.title,
        )
        assert.ok(conns.every((count) => count >= 0))
      }
      for (const attempt of running) fail(attempt, made.around.clock.now())
      const { peers } = made.twins.zone
      for (const field of ['conns', 'waiting', 'startSum'] as const)
        assert.ok(
          peers[field].every((number) => number === 0),
          `${other.title} ${field}`,
        )
      for (const field of peerFields)
        assert.ok(peers[field].every(Number.isFinite), `${other.title} ${field}`)
    }
  }
})

test('a shadow is asked through the same questions as any method', () => {
  const made = tried([1, 1], inTurn, leastTime)
  const { balancer } = made.group.shadow!
  assert.ok(made.twins.peers.includes(balancer.pick(ask(undefined, made.around.clock.now()))!))
})
