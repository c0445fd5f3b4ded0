import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countLines, LogLosses } from '../../../sidecar/telemetry/log-losses.ts'

test('that lines are lost is said once, and with their number once it is over', () => {
  const told: string[] = []
  const losses = new LogLosses('/log', (text) => told.push(text))
  losses.over()
  losses.add(2, 'no room')
  losses.add(3, 'no room')
  losses.over()
  losses.over()
  assert.deepEqual(told, ['no room, lines are dropped', '"/log" is written to again, 5 lines were dropped'])
  // A file that comes and goes is not told of each time.
  losses.add(1, 'no room')
  losses.over()
  assert.equal(told.length, 2)
  assert.equal(losses.count, 6)
})

test('lines are counted by their ends', () => {
  assert.equal(countLines(Buffer.from('a\n\nb')), 2)
})
