import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { forgetSwitch } from '../../../feedback/backup-switch.ts'
import { Call } from '../../../feedback/call.ts'
import { type ListSwitchEvent, listSwitchChannel } from '../../../feedback/channels.ts'
import { measured, observe } from '../../../feedback/observe.ts'
import type { Attempt } from '../../../feedback/outcome.ts'
import { Group } from '../../../sidecar/balance/group.ts'
import { Selection } from '../../../sidecar/balance/pick.ts'
import { RoundRobin } from '../../../sidecar/balance/round-robin.ts'
import { Split } from '../../../sidecar/balance/split.ts'
import { env, group, type PeerSketch } from '../../support/peers.ts'

const minute = 60_000

/** Peers a, b, … and then the backups. */
function made(
  primaries: readonly PeerSketch[],
  backups: readonly PeerSketch[],
  after: number | undefined,
  percent?: number,
) {
  const upstream = group(primaries, { backups, split: percent !== undefined })
  const rule = { variable: undefined, percents: new Map([['canary', percent ?? 0]]), key: undefined }
  const make = (list: typeof upstream.peers) => new RoundRobin(list)
  const primary = percent === undefined ? make(upstream.peers) : new Split(upstream.peers, rule, make)
  const balancing = new Group(
    upstream,
    primary,
    backups.length > 0 ? make(upstream.backups) : undefined,
    undefined,
    {
      switching: { after },
    },
  )
  const dice = env()
  const { clock } = dice
  const { peers: numbers } = upstream.zone
  const call = new Call()
  const select = () => {
    const selection = new Selection(balancing, call, dice)
    const attempts: Attempt[] = []
    return {
      attempts,
      next() {
        const attempt = selection.next()
        if (attempt !== undefined) attempts.push(attempt)
        return attempt?.peer?.name ?? '-'
      },
    }
  }
  return {
    upstream,
    zone: upstream.zone,
    clock,
    select,
    /** Who gets the next requests. */
    firsts: (count: number) => Array.from({ length: count }, () => select().next()).join(' '),
    out: (index: number, is = true) => numbers.barred.fill(is ? 1 : 0, index, index + 1),
    end(attempt: Attempt, how: Partial<Attempt> = {}) {
      Object.assign(attempt, { ending: 'ok', ...how })
      observe(attempt, call, dice.now())
    },
    header: (attempt: Attempt) => measured(attempt, call, dice.now()),
  }
}

/** Switches as they are told. */
function told(t: TestContext): string[] {
  const events: string[] = []
  const hear = (message: unknown) => {
    events.push((message as ListSwitchEvent).to)
  }
  listSwitchChannel.subscribe(hear)
  t.after(() => listSwitchChannel.unsubscribe(hear))
  return events
}

test('requests stay with the backups once these were needed, also when the primaries are back', (t) => {
  const events = told(t)
  const { firsts, out, zone } = made([1, 1], [1, 1], undefined)
  assert.equal(firsts(3), 'a b a')
  out(0)
  out(1)
  assert.equal(firsts(3), 'c d c')
  out(0, false)
  out(1, false)
  assert.equal(firsts(3), 'd c d')
  assert.deepEqual(events, ['backups'])
  assert.deepEqual([zone.get('activeList'), zone.get('switches')], [1, 1])
  assert.ok(Math.abs(zone.get('switchedWallAt') - Date.now()) < 10_000)
})

test('without backups, and without the directive, every request begins with the primaries', () => {
  const alone = made([1, 1], [], undefined)
  assert.equal(alone.firsts(3), 'a b a')
  const upstream = group([1], { backups: [1] })
  const balancing = new Group(upstream, new RoundRobin(upstream.peers), new RoundRobin(upstream.backups))
  const first = () => new Selection(balancing, new Call(), env()).next()!.peer!.name
  upstream.zone.peers.barred.fill(1, 0, 1)
  assert.equal(first(), 'b')
  upstream.zone.peers.barred.fill(0, 0, 1)
  assert.equal(first(), 'a')
})

test('when the backups have nobody the search goes on among the primaries, and stays there', (t) => {
  const events = told(t)
  const { firsts, out, select } = made([1, 1], [1], undefined)
  out(0)
  out(1)
  assert.equal(firsts(1), 'c')
  out(0, false)
  out(2)
  assert.equal(firsts(2), 'a a')
  out(2, false)
  assert.equal(firsts(2), 'a a')
  assert.deepEqual(events, ['backups', 'primaries'])
  out(0)
  out(2)
  assert.equal(select().next(), '-')
  assert.deepEqual(events, ['backups', 'primaries'], 'where nobody is found nothing is switched')
})

