import assert from 'node:assert/strict'
import { test } from 'node:test'
import { obey } from '../../feedback/agent.ts'
import { type Adopted, adopt, retire, type Wanted } from '../../feedback/carry.ts'
import { peerFields } from '../../feedback/fields.ts'
import { exclusion, peerState, throttle, usable } from '../../feedback/health.ts'
import type { Attempt } from '../../feedback/outcome.ts'
import type { Peer, ServerOptions } from '../../feedback/peer.ts'
import { enrol, judgeProbe } from '../../feedback/probe-health.ts'
import { setShare, totalShare } from '../../feedback/share-tree.ts'
import { type Learning, Upstream } from '../../feedback/upstream.ts'
import { attempted, chosen, ended } from '../support/attempts.ts'
import { serverDefaults } from '../support/peers.ts'
import { fc } from '../support/property.ts'

/** A server to ask for: its name alone, or with what differs from the defaults. */
type Sketch = string | ({ readonly name: string; readonly server?: string } & Partial<ServerOptions>)

function wanted(sketches: readonly Sketch[]): Wanted[] {
  return sketches.map((sketch) => {
    const { name, server, ...more } =
      typeof sketch === 'string' ? { name: sketch, server: undefined } : sketch
    return {
      server: server ?? name,
      name,
      address: { kind: 'unix', path: `/run/${name}` },
      options: { ...serverDefaults, ...more },
    }
  })
}

interface Loaded extends Adopted {
  readonly upstream: Upstream
  readonly retired: readonly Peer[]
}

/** Loads a group: the first time, or over the one that runs. */
function load(
  old: Loaded | undefined,
  sketches: readonly Sketch[],
  now = 1_000_000,
  learning: Learning | undefined = undefined,
): Loaded {
  const adopted = adopt(old?.upstream, wanted(sketches), 'zone', now)
  const upstream = new Upstream({
    name: 'backend',
    zone: adopted.zone,
    peers: adopted.peers,
    backups: adopted.backups,
    method: 'round_robin',
    learning,
    responseTimeFactor: 0.9,
  })
  retire(adopted.zone, adopted.removed)
  return {
    ...adopted,
    upstream,
    get retired() {
      return adopted.zone.retired
    },
  }
}

function names(peers: readonly Peer[]): string {
  return peers.map((peer) => peer.name).join(' ')
}

/** Every number kept of a peer, by name of its column; shares and their tree are a method's own. */
function slot({ zone, index }: Peer): Record<string, number> {
  const kept = peerFields.filter((field) => field !== 'tree' && field !== 'share')
  return Object.fromEntries(kept.map((field) => [field, zone.peers[field][index]!]))
}

/** Gives each column of a peer a number of its own. */
function mark(peer: Peer, from: number): void {
  for (const [i, field] of peerFields.entries()) {
    if (field !== 'tenant') peer.zone.peers[field][peer.index] = from + i
  }
  // Within what the weight allows.
  peer.zone.peers.effectiveWeight[peer.index] = 1
  peer.zone.peers.currentWeight[peer.index] = -1
  peer.zone.peers.slowAt[peer.index] = 0
}

function find(loaded: Loaded, name: string): Peer {
  return [...loaded.peers, ...loaded.backups].find((peer) => peer.name === name)!
}

test('the first load makes a zone with room, and peers that count as average', () => {
  const loaded = load(undefined, ['a', { name: 'b', weight: 5 }, { name: 'c', backup: true }])
  assert.equal(loaded.zone.name, 'zone')
  assert.equal(loaded.zone.capacity, 16)
  assert.equal(`${names(loaded.peers)} | ${names(loaded.backups)}`, 'a b | c')
  const { effectiveWeight, ok, avg, currentWeight } = loaded.zone.peers
  assert.deepEqual([...effectiveWeight.subarray(0, 3)], [1, 5, 1])
  assert.deepEqual([...ok.subarray(0, 3)], [1, 1, 1])
  assert.deepEqual([...avg.subarray(0, 3), ...currentWeight.subarray(0, 3)], [0, 0, 0, 0, 0, 0])
})

