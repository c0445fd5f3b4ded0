import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { usable } from '../../../feedback/health.ts'
import { observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { Zone } from '../../../feedback/zone.ts'
import { tries } from '../../../sidecar/balance/eligible.ts'
import type { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { Split, type SplitRule } from '../../../sidecar/balance/split.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'
import { variants } from '../../support/variants.ts'

/** A rule whose variable is a request's query, and whose key its target. */
function rule(
  percents: Readonly<Record<string, number>>,
  reads: { readonly variable?: boolean; readonly key?: boolean } = {},
): SplitRule {
  return {
    variable: reads.variable ? { text: '$args', read: (call) => call.args } : undefined,
    percents: new Map(Object.entries(percents)),
    key: reads.key ? { text: '$request_uri', read: (call) => call.target } : undefined,
  }
}

const canary = { track: 'canary' }
const fast = variants.find(({ title }) => title === 'least_time last_byte 0')!
const inTurn = variants.find(({ title }) => title === 'round_robin')!

/** Where a request is to go, by tracks alone. */
function splitter(tracks: readonly string[], split: SplitRule): Split {
  const { peers } = group(tracks.map((track) => ({ track })))
  return new Split(peers, split, () => ({ pick: () => undefined, shares: () => [] }))
}

function request(fields: Partial<Call> = {}): Call {
  return Object.assign(new Call(), fields)
}

/** Fails an attempt, so that the peer is set aside. */
function fail(attempt: Attempt, now: number): void {
  Object.assign(attempt, { ending: 'error', reason: 'refused', failed: true, next: true })
  observe(attempt, undefined, now)
}

function end(attempt: Attempt, now: number): void {
  Object.assign(attempt, { ending: 'ok', peerStatus: 200 })
  observe(attempt, undefined, now)
}

/** Who was asked, by what way, as long as there is anybody: `b round_robin, a fallback`. */
function journey(selection: Selection, now: number): string {
  const asked: string[] = []
  for (let attempt = selection.next(); attempt; attempt = selection.next()) {
    asked.push(`${attempt.peer!.name} ${attempt.pick}`)
    fail(attempt, now)
  }
  return asked.join(', ')
}

const down = (peer: Peer) => {
  peer.zone.peers.barred[peer.index] = 1
}

function counted({ upstream }: Group): Record<string, string> {
  return Object.fromEntries(
    Array.from(upstream.tracks.values(), (one) => [one.name, `${one.get('split')} ${one.get('fallbacks')}`]),
  )
}

describe('where a request goes', () => {
  /** What nginx 1.22 says to `split_clients $http_k`, with the bytes as they are. */
  const placements: readonly (readonly [string, string, string, string])[] = [
    ['', 'canary', 'a', 'canary'],
    ['a', 'stable', 'b', 'stable'],
    ['ab', 'stable', 'a', 'blue'],
    ['abc', 'canary', 'a', 'blue'],
    ['abcd', 'stable', 'a', 'blue'],
    ['abcde', 'stable', 'a', 'green'],
    ['user-1', 'canary', 'a', 'blue'],
    ['user-2', 'stable', 'a', 'blue'],
    ['user-3', 'stable', 'b', 'stable'],
    ['user-17', 'stable', 'a', 'green'],
    ['6', 'stable', 'a', 'green'],
    ['7', 'stable', 'c', 'stable'],
    ['42', 'stable', 'a', 'stable'],
    ['192.0.2.1', 'stable', 'b', 'stable'],
    ['192.0.2.44', 'stable', 'a', 'blue'],
    ['0f1e2d3c4b5a69788796a5b4c3d2e1f0', 'stable', 'c', 'stable'],
    ['t\xc3\xa9st', 'stable', 'a', 'green'],
    // The last hash of the first tenth, and the one after it.
    ['\x80\x06\xf9\x7d', 'canary', 'a', 'blue'],
    ['\x40\x0b\x48\x62', 'stable', 'a', 'blue'],
    ['\x3d\xc2\x97\x26', 'stable', 'c', 'stable'],
  ]

  test("a key is placed as nginx's split_clients places it", () => {
    const tenth = splitter(['stable', 'canary'], rule({ canary: 10 }, { key: true }))
    const whole = splitter(['a', 'b', 'c'], rule({ a: 50, b: 30, c: 20 }, { key: true }))
    const odd = splitter(
      ['stable', 'canary', 'blue', 'green'],
      rule({ canary: 0.25, blue: 33.33, green: 12.5 }, { key: true }),
    )
    const never = { random: () => assert.fail('no dice are needed') }
    for (const [target, ...expected] of placements) {
      const found = [tenth, whole, odd].map((split) => split.trackOf(request({ target }), never))
      assert.deepEqual(found, expected, JSON.stringify(target))
    }
  })

  test('percentages that make up 100 leave no key and no draw without a track', () => {
    for (const percents of [
      { a: 50, b: 30, c: 20 },
      { a: 33.33, b: 33.33, c: 33.34 },
      { a: 0.01, b: 99.98, c: 0.01 },
    ]) {
      const keyed = splitter(['a', 'b', 'c'], rule(percents, { key: true }))
      const drawn = splitter(['a', 'b', 'c'], rule(percents))
      // nginx before 1.31.2 had nothing for the two highest hashes.
      for (const target of ['\x81rwt', '\xa2A\xaa`'])
        assert.equal(keyed.trackOf(request({ target }), Math), 'c')
      assert.equal(drawn.trackOf(request(), { random: () => 1 - 2 ** -53 }), 'c')
      assert.equal(drawn.trackOf(request(), { random: () => 0 }), 'a')
      const { random } = env()
      for (let i = 0; i < 10_000; i++)
        assert.ok(['a', 'b', 'c'].includes(drawn.trackOf(request(), { random })))
    }
  })

  test('what percentages leave goes to stable, whether drawn or by a key', () => {
    const keyed = splitter(['stable', 'canary'], rule({ canary: 10 }, { key: true }))
    const drawn = splitter(['stable', 'canary'], rule({ canary: 10 }))
    const { random } = env()
    let byKey = 0
    let byDraw = 0
    for (let i = 0; i < 20_000; i++) {
      if (keyed.trackOf(request({ target: `/${i}` }), Math) === 'canary') byKey += 1
      if (drawn.trackOf(request(), { random }) === 'canary') byDraw += 1
    }
    assert.ok(Math.abs(byKey - 2000) < 130, `${byKey}`)
    assert.ok(Math.abs(byDraw - 2000) < 130, `${byDraw}`)
    assert.deepEqual(
      [...keyed.percents],
      [
        ['stable', 90],
        ['canary', 10],
      ],
    )
  })

  test('a variable that names a track wins, and any other value is none', () => {
    const split = splitter(['stable', 'canary', 'blue'], rule({ canary: 100 }, { variable: true }))
    const at = (args: string) => split.trackOf(request({ args }), Math)
    assert.deepEqual(['blue', 'stable', '', 'red', 'Blue', 'blue '].map(at), [
      'blue',
      'stable',
      'canary',
      'canary',
      'canary',
      'canary',
    ])
    for (const name of ['__proto__', 'constructor', 'toString']) assert.equal(at(name), 'canary')
  })

  test('without percentages all go to stable but those that the variable names', () => {
    const split = splitter(['canary', 'stable'], rule({}, { variable: true }))
    assert.equal(split.trackOf(request({ args: 'canary' }), Math), 'canary')
    assert.equal(split.trackOf(request({ args: 'x' }), Math), 'stable')
    assert.deepEqual(
      [...split.percents],
      [
        ['canary', 0],
        ['stable', 100],
      ],
    )
  })

  test('a key sends a client to the same track when the percentages of the first grow', () => {
    const small = splitter(['stable', 'canary'], rule({ canary: 5 }, { key: true }))
    const large = splitter(['stable', 'canary'], rule({ canary: 20 }, { key: true }))
    for (let i = 0; i < 2000; i++) {
      const call = request({ target: `/${i}` })
      if (small.trackOf(call, Math) === 'canary') assert.equal(large.trackOf(call, Math), 'canary')
    }
  })

  test('what is read of a request is read before the zone is held', () => {
    const around = env()
    const made = inTurn.make([1, canary], around, [], rule({ canary: 50 }, { variable: true, key: true }))
    let held = false
    const { zone } = made.upstream
    zone.enter = () => {
      held = true
    }
    zone.leave = () => {
      held = false
    }
    const call = Object.defineProperty(new Call(), 'args', {
      get: () => {
        assert.equal(held, false)
        return ''
      },
    })
    for (let i = 0; i < 10; i++) assert.ok(new Selection(made, call, around).next())
  })
})

describe('inside of a track', () => {
  test('a canary has its tenth of the requests under least_time, and each track is balanced by its own times', () => {
    const around = env(7)
    const made = fast.make([1, 1, canary, canary], around, [], rule({ canary: 10 }))
    // The canaries are slow, and would get next to nothing if they were compared with the others.
    const took = [10, 30, 400, 100]
    const given = [0, 0, 0, 0]
    for (let i = 0; i < 20_000; i++) {
      const call = new Call()
      const attempt = new Selection(made, call, around).next()!
      const { index } = attempt.peer!
      assert.equal(attempt.peer!.options.track, call.track)
      given[index]! += 1
      around.clock.move(took[index]!)
      end(attempt, around.clock.now())
    }
    const [a, b, c, d] = given.map((count) => count / 20_000) as [number, number, number, number]
    assert.ok(Math.abs(c + d - 0.1) < 0.01, `canary has ${c + d}`)
    // Shares inverse to the times: three quarters to the faster stable one, four fifths to the faster canary.
    assert.ok(Math.abs(a / (a + b) - 0.75) < 0.02, `a has ${a / (a + b)}`)
    assert.ok(Math.abs(d / (c + d) - 0.8) < 0.03, `d has ${d / (c + d)}`)
  })

  for (const { title, make } of variants) {
    test(`${title} picks inside of the track that the split says, and tells shares that hold`, () => {
      const around = env(3)
      const sketches: PeerSketch[] = [1, canary, 1, { track: 'blue' }, canary]
      const made = make(sketches, around, [], rule({ canary: 20, blue: 30 }))
      const given = sketches.map(() => 0)
      const rounds = 6000
      for (let i = 0; i < rounds; i++) {
        const call = request({ target: `/${i}`, remoteAddr: `10.${i % 251}.${i % 241}.1` })
        const attempt = new Selection(made, call, around).next()!
        assert.equal(attempt.peer!.options.track, call.track)
        given[attempt.peer!.index]! += 1
        around.clock.move(1)
        end(attempt, around.clock.now())
      }
      const part = (places: number[]) => places.reduce((sum, i) => sum + given[i]!, 0) / rounds
      const found = [part([0, 2]), part([1, 4]), part([3])]
      for (const [i, expected] of [0.5, 0.2, 0.3].entries())
        assert.ok(Math.abs(found[i]! - expected) < 0.02, `${found}`)
      const shares = made.primary.shares(() => true, around.clock.now())
      const told = [shares[0]! + shares[2]!, shares[1]! + shares[4]!, shares[3]!]
      for (const [i, expected] of [0.5, 0.2, 0.3].entries())
        assert.ok(Math.abs(told[i]! - expected) < 1e-9, `${told}`)
    })
  }

  for (const { title, make } of variants) {
    test(`${title} treats a track as a group of its own, whatever goes on in another`, () => {
      /** Who is asked and how, by place among those of the track. */
      const run = (sketches: readonly PeerSketch[], split?: SplitRule) => {
        const around = env(9)
        // What is thrown for the other track is thrown apart.
        let elsewhere = false
        const dice = { now: around.now, random: () => (elsewhere ? Math.random() : around.random()) }
        const made = make(sketches, dice, [], split)
        const places = made.upstream.peers.filter(({ options }) => options.track === 'stable')
        const running: { attempt: Attempt; call: Call }[] = []
        let said = ''
        for (let i = 0; i < 1500; i++) {
          const call = request({ target: `/${i % 37}`, remoteAddr: `10.${i % 29}.1.1`, args: '' })
          const selection = new Selection(made, call, dice)
          const attempt = selection.next()
          said += attempt ? `${places.indexOf(attempt.peer!)} ${attempt.pick},` : `${selection.denial},`
          if (attempt) running.push({ attempt, call })
          around.clock.move(20 + 200 * (i % 5))
          while (running.length > 3) {
            const { attempt: one } = running.splice(i % 3, 1)[0]!
            if (i % 23 === 0) fail(one, around.clock.now())
            else end(one, around.clock.now())
          }
          // The other track has times, failures and requests of its own.
          if (split === undefined || i % 2 === 0) continue
          elsewhere = true
          const other = new Selection(made, request({ args: 'canary' }), dice).next()!
          elsewhere = false
          assert.equal(other.peer!.options.track, 'canary')
          if (i % 7 === 0) end(other, around.clock.now() + 500)
          else Object.assign(other, { ending: 'aborted' })
          observe(other, undefined, around.clock.now() + 500)
        }
        return said
      }
      const own = [{ max_fails: 2 }, {}, { max_conns: 2 }].map((some, i) => ({ ...some, server: `s${i}:80` }))
      const among = [own[0]!, canary, own[1]!, canary, own[2]!]
      assert.equal(run(among, rule({}, { variable: true })), run(own))
    })
  }

  test('a large group under plain is walked track by track, with no tree of shares for all', () => {
    const around = env(2)
    const plain = variants.find(({ title }) => title === 'least_time last_byte plain')!
    const sketches = Array.from({ length: 300 }, (_, i) => (i < 200 ? 1 : canary))
    const made = plain.make(sketches, around, [], rule({ canary: 40 }))
    const { avg, selected, tree } = made.upstream.zone.peers
    for (let i = 0; i < 300; i++) avg[i] = i % 2 ? 30 : 10
    for (let i = 0; i < 20_000; i++) {
      const attempt = new Selection(made, new Call(), around).next()!
      assert.equal(attempt.peer!.options.track, attempt.peer!.index < 200 ? 'stable' : 'canary')
      // An answer that leaves the average as it is.
      around.clock.move(avg[attempt.peer!.index]!)
      end(attempt, around.clock.now())
    }
    const sum = (from: number, to: number, odd: number) =>
      selected.slice(from, to).reduce((all, count, i) => all + (i % 2 === odd ? count : 0), 0)
    const [a, b, c, d] = [sum(0, 200, 0), sum(0, 200, 1), sum(200, 300, 0), sum(200, 300, 1)]
    assert.ok(Math.abs((c + d) / 20_000 - 0.4) < 0.015, `${c + d}`)
    for (const [fast, slow] of [
      [a, b],
      [c, d],
    ] as const)
      assert.ok(Math.abs(fast / (fast + slow) - 0.75) < 0.02, `${fast} ${slow}`)
    assert.ok(tree.every((sum) => sum === 0))
  })

  test('without a split tracks are labels, and all primaries one list', () => {
    const around = env()
    const made = inTurn.make([1, canary, 1], around)
    const call = new Call()
    const names = Array.from({ length: 6 }, () => new Selection(made, call, around).next()!.peer!.name)
    assert.deepEqual(names, ['a', 'b', 'c', 'a', 'b', 'c'])
    assert.equal(call.track, '')
    assert.deepEqual(counted(made), { stable: '0 0', canary: '0 0' })
    assert.equal(made.upstream.cohort(made.upstream.peers[1]), made.upstream.cohort(undefined))
  })

  test('a request that comes to a group without a split after one with it has no track any more', () => {
    const around = env()
    const call = new Call()
    new Selection(inTurn.make([1, canary], around, [], rule({ canary: 100 })), call, around).next()
    assert.equal(call.track, 'canary')
    new Selection(inTurn.make([1], around), call, around).next()
    assert.equal(call.track, '')
  })
})

describe('when a track has nobody for a request', () => {
  const now = 1_000_000

  test('a retry stays in the track, goes to stable, and then to the backups', () => {
    const around = env()
    const made = inTurn.make([1, canary, 1, canary], around, [1], rule({ canary: 100 }))
    const call = new Call()
    const selection = new Selection(made, call, around)
    assert.equal(selection.tries, 5)
    assert.equal(journey(selection, now), 'b round_robin, d round_robin, a fallback, c fallback, e backup')
    assert.equal(call.track, 'canary')
    assert.equal(selection.denial, 'no_live')
    assert.deepEqual(counted(made), { stable: '0 0', canary: '1 1' })
  })

  test('a retry of stable goes to no other track', () => {
    const around = env()
    const made = inTurn.make([1, canary, 1], around, [1], rule({ canary: 1 }, { variable: true }))
    const selection = new Selection(made, request({ args: 'stable' }), around)
    assert.equal(selection.tries, 3)
    assert.equal(journey(selection, now), 'a round_robin, c round_robin, d backup')
    assert.deepEqual(counted(made), { stable: '1 0', canary: '0 0' })
  })

  test('a request goes to stable at once where nobody in its track is ready, and is counted once', () => {
    const around = env()
    const made = inTurn.make([1, canary, 1], around, [], rule({ canary: 100 }))
    down(made.upstream.peers[1]!)
    const selection = new Selection(made, new Call(), around)
    assert.equal(journey(selection, now), 'a fallback, c fallback')
    assert.deepEqual(counted(made), { stable: '0 0', canary: '1 1' })
  })

  test('nobody in stable either is no live upstream, though another track has somebody', () => {
    const around = env()
    const made = inTurn.make([1, canary, { track: 'blue' }], around, [], rule({ canary: 100 }))
    for (const place of [0, 1]) down(made.upstream.peers[place]!)
    const selection = new Selection(made, new Call(), around)
    assert.equal(selection.next(), undefined)
    assert.equal(selection.denial, 'no_live')
    assert.deepEqual(counted(made), { stable: '0 0', canary: '1 0', blue: '0 0' })
  })

  test('without stable it goes to the backups', () => {
    const around = env()
    const made = inTurn.make([{ track: 'a' }, { track: 'b' }], around, [1], rule({ a: 50, b: 50 }))
    for (const peer of made.upstream.peers) down(peer)
    const selection = new Selection(made, new Call(), around)
    assert.equal(journey(selection, now), 'c backup')
    const { tracks } = made.upstream
    assert.equal(tracks.get('a')!.get('fallbacks') + tracks.get('b')!.get('fallbacks'), 1)
  })

  test('what keeps a request out is overflow only where it is so of peers that it may go to', () => {
    const around = env()
    const sketches = [{ max_conns: 1 }, { ...canary, max_conns: 1 }]
    const made = inTurn.make(sketches, around, [], rule({}, { variable: true }))
    const ask = (args: string) => new Selection(made, request({ args }), around)
    assert.equal(ask('canary').next()!.peer!.name, 'b')
    const second = ask('canary')
    assert.equal(second.next()!.peer!.name, 'a')
    const third = ask('canary')
    assert.equal(third.next(), undefined)
    assert.equal(third.denial, 'overflow')
    const stable = made.upstream.peers[0]!
    made.upstream.zone.peers.conns[stable.index] = 0
    down(stable)
    const fourth = ask('stable')
    assert.equal(fourth.next(), undefined)
    assert.equal(fourth.denial, 'no_live', 'a full canary is none of its peers')
  })

  test('a hash goes on in stable with the key that was read, and from its first hash', () => {
    const around = env()
    for (const { title, make } of variants.filter(({ title }) => title.startsWith('hash'))) {
      const made = make([1, 1, 1, canary], around, [], rule({ canary: 100 }))
      const plain = make([1, 1, 1], around)
      down(made.upstream.peers[3]!)
      let reads = 0
      for (let i = 0; i < 50; i++) {
        const call = Object.defineProperty(new Call(), 'target', {
          get: () => {
            reads += 1
            return `/${i}`
          },
        })
        const attempt = new Selection(made, call, around).next()!
        const alone = new Selection(plain, request({ target: `/${i}` }), around).next()!
        assert.equal(attempt.peer!.name, alone.peer!.name, title)
        assert.equal(attempt.pick, 'fallback')
        end(attempt, now)
      }
      assert.equal(reads, 50, 'once a request')
    }
  })
})

describe('a peer that is alone', () => {
  const now = 1_000_000

  function failing(sketches: readonly PeerSketch[], percents: Readonly<Record<string, number>>, backups = 0) {
    const around = env()
    const spare = Array.from({ length: backups }, () => 1)
    const made = inTurn.make(sketches, around, spare, rule(percents, { variable: true }))
    for (const peer of made.upstream.peers) {
      const selection = new Selection(made, request({ args: peer.options.track }), around)
      fail(selection.next()!, now)
    }
    return made.upstream.peers
      .filter((peer) => usable(peer, made.upstream.isAlone(peer), now + 1))
      .map(({ name }) => name)
  }

  test('in stable is asked whatever its failures, since its requests go nowhere else', () => {
    assert.deepEqual(failing([1, canary], { canary: 10 }), ['a'])
  })

  test('in stable is not where it has a neighbour, or a backup', () => {
    assert.deepEqual(failing([1, 1, canary], { canary: 10 }), [])
    assert.deepEqual(failing([1, canary], { canary: 10 }, 1), [])
  })

  test('in any track is where there is no stable to go to', () => {
    assert.deepEqual(failing([{ track: 'a' }, { track: 'b' }], { a: 50, b: 50 }), ['a', 'b'])
  })

  test('is asked once a request all the same', () => {
    const around = env()
    const made = inTurn.make([1, canary], around, [], rule({}, { variable: true }))
    const selection = new Selection(made, new Call(), around)
    assert.equal(selection.tries, 1)
    assert.equal(tries(made, 'canary'), 2)
    assert.equal(journey(selection, now), 'a round_robin')
    assert.equal(
      journey(new Selection(made, request({ args: 'canary' }), around), now),
      'b round_robin, a fallback',
    )
  })
})

describe('what a split says of shares', () => {
  test('each track has its percentages, and inside of it the shares of the method', () => {
    const around = env()
    const made = inTurn.make([3, 1, canary, { weight: 4, ...canary }], around, [], rule({ canary: 10 }))
    const shares = made.primary.shares(() => true, 0)
    assert.deepEqual(
      shares.map((share) => Number(share.toFixed(6))),
      [0.675, 0.225, 0.02, 0.08],
    )
  })

  test('a track without anybody ready leaves its part to stable, and stable its own to nobody', () => {
    const around = env()
    const made = inTurn.make([1, canary, { track: 'blue' }], around, [1], rule({ canary: 10, blue: 20 }))
    const [a, b, c] = made.upstream.peers
    const shares = (...ready: (Peer | undefined)[]) =>
      made.primary.shares((peer) => ready.includes(peer), 0).map((share) => Number(share.toFixed(6)))
    assert.deepEqual(shares(a, c), [0.8, 0, 0.2])
    assert.deepEqual(shares(a), [1, 0, 0])
    assert.deepEqual(shares(b, c), [0, 0.1, 0.2])
    assert.deepEqual(shares(), [0, 0, 0])
  })
})

describe('what is usual in a track', () => {
  /** A group of two tracks with two peers each, whose averages are as told. */
  function learnt(averages: readonly number[]) {
    const around = env()
    const variant = variants.find(({ title }) => title === 'least_time header')!
    const made = variant.make([1, 1, canary, canary], around, [], rule({ canary: 10 }))
    const { avg, answeredAt } = made.upstream.zone.peers
    for (const [i, average] of averages.entries()) {
      avg[i] = average
      answeredAt[i] = average > 0 ? around.clock.now() : 0
    }
    const expected = (place: number) => {
      const peer = made.upstream.peers[place]!
      return made.balancerOf(peer)!.expected!(peer, around.clock.now())
    }
    return { ...made, made, around, expected }
  }

  test('a peer without an average counts as one of its own track', () => {
    const { expected } = learnt([10, 0, 400, 0])
    assert.equal(expected(1), 10)
    assert.equal(expected(3), 400)
  })

  test('an average that nobody renews moves to the median of its own track', () => {
    const { made, around, expected } = learnt([10, 12, 400, 800])
    const { upstream } = made
    for (const peer of upstream.peers) upstream.cohort(peer).answers = 100_000
    around.clock.move(1_000_000)
    assert.ok(Math.abs(expected(2) - 600) < 1, `${expected(2)}`)
    assert.ok(Math.abs(expected(0) - 11) < 0.1, `${expected(0)}`)
  })

  test('a quiet track is not forgotten at the pace of a busy one', () => {
    const { made, around, expected } = learnt([10, 12, 400, 800])
    const stable = made.upstream.peers[0]!
    for (let i = 0; i < 5000; i++) {
      const attempt = new Selection(made, request(), around).next()!
      around.clock.move(10)
      if (attempt.peer!.options.track === 'stable') end(attempt, around.clock.now())
      else Object.assign(attempt, { ending: 'aborted' })
      observe(attempt, undefined, around.clock.now())
    }
    assert.ok(made.upstream.cohort(stable).answers > 4000)
    assert.equal(made.upstream.cohort(made.upstream.peers[2]).answers, 0)
    assert.equal(expected(2), 400)
    assert.equal(expected(3), 800)
  })

  test('the numbers of a track are the same for every thread', () => {
    const { made } = learnt([1, 1, 1, 1])
    const peer = made.upstream.peers[2]!
    const track = made.upstream.tracks.get('canary')!
    made.upstream.cohort(peer).median = 42
    assert.equal(new Float64Array(track.share().buffer).includes(42), true)
    assert.equal(made.upstream.cohort(made.upstream.peers[0]).median, 0)
    assert.ok(made.upstream.zone instanceof Zone)
    assert.equal(made.upstream.zone.get('median'), 0)
  })
})
