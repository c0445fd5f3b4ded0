import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DueQueue, type Recurring } from '../../probes/due-queue.ts'
import { ManualTimers } from '../support/timers.ts'

interface Item extends Recurring {
  readonly name: number
}

/** So many that are all due at once, every 100 ms, each of which keeps the process busy so long. */
function crowd(count: number, busyMs: number) {
  const timers = new ManualTimers()
  const told: { readonly name: number; readonly at: number }[] = []
  const queue = new DueQueue<Item>(timers, ({ name }) => {
    told.push({ name, at: timers.now() })
    timers.clock.move(busyMs)
  })
  const dueAt = timers.now() + 100
  queue.use(Array.from({ length: count }, (_, name) => ({ name, dueAt, interval: 100 })))
  return { timers, told, queue, dueAt }
}

test('many that are due at once are told of in a row where that takes no time', async () => {
  const { timers, told, dueAt } = crowd(1000, 0)
  await timers.pass(100)
  assert.equal(told.length, 1000)
  assert.ok(told.every(({ at }) => at === dueAt))
})

test('where more is due than can be done the rest of the process has as long, and nobody is forgotten', async () => {
  const { timers, told } = crowd(640, 1)
  await timers.pass(10_000)
  const gaps = told.slice(1).map(({ at }, i) => at - told[i]!.at - 1)
  // What is told of in one go lasts no longer than this, and is followed by a pause as long.
  let run = 0
  for (const gap of gaps) {
    run = gap > 0 ? 0 : run + 1
    assert.ok(run < 64)
    assert.ok(gap === 0 || gap >= 64)
  }
  const counts = new Map<number, number>()
  for (const { name } of told) counts.set(name, (counts.get(name) ?? 0) + 1)
  assert.equal(counts.size, 640)
  const [least, greatest] = [Math.min(...counts.values()), Math.max(...counts.values())]
  assert.ok(greatest - least <= 1 && least >= 7, `${least} to ${greatest}`)
})

test('others can be put in the place of a crowd while it is being told of', async () => {
  const { timers, told, queue } = crowd(640, 1)
  await timers.pass(110)
  queue.use([{ name: 1000, dueAt: timers.now() + 50, interval: 100 }])
  const before = told.length
  await timers.pass(400)
  assert.deepEqual(
    told.slice(before).map(({ name }) => name),
    [1000, 1000, 1000, 1000],
  )
  queue.use([])
  assert.equal(timers.count, 0)
})

test('one that is put elsewhere comes up then, and in its rhythm from there', async () => {
  const { timers, told, queue, dueAt } = crowd(3, 0)
  queue.put(queue.items.find(({ name }) => name === 1)!, dueAt + 30)
  queue.put(queue.items.find(({ name }) => name === 2)!, dueAt - 70)
  await timers.pass(240)
  assert.deepEqual(
    told.map(({ name, at }) => [name, at - dueAt]),
    [
      [2, -70],
      [0, 0],
      [1, 30],
      [2, 30],
      [0, 100],
      [1, 130],
      [2, 130],
    ],
  )
  queue.put({ name: 9, dueAt, interval: 100 }, dueAt)
  assert.equal(queue.items.length, 3, 'a stranger is not taken in')
})

test('being put elsewhere does not cut the pause of a crowd', async () => {
  const { timers, told, queue } = crowd(640, 1)
  await timers.pass(100 + 64)
  const { length } = told
  for (const item of [...queue.items]) queue.put(item, item.dueAt)
  await timers.pass(1)
  assert.equal(told.length, length)
})