// Room for twice the peers, in powers of two, 16 at least.
for (const [peers, capacity] of [
  [0, 16],
  [1, 16],
  [8, 16],
  [9, 32],
  [100, 256],
] as const) {
  test(`${peers} peers get room for ${capacity}`, () => {
    const sketches = Array.from({ length: peers }, (_, i) => `p${i}`)
    assert.equal(load(undefined, sketches).zone.capacity, capacity)
  })
}

test('the same configuration again changes no number', () => {
  const sketches = ['a', 'b', { name: 'c', backup: true }]
  const first = load(undefined, sketches)
  for (const [i, peer] of [...first.peers, ...first.backups].entries()) mark(peer, 1000 * (i + 1))
  first.zone.set('requests', 7)
  const before = [...first.peers, ...first.backups].map(slot)
  const second = load(first, sketches)
  assert.equal(second.zone, first.zone)
  assert.deepEqual([...second.peers, ...second.backups].map(slot), before)
  assert.equal(second.zone.get('requests'), 7)
  assert.equal(`${names(second.retired)}${names(second.removed)}`, '')
})

// Which peers of a second configuration go on with what was known in the first.
const identity: readonly (readonly [string, readonly Sketch[], readonly Sketch[], string])[] = [
  ['order does not matter', ['a', 'b', 'c'], ['c', 'a', 'b'], 'c a b'],
  ['nor does becoming a backup', ['a', 'b'], ['a', { name: 'b', backup: true }], 'a b'],
  ['nor do other options', ['a', 'b'], [{ name: 'a', weight: 9, max_fails: 3 }, 'b'], 'a b'],
  ['a new one knows nothing', ['a', 'b'], ['n', 'a', 'b'], '- a b'],
  ['another address is another peer', [{ name: 'a', server: 'host' }], [{ name: 'b', server: 'host' }], '-'],
  ['another text is another peer', [{ name: 'a', server: 'host' }], [{ name: 'a', server: 'alias' }], '-'],
]

for (const [rule, before, after, expected] of identity) {
  test(`peers keep what is known of them by server and address: ${rule}`, () => {
    const first = load(undefined, before)
    const all = [...first.peers, ...first.backups]
    for (const [i, peer] of all.entries()) peer.zone.peers.selected[peer.index] = i + 1
    const second = load(first, after)
    const kept = [...second.peers, ...second.backups].map((peer) => {
      const selected = peer.zone.peers.selected[peer.index]!
      return all[selected - 1]?.name ?? '-'
    })
    assert.equal(kept.join(' '), expected)
  })
}

test('of several that are the same, each keeps what is known of the one at its place', () => {
  const first = load(undefined, ['a', 'a', 'a'])
  for (const peer of first.peers) peer.zone.peers.selected[peer.index] = peer.index + 10
  const second = load(first, ['a', 'a'])
  assert.deepEqual(
    second.peers.map((peer) => slot(peer)['selected']),
    [10, 11],
  )
  assert.equal(second.removed.length, 1)
})

test('a request in progress over a reload is counted down where it was counted up', () => {
  const first = load(undefined, ['a', 'b'])
  const attempt = chosen(first.upstream, first.peers[0]!, 1_000_000)
  const second = load(first, ['b', 'a'])
  const a = find(second, 'a')
  assert.equal(slot(a)['conns'], 1)
  ended(attempt, 'error', 1_000_010)
  assert.equal(slot(a)['conns'], 0)
  assert.equal(slot(a)['fails'], 1)
  assert.equal(usable(a, false, 1_000_010), false)
})

test('an ejection outlives a reload, with the time it began', () => {
  const first = load(undefined, ['a', 'b'])
  attempted(first.upstream, first.peers[0]!, 'error', 1_000_000)
  const second = load(first, ['a', 'b'], 1_004_000)
  assert.equal(exclusion(second.peers[0]!, false, 1_009_999), 'unavailable')
  assert.equal(exclusion(second.peers[0]!, false, 1_010_000), undefined)
  attempted(second.upstream, second.peers[0]!, 'ok', 1_010_000)
  assert.equal(peerState(second.peers[0]!, 1_010_000), 'up')
  assert.equal(slot(second.peers[0]!)['downtimeMs'], 10_000)
})

