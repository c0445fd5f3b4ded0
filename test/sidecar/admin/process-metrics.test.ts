import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exposition } from '../../../sidecar/admin/exposition.ts'
import { processMetrics } from '../../../sidecar/admin/process-metrics.ts'

test('the first scrape tells all the CPU time of the process, and of the event loop only what was seen', async () => {
  const until = performance.now() + 50
  while (performance.now() < until);
  const out = new Exposition('text')
  await processMetrics(out)
  const text = out.end()
  const { user, system } = process.cpuUsage()
  const [, told] = /^process_cpu_seconds_total (\S+)$/m.exec(text) ?? []
  assert.ok(Math.abs(Number(told) - (user + system) / 1e6) < 0.05, `${told} of ${(user + system) / 1e6}`)
  assert.doesNotMatch(text, /eventloop_lag\S* (NaN|9223372036)/i)
})
