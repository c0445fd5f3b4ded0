// How leases of a common limit move over many exchanges: with the real decisions, and the store's twin.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Ledger } from '../../../feedback/fleet/ledger.ts'
import { holdConn } from '../../../feedback/held.ts'
import type { Upstream } from '../../../feedback/upstream.ts'
import { dice } from '../../../sidecar/simulate/dice.ts'
import { FleetStore } from '../../../sidecar/simulate/fleet-store.ts'
import { group } from '../../support/peers.ts'

const interval = 200
const ttl = 5000
/** How often load is looked at, milliseconds. */
const tick = 20
/** How long a request takes. */
const longMs = 200

/** How many requests want to be in progress at an instance, at a moment. */
type Load = (now: number) => number

class Instance {
  readonly upstream: Upstream
  readonly ledger: Ledger
  readonly id: string
  load: Load
  refused = 0

  constructor(id: string, limit: number, load: Load) {
    this.id = id
    this.load = load
    this.upstream = group([{ max_conns: limit, max_conns_scope: 'fleet' }])
    this.ledger = new Ledger(this.upstream, ttl)
  }

  get lease(): number {
    return this.upstream.zone.peers.lease[0]! - 1
  }
  get conns(): number {
    return this.upstream.zone.peers.conns[0]!
  }

  /** Requests begin and end. */
  serve(now: number): void {
    const { zone } = this.upstream
    const target = this.load(now)
    while (this.conns > target) holdConn(zone, 0, -1)
    // What is in progress ends, and where the lease allows it another begins in its place.
    for (let n = Math.ceil(this.conns * (tick / longMs)); n > 0; n--) holdConn(zone, 0, -1)
    if (target > 0) zone.add('requests', 1)
    while (this.conns < Math.min(target, this.lease)) holdConn(zone, 0, 1)
    this.refused += target - this.conns
  }
}

/** Instances that share one limit, each with exchanges at a phase of its own. */
class Course {
  readonly all: readonly Instance[]
  readonly #store = new FleetStore()
  readonly #next: number[]
  readonly #random = dice(1, 'leases')
  readonly #limit: number
  #now = 10_000

  constructor(limit: number, loads: readonly Load[]) {
    this.#limit = limit
    this.all = loads.map((load, i) => new Instance(`i${i}`, limit, load))
    this.#next = loads.map(() => this.#now + this.#random() * interval)
  }

  get leases(): number[] {
    return this.all.map(({ lease }) => lease)
  }
  get now(): number {
    return this.#now
  }