test('a removed peer gets no request, and stays visible until its last call ends', () => {
  const first = load(undefined, ['a', 'b'])
  const old = first.peers[0]!
  const calls = [chosen(first.upstream, old, 1_000_000), chosen(first.upstream, old, 1_000_000)]
  const second = load(first, ['b'])
  assert.equal(`${names(second.peers)} | ${names(second.retired)} | ${names(second.removed)}`, 'b | a | a')
  // A request that began before the reload still has the old list before it.
  assert.equal(exclusion(old, first.upstream.single, 1_000_001), 'draining')
  assert.equal(peerState(old, 1_000_001), 'draining')
  ended(calls[0]!, 'ok', 1_000_002)
  assert.equal(names(second.retired), 'a')
  const room = second.zone.room
  ended(calls[1]!, 'ok', 1_000_003)
  assert.equal(names(second.retired), '')
  assert.equal(second.zone.room, room + 1)
})

test('a removed peer without a call is gone at once, and named as removed', () => {
  const first = load(undefined, ['a', 'b'])
  const second = load(first, ['b'])
  assert.equal(`${names(second.retired)} | ${names(second.removed)}`, ' | a')
  assert.equal(second.zone.room, 15)
})

test('a peer that comes back before its last call has ended goes on as if it had never been away', () => {
  const first = load(undefined, ['a', 'b'])
  const call = chosen(first.upstream, first.peers[0]!, 1_000_000)
  const second = load(first, ['b'])
  const third = load(second, ['a', 'b'])
  assert.equal(`${names(third.peers)} | ${names(third.retired)}`, 'a b | ')
  const a = find(third, 'a')
  assert.equal(a.index, first.peers[0]!.index)
  assert.equal(usable(a, false, 1_000_000), true)
  ended(call, 'ok', 1_000_001)
  assert.deepEqual([slot(a)['conns'], slot(a)['selected']], [0, 1])
  assert.equal(usable(a, false, 1_000_001), true)
})

test('a peer that comes back later begins anew', () => {
  const first = load(undefined, ['a', 'b'])
  attempted(first.upstream, first.peers[0]!, 'error', 1_000_000)
  const third = load(load(first, ['b']), ['a', 'b'])
  assert.deepEqual([slot(find(third, 'a'))['failsTotal'], slot(find(third, 'a'))['ok']], [0, 1])
  assert.equal(usable(find(third, 'a'), false, 1_000_001), true)
})

test('a group that outgrows its zone keeps the zone, every number and the calls in progress', () => {
  const first = load(undefined, ['a', 'b'])
  const calls: Attempt[] = first.peers.map((peer) => chosen(first.upstream, peer, 1_000_000))
  const before = first.peers.map(slot)
  const many = Array.from({ length: 40 }, (_, i) => `n${i}`)
  const second = load(first, [...many, 'a', 'b'])
  assert.equal(second.zone, first.zone)
  assert.equal(second.zone.capacity, 128)
  assert.deepEqual([slot(find(second, 'a')), slot(find(second, 'b'))], before)
  for (const call of calls) ended(call, 'ok', 1_000_010)
  assert.equal(
    second.zone.peers.conns.every((n) => n === 0),
    true,
  )
  assert.equal(new Set(second.peers.map((peer) => peer.index)).size, 42)
})

// What a changed weight makes of the effective one, which failures had lowered.
const weights = [
  // weight before, effective weight then, new weight, effective weight now
  [1, 1, 5, 5],
  [5, 5, 1, 1],
  [10, 5, 4, 2],
  [10, 0, 4, 0],
  [4, 3, 2, 1],
  [2, 2, 2, 2],
  [3, 1, 3, 1],
] as const

for (const [before, effective, after, expected] of weights) {
  test(`weight=${before} of which ${effective} is left becomes weight=${after} with ${expected}`, () => {
    const first = load(undefined, [{ name: 'a', weight: before }, 'b'])
    first.zone.peers.effectiveWeight[0] = effective
    const second = load(first, [{ name: 'a', weight: after }, 'b'])
    assert.equal(slot(second.peers[0]!)['effectiveWeight'], expected)
    assert.equal(second.peers[0]!.options.weight, after)
  })
}

