import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ago,
  bytes,
  count,
  counted,
  duration,
  exactTime,
  percent,
  rate,
  setting,
  span,
  time,
} from '../../../dashboards/console/format.js'

/** What a function makes of values, one after the other. */
const all = <T>(make: (value: T) => string, ...values: T[]) => values.map((value) => make(value)).join(' | ')

test('what is not known is a dash and never a number, and nothing is rounded to what it is not', () => {
  assert.equal(
    all<number | undefined>(rate, undefined, 0, 0.004, 0.04, 3.21, 9.96, 41.4, 1204),
    '– | 0 | <0.01 | 0.04 | 3.2 | 10.0 | 41 | 1,204',
  )
  assert.equal(
    all<number | undefined>(percent, undefined, 0, 0.0004, 0.004, 1 / 3, 0.9996, 0.99999, 1),
    '– | 0 % | <0.1 % | 0.4 % | 33.3 % | 99.9 % | 99.9 % | 100 %',
  )
  assert.equal(
    all<number | undefined>(duration, undefined, 0, 0.001, 0.25, 1, 12.34, 123.4, 1234, 12_340, 90_000),
    '– | 0 ms | <0.01 ms | 0.25 ms | 1.0 ms | 12.3 ms | 123 ms | 1.23 s | 12 s | 1 min 30 s',
  )
})

test('spans are told in the unit that people would take', () => {
  const minute = 60_000
  assert.equal(
    all<number | undefined>(
      span,
      undefined,
      -5,
      400,
      59_400,
      59_600,
      12 * minute,
      125 * minute,
      50 * 60 * minute,
    ),
    '– | 0 s | 0 s | 59 s | 1 min 0 s | 12 min | 2 h 5 min | 2 d 2 h',
  )
  assert.equal(
    all(setting, 250, 1500, 5000, 60_000, 300_000, 90_000),
    '250 ms | 1.5 s | 5 s | 1 min | 5 min | 90 s',
  )
  assert.equal(ago(3000), '3 s ago')
  assert.equal(ago(undefined), '–')
})

test('numbers, sizes and moments', () => {
  assert.equal(all(count, 0, 1234567, 1.6), '0 | 1,234,567 | 2')
  assert.equal(counted(1, 'peer'), '1 peer')
  assert.equal(counted(1200, 'peer'), '1,200 peers')
  assert.equal(all(bytes, 0, 999, 4800, 12_600_000, 3e15), '0 B | 999 B | 4.8 kB | 12.6 MB | 3000.0 TB')
  const at = new Date(2026, 10, 30, 9, 5, 3, 7).getTime()
  assert.equal(time(at, at), '09:05:03')
  assert.equal(time(at, at + 24 * 3_600_000), '30 Nov 09:05:03')
  assert.equal(exactTime(at), '09:05:03.007')
})
