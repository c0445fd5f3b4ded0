import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../support/backend.ts'
import { ask } from '../support/client.ts'
import { Receiver } from '../support/otlp.ts'
import { prometheus } from '../support/prometheus.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

test('Prometheus leads from a measured time to the spans of its request', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend({ after: 30 })
  await using sidecar = await start(
    `http { server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } } }`,
    { env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '50' } },
  )
  await ask(sidecar.port)
  const spans = await receiver.received(2)
  await using server = await prometheus({
    targets: [{ job: 'evenkeel', address: new URL(sidecar.admin).host }],
    scrapeMs: 200,
  })
  const found = async (metric: string) => {
    const selector = `${metric}_bucket`
    await until(async () => (await server.exemplars(selector)).length > 0, 15_000)
    const [one, ...more] = await server.exemplars(selector)
    assert.deepEqual(more, [])
    return one!
  }
  const [client, request] = [3, 2].map((kind) => spans.find((span) => span.kind === kind)!)
  for (const [metric, span] of [
    ['evenkeel_peer_header_seconds', client],
    ['evenkeel_upstream_request_seconds', request],
  ] as const) {
    const { labels, value, at, series } = await found(metric)
    assert.deepEqual(labels, { trace_id: span?.traceId, span_id: span?.spanId })
    assert.ok(value >= 0.025 && value <= (span!.end - span!.start) / 1000 + 0.001, `${value} s`)
    assert.ok(Math.abs(at - span!.end / 1000) < 1)
    assert.ok(value <= Number(series['le']))
  }
})
