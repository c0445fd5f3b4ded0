import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { traceByEnvironment } from '../../../sidecar/telemetry/trace-sdk.ts'
import { callFor } from '../../support/call.ts'
import { Receiver } from '../../support/otlp.ts'

setFlagsFromString('--expose-gc')
const gc: () => void = runInNewContext('gc')

function heap(): number {
  gc()
  return process.memoryUsage().heapUsed
}

test('spans that nobody receives are dropped, and what waits is cut to a length', async () => {
  await using receiver = await new Receiver('http').listen()
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url
  process.env['OTEL_EXPORTER_OTLP_TIMEOUT'] = '200'
  process.env['OTEL_BSP_SCHEDULE_DELAY'] = '10'
  const tracing = await traceByEnvironment(process.env, { version: '1', startedAt: Date.now() })
  assert.ok(tracing)
  const traced = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const call = callFor(`/?${i}`, { rawHeaders: ['User-Agent', `${i}`.padEnd(3000, '.')], location: '/' })
      call.startedAt = call.endedAt = performance.now()
      call.status = 200
      tracing.end(call)
      // What sends them gets its turn.
      if (i % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 15))
    }
  }
  await traced(1)
  const [span] = await receiver.received(1)
  assert.equal(String(span?.attributes['user_agent.original']).length, 2048)
  receiver.status = 0
  await traced(5000)
  const before = heap()
  await traced(20_000)
  const grown = heap() - before
  assert.ok(grown < 4 * 2 ** 20, `${grown} bytes more`)
  const began = performance.now()
  await tracing.stop(50)
  assert.ok(performance.now() - began < 1000)
})