test('turns of old, large weights do not outlast the weights', () => {
  const first = load(undefined, [{ name: 'a', weight: 1000 }, 'b', 'c'])
  first.zone.peers.currentWeight.set([-700, 400, 300])
  const same = load(first, [{ name: 'a', weight: 1000 }, 'b', 'c'])
  assert.deepEqual([...same.zone.peers.currentWeight.subarray(0, 3)], [-700, 400, 300])
  const second = load(same, ['a', 'b', 'c'])
  assert.deepEqual([...second.zone.peers.currentWeight.subarray(0, 3)], [-3, 3, 3])
})

test('a shorter fail_timeout holds at once, and a success after it counts', () => {
  const first = load(undefined, [{ name: 'a', fail_timeout: 600_000 }, 'b'])
  attempted(first.upstream, first.peers[0]!, 'error', 1_000_000)
  const second = load(first, [{ name: 'a', fail_timeout: 1000 }, 'b'], 1_000_500)
  const a = second.peers[0]!
  assert.equal(usable(a, false, 1_000_999), false)
  assert.equal(usable(a, false, 1_001_000), true)
  attempted(second.upstream, a, 'ok', 1_001_000)
  assert.equal(peerState(a, 1_001_000), 'up')
  assert.equal(slot(a)['fails'], 0)
})

test('a max_fails that the failures already reach sets the peer aside; a larger one takes it back', () => {
  const first = load(undefined, [{ name: 'a', max_fails: 5 }, 'b'])
  for (let i = 0; i < 3; i++) attempted(first.upstream, first.peers[0]!, 'error', 1_000_000)
  const second = load(first, [{ name: 'a', max_fails: 2 }, 'b'], 1_001_000)
  assert.equal(peerState(second.peers[0]!, 1_001_000), 'unavailable')
  assert.equal(slot(second.peers[0]!)['unavailable'], 1)
  const third = load(second, [{ name: 'a', max_fails: 4 }, 'b'], 1_003_000)
  assert.equal(peerState(third.peers[0]!, 1_003_000), 'up')
  assert.equal(slot(third.peers[0]!)['downtimeMs'], 2000)
  assert.equal(usable(third.peers[0]!, false, 1_003_000), true)
})

test('slow_start taken away ends the ramp, and given it ends what failures took of the weight', () => {
  const first = load(undefined, [
    { name: 'a', slow_start: 10_000, fail_timeout: 1000 },
    { name: 'b', weight: 4 },
  ])
  attempted(first.upstream, first.peers[0]!, 'error', 1_000_000)
  attempted(first.upstream, first.peers[0]!, 'ok', 1_001_000)
  assert.equal(throttle(first.peers[0]!, 1_002_000), 0.1)
  first.zone.peers.effectiveWeight[1] = 1
  const second = load(first, ['a', { name: 'b', weight: 4, slow_start: 5000 }], 1_002_000)
  assert.equal(throttle(second.peers[0]!, 1_002_000), 1)
  assert.equal(slot(second.peers[1]!)['effectiveWeight'], 4)
})

test('shares that a method draws from are those of the peers that are left', () => {
  const first = load(undefined, ['a', 'b', 'c'])
  for (const peer of first.peers) setShare(first.zone, peer.index, peer.index + 1)
  const call = chosen(first.upstream, find(first, 'c'), 1_000_000)
  const second = load(first, ['a', 'b'])
  assert.equal(totalShare(second.zone), 3)
  ended(call, 'ok', 1_000_000)
  const many = Array.from({ length: 30 }, (_, i) => `n${i}`)
  assert.equal(totalShare(load(second, ['a', 'b', ...many]).zone), 3)
})

test('a retired peer that still answers, and one that became a backup, have no share to draw from', () => {
  const learning = {
    mode: 'header',
    factor: 0.9,
    errors: 3,
    decay: 10_000,
    account: undefined,
    plain: true,
  } as const
  const many = Array.from({ length: 70 }, (_, i) => `n${i}`)
  const first = load(undefined, ['a', 'b', ...many], 1_000_000, learning)
  for (const peer of first.peers) setShare(first.zone, peer.index, 1)
  const call = chosen(first.upstream, find(first, 'a'), 1_000_000)
  const second = load(first, [{ name: 'b', backup: true }, ...many], 1_000_000, learning)
  assert.equal(totalShare(second.zone), 70)
  ended(call, 'ok', 1_000_005)
  assert.equal(totalShare(second.zone), 70)
})

