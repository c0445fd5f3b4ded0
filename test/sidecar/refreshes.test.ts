import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refreshes } from '../../sidecar/refreshes.ts'
import { inTurn } from '../../sidecar/turns.ts'
import { ManualTimers } from '../support/timers.ts'

/** Refreshes under a manual clock, each of which takes as long as is said. */
class Bench {
  readonly timers = new ManualTimers()
  readonly said: string[] = []
  /** When each began, milliseconds since the start. */
  readonly moments: number[] = []
  tookMs = 0
  error: Error | undefined
  readonly refreshes: Refreshes
  readonly #start = this.timers.now()

  constructor() {
    const wait = (ms: number) => new Promise<void>((resolve) => this.timers.after(ms, resolve))
    this.refreshes = new Refreshes(
      async () => {
        this.moments.push(this.timers.now() - this.#start)
        const { error } = this
        await wait(this.tookMs)
        if (error) throw error
      },
      { wait, say: (text) => this.said.push(text) },
    )
  }
}

test('many who ask in one moment share one refresh', async () => {
  const bench = new Bench()
  const all = Array.from({ length: 100 }, () => bench.refreshes.ask())
  await bench.timers.pass(0)
  await Promise.all(all)
  await bench.timers.pass(1000)
  assert.deepEqual(bench.moments, [0])
})

test('whoever asks while one is under way gets the next one, and there are no two within 50 ms', async () => {
  const bench = new Bench()
  bench.tookMs = 10
  const order: number[] = []
  for (let i = 0; i < 5; i++) {
    void bench.refreshes.ask().then(() => order.push(i))
    await bench.timers.pass(5)
  }
  await bench.timers.pass(1000)
  assert.deepEqual(order, [0, 1, 2, 3, 4])
  assert.deepEqual(bench.moments, [0, 60])
  await bench.timers.pass(1000)
  void bench.refreshes.ask()
  await bench.timers.pass(0)
  assert.deepEqual(bench.moments, [0, 60, 2025])
})

test('one that fails tells whoever asked, and is tried again after ever longer pauses', async () => {
  const bench = new Bench()
  bench.error = new Error('too many points')
  const asked = bench.refreshes.ask()
  await bench.timers.pass(1000)
  await assert.rejects(asked, /^Error: too many points$/)
  bench.error = undefined
  await bench.timers.pass(60_000)
  assert.deepEqual(bench.moments, [0, 250, 750, 1750])
  assert.deepEqual(
    bench.said,
    Array(3).fill('peers of groups were not changed and will be tried again: too many points'),
  )
})

test('at the end nothing is refreshed any more, and whoever waits is told so', async () => {
  const bench = new Bench()
  bench.tookMs = 10
  const first = bench.refreshes.ask()
  await bench.timers.pass(5)
  const second = bench.refreshes.ask()
  bench.refreshes.stop()
  await assert.rejects(second, /the program ends/)
  await bench.timers.pass(1000)
  await first
  await assert.rejects(bench.refreshes.ask(), /the program ends/)
  await bench.timers.pass(1000)
  assert.deepEqual(bench.moments, [0])
})

test('works are done one after the other, whether they fail or not', async () => {
  const alone = inTurn()
  const order: string[] = []
  const work = (name: string, fails = false) =>
    alone(async () => {
      order.push(`${name} begins`)
      await new Promise((resolve) => setImmediate(resolve))
      order.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const a = work('a')
  const b = work('b', true)
  const c = work('c')
  assert.equal(await a, 'a')
  await assert.rejects(b, /b/)
  assert.equal(await c, 'c')
  assert.deepEqual(order, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})
