import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { monotonic } from '../../../feedback/clock.ts'
import { type Dated, Watch } from '../../../sidecar/stream/watch.ts'
import { until } from '../../support/until.ts'

/** Something that is late once so long after a moment, and then goes. */
class Thing implements Dated {
  due: number
  lateAt: number | undefined = undefined
  readonly #all: Set<Dated>

  constructor(all: Set<Dated>, ms: number) {
    this.due = monotonic() + ms
    this.#all = all
    all.add(this)
  }

  late(now: number): void {
    this.lateAt = now
    this.#all.delete(this)
  }

  forgive(ms: number): void {
    this.due += ms
  }
}

test('each is told when its own moment has come, however many there are', async () => {
  const all = new Set<Dated>()
  const watch = new Watch(all)
  const things = Array.from({ length: 200 }, (_, i) => new Thing(all, 20 + (i % 10) * 10))
  for (const { due } of things) watch.expect(due)
  await until(() => all.size === 0)
  for (const { due, lateAt } of things) assert.ok(lateAt! >= due && lateAt! < due + 500)
})

test('a moment that is put off while it is waited for is not the old one', async () => {
  const all = new Set<Dated>()
  const watch = new Watch(all)
  const thing = new Thing(all, 30)
  watch.expect(thing.due)
  await wait(10)
  thing.due += 100
  await until(() => all.size === 0)
  assert.ok(thing.lateAt! >= thing.due)
})

test('one that begins later may be the first to end', async () => {
  const all = new Set<Dated>()
  const watch = new Watch(all)
  const long = new Thing(all, 10_000)
  watch.expect(long.due)
  const short = new Thing(all, 20)
  watch.expect(short.due)
  await until(() => short.lateAt !== undefined)
  assert.ok(short.lateAt! < short.due + 500)
  assert.equal(long.lateAt, undefined)
  all.delete(long)
})

test('time in which nothing could run is put on top', async () => {
  const all = new Set<Dated>()
  const watch = new Watch(all)
  const thing = new Thing(all, 50)
  watch.expect(thing.due)
  const until1 = monotonic() + 1200
  while (monotonic() < until1);
  await wait(20)
  assert.equal(thing.lateAt, undefined)
  assert.ok(thing.due > until1)
  all.delete(thing)
})

test('a moment that is weeks away is no trouble', async () => {
  const warnings: string[] = []
  const hear = ({ name }: Error) => warnings.push(name)
  process.on('warning', hear)
  const all = new Set<Dated>()
  const watch = new Watch(all)
  const thing = new Thing(all, 30 * 86_400_000)
  watch.expect(thing.due)
  await wait(30)
  process.off('warning', hear)
  assert.deepEqual(warnings, [])
  assert.equal(thing.lateAt, undefined)
})