  /** @returns the leases at each interval */
  run(ms: number): number[][] {
    const seen: number[][] = []
    const end = this.#now + ms
    let look = this.#now
    while (this.#now < end) {
      this.#now += tick
      for (const [i, one] of this.all.entries()) {
        if (this.#now >= this.#next[i]!) this.#exchange(one, i)
        one.serve(this.#now)
      }
      const inProgress = this.all.reduce((sum, { conns }) => sum + conns, 0)
      assert.ok(inProgress <= this.#limit, `${inProgress} in progress`)
      if (this.#now < look) continue
      look += interval
      seen.push(this.leases)
    }
    return seen
  }

  #exchange({ id, ledger }: Instance, i: number): void {
    this.#next[i]! += interval * (0.9 + 0.2 * this.#random())
    const telling = ledger.gather(this.#now)
    const heard = this.#store.exchange(ledger.send(telling, id, ttl), 1e6 + this.#now)
    ledger.hear(telling, heard, this.#now, this.#now)
  }
}

/** By how much the lease of any instance differs over a course. */
function swing(seen: readonly (readonly number[])[]): number {
  const first = seen[0]!
  const spans = first.map((_, i) => {
    const of = seen.map((leases) => leases[i]!)
    return Math.max(...of) - Math.min(...of)
  })
  return Math.max(...spans)
}

const idle: Load = () => 0
const endless: Load = () => 1000
const steady =
  (count: number): Load =>
  () =>
    count

describe('in a steady state leases stay where they are', () => {
  const courses: readonly [string, number, readonly Load[], (leases: readonly number[]) => boolean][] = [
    ['all idle', 12, [idle, idle, idle], (leases) => leases.every((lease) => lease === 4)],
    ['one alone', 100, [idle], ([lease]) => lease === 100],
    ['one busy without end, two idle', 12, [endless, idle, idle], ([lease]) => lease === 12],
    ['two busy without end', 12, [endless, endless], (leases) => leases.every((lease) => lease === 6)],
    ['two of three busy without end', 12, [endless, endless, idle], ([a, b]) => a! >= 5 && b! >= 5],
    ['as busy as a fair part, and idle', 12, [steady(6), idle], ([a, b]) => a! >= 6 && b! >= 3],
    ['more than a fair part, and idle', 100, [steady(60), idle], ([a, b]) => a! >= 60 && b! >= 20],
    ['busy without end beside some use', 100, [endless, steady(10)], ([a, b]) => a! >= 85 && b! > 10],
    ['little use everywhere', 40, [steady(3), steady(1), steady(5), idle], (l) => l.every((n) => n === 10)],
    ['more instances than places', 3, [idle, idle, idle, idle, endless], ([, , , , last]) => last! >= 1],
    ['as many instances as places', 4, [idle, idle, endless, idle], ([, , busy]) => busy === 4],
  ]
  for (const [text, limit, loads, right] of courses) {
    test(text, () => {
      const course = new Course(limit, loads)
      course.run(ttl + 6000)
      const seen = course.run(10_000)
      assert.ok(swing(seen) <= 2, `swings: ${seen.map((leases) => leases.join('/')).join(' ')}`)
      assert.ok(right(course.leases), `${course.leases}`)
    })
  }
})

test('what somebody craved is in reserve again when it is needed no more', () => {
  const course = new Course(12, [endless, idle, idle])
  course.run(ttl + 6000)
  assert.deepEqual(course.leases, [12, 0, 0])
  course.all[0]!.load = idle
  course.run(1000)
  assert.deepEqual(course.leases, [4, 4, 4])
})

test('a burst up to a fair part is served at once wherever all were idle before', () => {
  for (const at of [0, 1, 2]) {
    const course = new Course(12, [idle, idle, idle])
    course.run(2000)
    const one = course.all[at]!
    const { now } = course
    one.load = (then) => (then < now + 300 ? 4 : 0)
    course.run(2000)
    assert.equal(one.refused, 0)
  }
})

test('bursts of one that come again and again leave everybody a fair part in between', () => {
  const bursty: Load = (now) => (now % 3000 < 200 ? 8 : 0)
  const course = new Course(12, [bursty, idle])
  course.run(ttl + 2000)
  const seen = course.run(15_000)
  for (const leases of seen) assert.ok(Math.min(...leases) >= 1, leases.join('/'))
  const fair = seen.filter((leases) => leases.every((lease) => lease === 6)).length
  assert.ok(fair >= seen.length / 2, `${fair} of ${seen.length}: ${seen.map((l) => l.join('/')).join(' ')}`)
})

test('demand that moves from one to the other takes the limit along within a few intervals', () => {
  const course = new Course(12, [endless, idle])
  course.run(ttl + 6000)
  const [one, other] = course.all as [Instance, Instance]
  assert.equal(one.lease, 12)
  one.load = idle
  other.load = endless
  course.run(4 * interval)
  assert.ok(other.lease >= 6, `${course.leases}`)
  course.run(8 * interval)
  assert.ok(other.lease >= 10, `${course.leases}`)
})

test('who asks now and then always finds a place, however busy others are', () => {
  const course = new Course(12, [endless, (now) => (now % 2500 < 100 ? 1 : 0)])
  course.run(ttl + 5000)
  const other = course.all[1]!
  other.refused = 0
  course.run(20_000)
  assert.equal(other.refused, 0)
  assert.ok(course.all[0]!.lease >= 8, `${course.leases}`)
})

test('where one has all, another that becomes as busy gets a fair part in the end, and something soon', () => {
  for (const [limit, count] of [
    [12, 2],
    [12, 3],
    [100, 2],
    [100, 4],
  ] as const) {
    const course = new Course(limit, [endless, ...Array.from({ length: count - 1 }, () => idle)])
    course.run(ttl + 6000)
    const other = course.all[1]!
    other.load = endless
    const fair = Math.floor(limit / count)
    const seen = course.run(12_000).map((leases) => leases[1]!)
    const when = (places: number) => seen.findIndex((lease) => lease >= places)
    const moments = [when(1), when(fair / 2), when(fair)]
    assert.ok(
      moments.every((moment, i) => moment >= 0 && moment <= [6, 8, 25][i]!),
      `${fair} of ${limit}: ${moments} intervals`,
    )
  }
})
