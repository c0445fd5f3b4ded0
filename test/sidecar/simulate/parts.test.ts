import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Agenda } from '../../../sidecar/simulate/agenda.ts'
import { dice, exponential } from '../../../sidecar/simulate/dice.ts'
import { erlangC } from '../../../sidecar/simulate/erlang.ts'
import { Fifo } from '../../../sidecar/simulate/fifo.ts'
import { quantile } from '../../../sidecar/simulate/measure.ts'
import { Timeline } from '../../../sidecar/simulate/timeline.ts'

const near = (found: number, expected: number, part = 1e-9) =>
  assert.ok(Math.abs(found - expected) <= part * Math.abs(expected), `${found} and not ${expected}`)

test('dice fall the same for the same seed and names, and otherwise not', () => {
  const throws = (seed: number, ...names: (string | number)[]) => {
    const random = dice(seed, ...names)
    return Array.from({ length: 5 }, random).join(' ')
  }
  assert.equal(throws(7, 'picks', 3), throws(7, 'picks', 3))
  const others = [
    throws(7, 'picks', 4),
    throws(8, 'picks', 3),
    throws(7, 'keys'),
    throws(7 + 2 ** 32, 'picks', 3),
  ]
  assert.equal(new Set([throws(7, 'picks', 3), ...others]).size, 5)
})

test('dice are even, and times drawn with them have their mean', () => {
  const random = dice(1, 'even')
  const tenths = new Array<number>(10).fill(0)
  for (let i = 0; i < 100_000; i++) tenths[Math.floor(10 * random())]! += 1
  for (const count of tenths) near(count, 10_000, 0.04)
  let sum = 0
  for (let i = 0; i < 100_000; i++) sum += exponential(random, 10)
  near(sum / 100_000, 10, 0.02)
})

test('what ends sooner comes first, and of two at once the one entered first', () => {
  const agenda = new Agenda()
  const random = dice(1, 'agenda')
  const times = Array.from({ length: 500 }, () => Math.floor(50 * random()))
  for (const [id, time] of times.entries()) agenda.add(time, id)
  const found: number[] = []
  while (agenda.next < Number.POSITIVE_INFINITY) found.push(agenda.take())
  const expected = times.map((_, id) => id).sort((a, b) => times[a]! - times[b]! || a - b)
  assert.deepEqual(found, expected)
})

test('a queue keeps its order while it grows and shrinks', () => {
  const queue = new Fifo()
  const found: number[] = []
  for (let i = 0; i < 1000; i++) {
    queue.push(i)
    if (i % 3 === 0) found.push(queue.shift())
  }
  assert.equal(queue.first(), 334)
  while (queue.length > 0) found.push(queue.shift())
  assert.deepEqual(
    found,
    Array.from({ length: 1000 }, (_, i) => i),
  )
})

test('work goes on at the rate of the moment, and not while a peer stands still', () => {
  const timeline = () =>
    new Timeline([
      { from: 0, rate: 2 },
      { from: 100, rate: 0 },
      { from: 150, rate: 0.5 },
      { from: 250, rate: 2 },
    ])
  assert.equal(timeline().finish(0, 10), 5)
  // 20 ms at double speed are 40; then nothing, and 100 ms at half speed are 50.
  assert.equal(timeline().finish(80, 40), 100)
  assert.equal(timeline().finish(80, 60), 190)
  assert.equal(timeline().finish(80, 100), 255)
  assert.equal(timeline().finish(120, 10), 170)
  assert.equal(timeline().finish(300, 10), 305)
  const asked = timeline()
  assert.deepEqual(
    [0, 99, 100, 149, 150, 400].map((now) => asked.rate(now)),
    [2, 2, 0, 0, 0.5, 2],
  )
})

test("Erlang's formula gives what the books have", () => {
  // One worker: it waits who finds it busy. Two at half load: a third.
  near(erlangC(1, 0.7, 10).chance, 0.7)
  near(erlangC(1, 0.5, 10).meanMs, 10)
  near(erlangC(2, 0.5, 10).chance, 1 / 3)
  // Ten workers with eight to do: 0.409.
  near(erlangC(10, 0.8, 10).chance, 0.409, 1e-3)
  assert.deepEqual(erlangC(3, 1, 10), { chance: 1, meanMs: Number.POSITIVE_INFINITY })
})

test('a percentile is the least value that so many are at or below', () => {
  const values = Float64Array.from({ length: 100 }, (_, i) => i + 1)
  assert.equal(quantile(values, 0.5), 50)
  assert.equal(quantile(values, 0.99), 99)
  assert.equal(quantile(values, 0.999), 100)
  assert.equal(quantile(values.subarray(0, 1), 0.5), 1)
  assert.ok(Number.isNaN(quantile(values.subarray(0, 0), 0.5)))
})
