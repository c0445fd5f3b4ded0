import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { exclusion } from '../../../feedback/health.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { SessionBook } from '../../../feedback/sessions/book.ts'
import { Sessions } from '../../../feedback/sessions/sessions.ts'
import { Upstream } from '../../../feedback/upstream.ts'
import { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { Sticky } from '../../../sidecar/balance/sticky/sticky.ts'
import { seeded } from '../../support/dice.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'

/** A group with everything that may stand beside a method, as the dice have it. */
function made(random: () => number) {
  const chance = (part: number) => random() < part
  const sketch = (sid: string): PeerSketch => ({
    sid: chance(0.2) ? 'same' : sid,
    max_conns: chance(0.3) ? 2 : 0,
    max_fails: chance(0.2) ? 0 : 1,
    fail_timeout: 50,
    drain: chance(0.15),
    down: chance(0.1),
  })
  const counted = (most: number) => Math.floor(random() * (most + 1))
  const primaries = Array.from({ length: 1 + counted(3) }, (_, i) => sketch(`p${i}`))
  const backups = Array.from({ length: counted(2) }, (_, i) => sketch(`b${i}`))
  const bare = group(primaries, { backups })
  const learn = chance(0.5)
  const book = new SessionBook(
    'u',
    {
      create: [(call) => call.uri],
      lookup: [(call) => call.target],
      timeout: 200,
      at: chance(0.5) ? 'end' : 'header',
      refresh: chance(0.7),
    },
    new Sessions('z', 6),
  )
  const { name, zone, peers, method, learning, responseTimeFactor } = bare
  const upstream = new Upstream({
    ...{ name, zone, peers, method, learning, responseTimeFactor, backups: bare.backups },
    sessions: learn ? book : undefined,
  })
  const all = [...peers, ...bare.backups]
  const rules = { secret: undefined, cookie: undefined, strict: chance(0.3) }
  const hints = learn ? [] : [(call: Call) => call.target]
  const sticky = chance(0.8)
    ? new Sticky({ ...rules, hints, book: learn ? book : undefined }, all)
    : undefined
  const switching = chance(0.5) ? { after: chance(0.5) ? 30 : undefined } : undefined
  const backup = bare.backups.length > 0 ? new RoundRobin(bare.backups) : undefined
  const balancing = new Group(upstream, new RoundRobin(peers), backup, undefined, { sticky, switching })
  return { balancing, upstream, all, sticky, strict: rules.strict, learn, chance, counted }
}

test('whatever sessions, switches and peers do, everyone goes where it may, and nothing is left behind', () => {
  for (let seed = 1; seed <= 120; seed++) {
    const random = seeded(seed)
    const { balancing, upstream, all, sticky, strict, chance, counted } = made(random)
    const dice = env(seed)
    const running: { attempt: Attempt; call: Call; selection: Selection; tried: Set<Peer> }[] = []
    const ids = ['', 'p0', 'p1', 'b0', 'same', 'x', 'y']
    const one = () => ids[counted(ids.length - 1)]!
    const next = (selection: Selection, call: Call, tried: Set<Peer>) => {
      const now = dice.now()
      const fit = (peer: Peer, bound: boolean) =>
        exclusion(peer, upstream.isAlone(peer), now, bound) === undefined &&
        (upstream.single || !tried.has(peer))
      const free = all.filter((peer) => fit(peer, false))
      const bound = new Set(all.filter((peer) => fit(peer, true)))
      const attempt = selection.next()
      const status = selection.stickiness
      assert.equal(status === '', sticky === undefined)
      if (attempt === undefined) {
        // A later choice does not go back to the list that it has left.
        const left = tried.size > 0
        assert.ok(
          left || free.length === 0 || (strict && status === 'MISS'),
          `seed ${seed}: somebody is free`,
        )
        return
      }
      const peer = attempt.peer!
      assert.equal(attempt.sticky, status)
      assert.ok(
        attempt.pick === 'sticky' ? status === 'HIT' && bound.has(peer) : free.includes(peer),
        `seed ${seed}`,
      )
      assert.ok(attempt.pick === 'sticky' || status !== 'HIT')
      assert.ok(!strict || status !== 'MISS', `seed ${seed}: a strict session goes nowhere else`)
      tried.add(peer)
      running.push({ attempt, call, selection, tried })
    }
    for (let step = 0; step < 300; step++) {
      dice.clock.move(counted(10))
      const { barred } = upstream.zone.peers
      if (chance(0.05)) barred[all[counted(all.length - 1)]!.index] = chance(0.6) ? 0 : 1 + counted(2)
      if (running.length === 0 || (chance(0.5) && running.length < 12)) {
        const call = Object.assign(new Call(), { target: one(), uri: one() })
        next(new Selection(balancing, call, dice), call, new Set())
        continue
      }
      const [{ attempt, call, selection, tried }] = running.splice(counted(running.length - 1), 1) as [
        (typeof running)[0],
      ]
      const fails = chance(0.3)
      if (!fails && chance(0.7)) measured(attempt, call, dice.now())
      const how = fails
        ? { ending: 'error', failed: true, reason: 'refused', next: true }
        : { ending: chance(0.2) ? 'aborted' : 'ok' }
      Object.assign(attempt, how)
      observe(attempt, call, dice.now())
      if (fails) next(selection, call, tried)
    }
    for (const { attempt, call } of running) {
      attempt.ending = 'ok'
      observe(attempt, call, dice.now())
    }
    assert.deepEqual(
      [...upstream.zone.peers.conns].filter((count) => count !== 0),
      [],
      `seed ${seed}`,
    )
    const { zone } = upstream
    const counts = zone.get('stickyNew') + zone.get('stickyHit') + zone.get('stickyMiss')
    assert.equal(counts, sticky === undefined ? 0 : zone.get('tries'))
    assert.ok((upstream.sessions?.table.size ?? 0) <= 6)
    if (balancing.switching === undefined) assert.equal(zone.get('activeList'), 0)
  }
})
