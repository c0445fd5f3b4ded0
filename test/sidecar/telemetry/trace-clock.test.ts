import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TraceClock } from '../../../sidecar/telemetry/trace-clock.ts'

/** A clock over two that are set by hand: the system's tells whole milliseconds of `wall`. */
function clock() {
  const hands = { monotonic: 1000, wall: 1_796_000_000_000.25 }
  const made = new TraceClock(
    () => hands.monotonic,
    () => Math.floor(hands.wall),
  )
  const pass = (ms: number) => {
    hands.monotonic += ms
    hands.wall += ms
  }
  return { made, hands, pass }
}

test('wall time is told to a millisecond, and closer the longer it is followed', () => {
  const { made, hands, pass } = clock()
  let offset = made.follow()
  const error = () => hands.monotonic + offset - hands.wall
  assert.ok(Math.abs(error()) <= 1)
  for (let i = 0; i < 100; i++) {
    pass(1.37)
    offset = made.follow()
  }
  assert.ok(Math.abs(error()) < 0.05, `off by ${error()} ms`)
})

test('where the system clock is set it is followed, and spans begun before stay as long as they are', () => {
  const { made, hands, pass } = clock()
  const before = made.follow()
  hands.wall += 3_600_000
  pass(10)
  const after = made.follow()
  assert.ok(Math.abs(after - before - 3_600_000) <= 2)
  hands.wall -= 7_200_000
  assert.ok(Math.abs(made.follow() - before + 3_600_000) <= 2)
  const [seconds, nanoseconds] = TraceClock.at(1000, before)
  const [later, more] = TraceClock.at(1500.5, before)
  assert.ok(Math.abs((later - seconds) * 1000 + (more - nanoseconds) / 1e6 - 500.5) < 0.001)
})

test('a pause between the readings does not move it', () => {
  let [monotonic, wall] = [1000, 1_796_000_000_000.25]
  let pause = 0
  const made = new TraceClock(
    () => monotonic,
    () => {
      const told = Math.floor(wall)
      monotonic += pause
      wall += pause
      return told
    },
  )
  const before = made.follow()
  pause = 250
  assert.equal(made.follow(), before)
})

test('moments are seconds and nanoseconds', () => {
  assert.deepEqual(TraceClock.at(500.25, 1_796_000_000_000), [1_796_000_000, 500_250_000])
  assert.deepEqual(TraceClock.at(999.75, 1_796_000_000_000), [1_796_000_000, 999_750_000])
})
