import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SpanExporter, WatchedExporter } from '../../../sidecar/telemetry/trace-export.ts'

type Result = Parameters<Parameters<SpanExporter['export']>[1]>[0]

/** An exporter that ends as it is told, and what is said of it. */
function watched() {
  const said: string[] = []
  const told: Result[] = []
  let next: Result = { code: 0 }
  const inner: SpanExporter = {
    export: (_, done) => done(next),
    shutdown: async () => {},
  }
  const exporter = new WatchedExporter(inner, (level, text) => said.push(`${level}: ${text}`))
  const send = (error?: Error) => {
    next = error ? { code: 1, error } : { code: 0 }
    // What is sent does not matter to it, but for how many there are.
    exporter.export(new Array(10), (result) => told.push(result))
  }
  return { exporter, said, told, send }
}

test('that spans are lost is said once, and once that they arrive again', () => {
  const { exporter, said, told, send } = watched()
  send()
  assert.deepEqual(said, [])
  for (let i = 0; i < 5; i++) send(new Error('connect ECONNREFUSED 127.0.0.1:4318'))
  assert.ok(exporter.failing)
  send()
  send()
  assert.ok(!exporter.failing)
  send(new Error('503'))
  assert.deepEqual(said, [
    'warn: traces: connect ECONNREFUSED 127.0.0.1:4318; spans are dropped until they can be sent',
    'notice: traces: spans arrive again, 50 or more were lost',
    'warn: traces: 503; spans are dropped until they can be sent',
  ])
  // Whoever batches them is not to say so again.
  assert.ok(told.every(({ code }) => code === 0))
})

test('an error that stands for several says what they say', () => {
  const { said, send } = watched()
  send(new AggregateError([new Error('refused ::1'), new Error('refused 127.0.0.1')]))
  assert.match(said[0]!, /^warn: traces: refused ::1, refused 127\.0\.0\.1;/)
  const other = watched()
  other.send(new AggregateError([]))
  assert.match(other.said[0]!, /^warn: traces: sending failed;/)
})
