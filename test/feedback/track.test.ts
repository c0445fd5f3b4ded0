import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exemplarSize, readExemplar, writeExemplar } from '../../feedback/exemplar.ts'
import { Reservoir, reservoirMinutes, reservoirSize } from '../../feedback/reservoir.ts'
import { Track, tracksOf } from '../../feedback/track.ts'
import { seeded } from '../support/dice.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = '00f067aa0ba902b7'

test('an exemplar keeps every digit of its ids, zeros in front too', () => {
  const numbers = new Float64Array(2 * exemplarSize)
  const exemplar = { traceId: `00${traceId.slice(2)}`, spanId, ms: 12.5, wallAt: 1_790_000_000_123 }
  writeExemplar(numbers, exemplarSize, exemplar)
  assert.deepEqual(readExemplar(numbers, exemplarSize), exemplar)
  assert.equal(readExemplar(numbers, 0), undefined)
})

test('a track counts what clients got, and a tunnel has no time', () => {
  const track = new Track('canary')
  track.answered(200, 3, { traceId, spanId, ms: 3, wallAt: 5 })
  track.answered(499, 40, undefined)
  track.answered(101, undefined, undefined)
  track.answered(0, 1, undefined)
  assert.deepEqual(
    [...track.responses],
    [
      [101, 1],
      [200, 1],
      [499, 1],
      [0, 1],
    ],
  )
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((bucket) => track.duration(bucket)),
    [1, 0, 1, 0, 0, 1],
  )
  assert.equal(track.get('requestMs'), 44)
  assert.equal(track.exemplar(2)?.traceId, traceId)
  assert.equal(track.exemplar(5), undefined)
})

test('another thread counts in the same track', () => {
  const track = new Track('stable')
  track.sample()
  const other = new Track('stable', track.share())
  other.answered(503, 2, undefined)
  other.add('split', 1)
  other.reservoir!.add(true, undefined, 60_000, Math.random)
  assert.deepEqual([...track.responses], [[503, 1]])
  assert.equal(track.get('split'), 1)
  assert.equal(track.reservoir!.minutes(1, 1)[0]!.errors, 1)
})

test('samples are kept as soon as there are two tracks to compare, and what a track has counted stays', () => {
  const alone = tracksOf(['stable', 'stable'])
  const stable = alone.get('stable')!
  assert.equal(stable.reservoir, undefined)
  const both = tracksOf(['stable', 'canary'], alone)
  assert.equal(both.get('stable'), stable)
  assert.ok([...both.values()].every(({ reservoir }) => reservoir !== undefined))
})

test('a minute keeps a sample of its times in which each is as likely', () => {
  const random = seeded(7)
  const reservoir = new Reservoir()
  const count = 20 * reservoirSize
  for (let i = 0; i < count; i++) reservoir.add(false, i, 60_000, random)
  const [minute] = reservoir.minutes(0, 1)
  assert.equal(minute!.timed, count)
  assert.equal(minute!.times.length, reservoirSize)
  const mean = minute!.times.reduce((sum, ms) => sum + ms, 0) / reservoirSize
  // Three deviations of the mean of a thousand uniform draws.
  assert.ok(Math.abs(mean / count - 0.5) < (3 * 0.289) / Math.sqrt(reservoirSize), `${mean / count}`)
})

test('a minute of an hour ago makes room for the one of now', () => {
  const reservoir = new Reservoir()
  for (let minute = 0; minute < reservoirMinutes + 1; minute++)
    reservoir.add(minute % 2 === 0, 1, 60_000 * minute, Math.random)
  const found = reservoir.minutes(0, reservoirMinutes)
  assert.deepEqual(
    found.map(({ minute }) => minute),
    Array.from({ length: reservoirMinutes }, (_, i) => i + 1),
  )
  assert.deepEqual(
    reservoir.minutes(reservoirMinutes, reservoirMinutes).map(({ attempts }) => attempts),
    [1],
  )
})
