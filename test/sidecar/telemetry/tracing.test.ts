import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tracesWanted } from '../../../sidecar/telemetry/tracing.ts'

test('traces are wanted where a variable says where they go, which, or whose they are', () => {
  const names = [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_TRACES_EXPORTER',
    'OTEL_TRACES_SAMPLER',
    'OTEL_SERVICE_NAME',
    'OTEL_RESOURCE_ATTRIBUTES',
    'OTEL_PROPAGATORS',
    'OTEL_BSP_SCHEDULE_DELAY',
  ]
  for (const name of names) assert.ok(tracesWanted({ [name]: 'x' }), name)
})

test('nothing set, set to nothing, or of no concern to traces: off', () => {
  assert.equal(tracesWanted({}), false)
  assert.equal(tracesWanted({ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_SERVICE_NAME: ' ' }), false)
  const others = [
    'OTEL_METRICS_EXPORTER',
    'OTEL_LOGS_EXPORTER',
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT',
    'OTEL_EXPORTER_PROMETHEUS_PORT',
    'OTEL_LOG_LEVEL',
    'OTEL_SDK_DISABLED',
    'OTEL_NODE_RESOURCE_DETECTORS',
    'OTEL_PYTHON_LOG_CORRELATION',
    'MY_OTEL_SERVICE_NAME',
  ]
  for (const name of others) assert.equal(tracesWanted({ [name]: 'x' }), false, name)
})

test('the SDK switched off, or no exporter, is off whatever else is set', () => {
  const set = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }
  assert.equal(tracesWanted({ ...set, OTEL_SDK_DISABLED: 'TRUE' }), false)
  assert.equal(tracesWanted({ ...set, OTEL_SDK_DISABLED: 'yes' }), true)
  assert.equal(tracesWanted({ ...set, OTEL_TRACES_EXPORTER: ' None ' }), false)
})
