import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatSize, formatTime, secondsMs, sizeBytes, timeMs } from '../../../sidecar/config/units.ts'
import { fc } from '../../support/property.ts'

test('reads times with units from the greatest to the least, and bare seconds', () => {
  const times = {
    '10': 10_000,
    '10s': 10_000,
    '500ms': 500,
    '1m30s': 90_000,
    '1m30': 90_000,
    '1h 30m': 5_400_000,
  }
  for (const [text, ms] of Object.entries(times)) assert.equal(timeMs(text), ms, text)
  assert.equal(timeMs('1d'), 86_400_000)
  assert.equal(timeMs('1M'), 30 * 86_400_000)
})

test('refuses what is no time', () => {
  for (const text of ['', 's', '10s5', '5s1m', '1.5s', '-1', '1sec', '1s1s', '5 s', '999y', '1m m']) {
    assert.equal(timeMs(text), undefined, text)
  }
})

test('does not take long over a long text', () => {
  const started = performance.now()
  assert.equal(timeMs(`${'1'.repeat(100_000)}!`), undefined)
  assert.ok(performance.now() - started < 500)
})

test('refuses milliseconds where whole seconds are kept', () => {
  assert.equal(secondsMs('2s'), 2000)
  assert.equal(secondsMs('2000ms'), undefined)
})

test('reads sizes in bytes, k, m and g', () => {
  const sizes = { '0': 0, '512': 512, '64k': 65_536, '1M': 1_048_576, '2g': 2_147_483_648 }
  for (const [text, bytes] of Object.entries(sizes)) assert.equal(sizeBytes(text), bytes, text)
  for (const text of ['', 'k', '1kb', '-1', '1.5m', '99999999999999999g'])
    assert.equal(sizeBytes(text), undefined, text)
})

test('writes times and sizes so that they read back', () => {
  fc.assert(fc.property(fc.nat(), (ms) => timeMs(formatTime(ms)) === ms))
  fc.assert(fc.property(fc.nat(), (bytes) => sizeBytes(formatSize(bytes)) === bytes))
  assert.deepEqual(
    [formatTime(0), formatTime(60_000), formatTime(3_600_000), formatTime(1500)],
    ['0s', '60s', '1h', '1500ms'],
  )
  assert.deepEqual(
    [formatSize(0), formatSize(1024), formatSize(1_048_576), formatSize(1000)],
    ['0', '1k', '1m', '1000'],
  )
})
