import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { metricsPage } from '../../scripts/metrics.ts'

test('the page of metrics is current: run "npm run docs"', () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  assert.equal(page, metricsPage())
})