test('a request that has been at all of a list goes on in the other, and takes the others with it', () => {
  const { firsts, select } = made([1, 1], [1, 1], undefined)
  const { next } = select()
  assert.deepEqual([next(), next(), next(), next(), next()], ['a', 'b', 'c', 'd', '-'])
  assert.match(firsts(2), /^(c d|d c)$/)
  const other = select()
  assert.match(Array.from({ length: 5 }, () => other.next()).join(''), /^(cd|dc)(ab|ba)-$/)
  assert.match(firsts(1), /[ab]/)
})

describe('after the time that is given', () => {
  test('one request finds out whether the primaries work, and the others stay until it has an answer', (t) => {
    const events = told(t)
    const all = made([1, 1], [1, 1], 2 * minute)
    all.out(0)
    all.out(1)
    assert.equal(all.firsts(1), 'c')
    all.out(0, false)
    all.clock.move(2 * minute - 1)
    assert.equal(all.firsts(1), 'd')
    all.clock.move(1)
    const probe = all.select()
    assert.equal(probe.next(), 'a')
    assert.equal(all.firsts(3), 'c d c')
    all.end(probe.attempts[0]!)
    assert.equal(all.firsts(2), 'a a')
    assert.deepEqual(events, ['backups', 'primaries'])
    assert.equal(all.zone.get('switches'), 2)
  })

  test('the header of its answer is enough', () => {
    const all = made([1], [1], minute)
    all.out(0)
    all.firsts(1)
    all.out(0, false)
    all.clock.move(minute)
    const probe = all.select()
    probe.next()
    all.header(probe.attempts[0]!)
    assert.equal(all.firsts(1), 'a')
    all.end(probe.attempts[0]!)
    assert.equal(all.zone.get('switches'), 2)
  })

  test('where it finds nobody there it goes to the backups, and the time begins anew', () => {
    const all = made([1], [1], minute)
    all.out(0)
    all.firsts(1)
    all.clock.move(minute)
    assert.equal(all.firsts(1), 'b')
    all.out(0, false)
    all.clock.move(minute - 1)
    assert.equal(all.firsts(2), 'b b')
    all.clock.move(1)
    assert.equal(all.firsts(2), 'a b')
  })

  test('where a primary fails it, it goes on, and the backups stay the first', (t) => {
    const all = made([{ max_fails: 0 }, { max_fails: 0 }], [1], minute)
    all.out(0)
    all.out(1)
    all.firsts(1)
    all.out(0, false)
    all.out(1, false)
    const events = told(t)
    all.clock.move(minute)
    const probe = all.select()
    assert.equal(probe.next(), 'a')
    all.end(probe.attempts[0]!, { ending: 'error', failed: true, next: true, reason: 'refused' })
    assert.equal(all.firsts(1), 'c')
    assert.equal(probe.next(), 'b')
    all.end(probe.attempts[1]!, { ending: 'error', failed: true, next: true, reason: 'refused' })
    assert.equal(probe.next(), 'c')
    all.end(probe.attempts[2]!)
    assert.equal(all.firsts(2), 'c c')
    assert.deepEqual(events, [])
    all.clock.move(minute)
    assert.match(all.select().next(), /[ab]/)
  })

  test('another primary that answers it is as good', () => {
    const all = made([{ max_fails: 0 }, { max_fails: 0 }], [1], minute)
    all.out(0)
    all.out(1)
    all.firsts(1)
    all.out(0, false)
    all.out(1, false)
    all.clock.move(minute)
    const probe = all.select()
    probe.next()
    all.end(probe.attempts[0]!, { ending: 'error', failed: true, next: true, reason: 'refused' })
    probe.next()
    all.end(probe.attempts[1]!)
    assert.match(all.firsts(1), /[ab]/)
  })

  test('a client that leaves before there is an answer has found out nothing', () => {
    const all = made([1], [1], minute)
    all.out(0)
    all.firsts(1)
    all.out(0, false)
    all.clock.move(minute)
    const probe = all.select()
    probe.next()
    all.end(probe.attempts[0]!, { ending: 'aborted', reason: 'client_abort' })
    assert.equal(all.firsts(1), 'b')
  })
})

test('primaries that are split over tracks are one list', () => {
  const all = made([1, { track: 'canary' }], [1], undefined, 50)
  all.out(1)
  assert.equal(new Set(all.firsts(20).split(' ')).size, 1, 'stable stands in for the canary')
  assert.equal(all.zone.get('activeList'), 0)
  all.out(0)
  assert.equal(all.firsts(4), 'c c c c')
  all.out(0, false)
  all.out(1, false)
  assert.equal(all.firsts(4), 'c c c c')
})

test('a configuration without the directive begins with the primaries again', () => {
  const all = made([1], [1], undefined)
  all.out(0)
  all.firsts(1)
  forgetSwitch(all.zone)
  assert.deepEqual([all.zone.get('activeList'), all.zone.get('switches')], [0, 1])
})