test('the zone takes the name that the configuration now gives it', () => {
  const first = load(undefined, ['a'])
  assert.equal(adopt(first.upstream, wanted(['a']), 'other').zone, first.zone)
  assert.equal(first.zone.name, 'other')
})

test('ten thousand peers that come and go pass through the same few slots', () => {
  const generation = (n: number) => Array.from({ length: 100 }, (_, i) => `10.${n}.0.${i}:80`)
  let loaded = load(undefined, generation(0))
  const sizes = new Set<number>()
  for (let n = 1; n <= 100; n++) {
    // Every tenth generation a call is still in progress at one of those that go.
    const attempt = n % 10 === 0 ? chosen(loaded.upstream, loaded.peers[n % 100]!, n) : undefined
    loaded = load(loaded, generation(n))
    assert.equal(loaded.retired.length, attempt ? 1 : 0)
    if (attempt) ended(attempt, 'ok', n)
    assert.deepEqual(loaded.retired, [])
    sizes.add(loaded.zone.capacity)
  }
  assert.deepEqual([...sizes], [256])
  assert.equal(loaded.zone.room, 156)
})

test('whatever is reloaded while calls run, each slot belongs to one peer and every call is counted down', () => {
  const sketches = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 6 })
  const step = fc.oneof(
    fc.record({ act: fc.constant('load' as const), sketches }),
    fc.record({ act: fc.constantFrom('begin' as const, 'end' as const), which: fc.nat(20) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 1_000_000
      let loaded = load(undefined, ['a', 'b'])
      const running: Attempt[] = []
      const check = () => {
        const live = [...loaded.peers, ...loaded.retired]
        assert.equal(new Set(live.map((peer) => peer.index)).size, live.length)
        assert.equal(loaded.zone.room, loaded.zone.capacity - live.length)
        for (const peer of live) {
          const calls = running.filter((attempt) => attempt.peer!.index === peer.index)
          assert.equal(slot(peer)['conns'], calls.length)
          assert.ok(calls.every((attempt) => attempt.peer!.name === peer.name))
          assert.equal(peer.retired, loaded.retired.includes(peer))
        }
        assert.ok(loaded.retired.every((peer) => slot(peer)['conns']! > 0))
      }
      for (const one of steps) {
        now += 1
        if (one.act === 'load') loaded = load(loaded, one.sketches, now)
        else if (one.act === 'begin' && loaded.peers.length > 0) {
          running.push(chosen(loaded.upstream, loaded.peers[one.which % loaded.peers.length]!, now))
        } else if (one.act === 'end' && running.length > 0) {
          ended(running.splice(one.which % running.length, 1)[0]!, 'ok', now)
        }
        check()
      }
      for (const attempt of running.splice(0)) ended(attempt, 'aborted', now)
      check()
      assert.equal(loaded.retired.length, 0)
    }),
    { numRuns: 200, seed: 1 },
  )
})

test('a peer that comes back is not barred by what probes had found of it', () => {
  const first = load(undefined, ['a', 'b'])
  const gone = first.peers[0]!
  const call = chosen(first.upstream, gone, 1_000_000)
  obey(gone, { operational: 'down', weightFactor: 0.5 })
  const { checkup } = enrol(
    gone,
    [{ name: 'x', fails: 1, passes: 1, essential: true, persistent: false }],
    false,
    0,
  )
  judgeProbe(checkup, checkup.standings[0]!, false, 0)
  assert.equal(exclusion(gone, false, 0), 'down')
  const second = load(first, ['b'])
  assert.equal(names(second.retired), 'a')
  const third = load(second, ['a', 'b'])
  assert.equal(third.peers[0]!.index, gone.index)
  assert.equal(exclusion(third.peers[0]!, false, 0), undefined)
  assert.equal(third.zone.peers.weightFactor[gone.index], 1)
  ended(call, 'ok', 1_000_010)
})
