import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { backend } from '../support/backend.ts'
import { ask } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { Receiver } from '../support/otlp.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

const config = (address: string, more = '') =>
  `${more} http { server { listen 127.0.0.1:PORT; keepalive_requests 1000000; location / { proxy_pass http://${address}; } } }`

/** Asks so many times, a few at once. @returns the statuses that came */
async function asking(port: number, count: number): Promise<Set<number>> {
  const statuses = new Set<number>()
  let left = count
  const one = async () => {
    while (left-- > 0) statuses.add((await ask(port)).status)
  }
  await Promise.all(Array.from({ length: 8 }, one))
  return statuses
}

const lines = (sidecar: Sidecar) => sidecar.stderr.split('\n').filter((line) => line.includes('traces:'))

/** Lets it end as a supervisor does. @returns how long that took, milliseconds */
async function drained(sidecar: Sidecar): Promise<number> {
  const began = performance.now()
  sidecar.signal('SIGTERM')
  assert.equal((await sidecar.exited).code, 0)
  return performance.now() - began
}

for (const [protocol, kind] of [
  ['http/protobuf', 'http'],
  ['grpc', 'grpc'],
] as const) {
  test(`where nobody receives spans, requests go on, that is said once, and again when somebody does: ${protocol}`, async () => {
    const port = await freePort()
    await using peer = await backend()
    // Each thread would say it.
    await using sidecar = await start(config(peer.address, 'worker_processes 1;'), {
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_TIMEOUT: '300',
        OTEL_BSP_SCHEDULE_DELAY: '30',
        OTEL_BSP_MAX_QUEUE_SIZE: '64',
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '16',
      },
    })
    assert.deepEqual(await asking(sidecar.port, 600), new Set([200]))
    await sidecar.logged(/\[warn\] .*traces: .*ECONNREFUSED.*; spans are dropped until they can be sent/)
    assert.deepEqual(await asking(sidecar.port, 600), new Set([200]))
    assert.equal(lines(sidecar).length, 1)
    await using receiver = await new Receiver(kind).listen(port)
    await until(async () => {
      await ask(sidecar.port)
      return receiver.spans.length > 0
    }, 10_000)
    await sidecar.logged(/\[notice\] .*traces: spans arrive again, \d+ or more were lost/)
    assert.equal(lines(sidecar).length, 2)
  })
}

test('a receiver that never answers does not hold up requests, nor the end', async () => {
  await using receiver = await new Receiver('http').listen()
  receiver.status = 0
  await using peer = await backend()
  await using sidecar = await start(config(peer.address), {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '30' },
  })
  assert.deepEqual(await asking(sidecar.port, 500), new Set([200]))
  assert.deepEqual(lines(sidecar), [])
  // OTLP itself would wait for ten seconds.
  assert.ok((await drained(sidecar)) < 5000)
})

test('every thread that serves sends spans, as one instance, and the last ones at the end', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend()
  await using sidecar = await start(config(peer.address, 'worker_processes 3;'), {
    env: {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/collect`,
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.namespace=shop',
      OTEL_LOG_LEVEL: 'info',
      // Nothing goes before the end.
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    },
  })
  // Connections spread over threads by the kernel's choice.
  await asking(sidecar.port, 120)
  assert.equal(receiver.spans.length, 0)
  await drained(sidecar)
  assert.equal(receiver.spans.length, 240)
  assert.ok(receiver.deliveries.length >= 2, 'by several threads')
  assert.ok(receiver.deliveries.every(({ path }) => path === '/collect'))
  assert.equal(new Set(receiver.spans.map(({ resource }) => resource['service.instance.id'])).size, 1)
  assert.equal(new Set(receiver.spans.map(({ spanId }) => spanId)).size, 240)
  const [{ resource }] = receiver.spans as [Receiver['spans'][number]]
  assert.equal(resource['process.command_args'], undefined)
  assert.doesNotMatch(sidecar.stderr, /logger|OTEL/i)
  assert.deepEqual(
    ['service.name', 'service.namespace', 'deployment.environment.name'].map((name) => resource[name]),
    ['evenkeel', 'shop', 'test'],
  )
})

test('an endpoint that is none is said, and requests go on', async () => {
  await using peer = await backend()
  await using sidecar = await start(config(peer.address), {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'not a url', OTEL_SERVICE_NAME: 'x' },
  })
  assert.equal((await ask(sidecar.port)).status, 200)
  await sidecar.logged(/\[warn\] .*traces: .*not a url/)
})

test('an exporter that nobody knows is said, and all is as without traces', async () => {
  await using peer = await backend()
  await using sidecar = await start(config(peer.address), { env: { OTEL_TRACES_EXPORTER: 'pigeon' } })
  await ask(sidecar.port, '/', { headers: { traceparent: 'as it came' } })
  assert.equal(peer.requests[0]?.head.header('traceparent'), 'as it came')
  assert.match(sidecar.stderr, /\[warn\] .*traces: .*pigeon/)
  assert.match(sidecar.stderr, /\[error\] .*traces: .*; there are none/)
})

/**
 * Starts a program that notes the files of OpenTelemetry that it loads, but for those of its API, which prom-client
 * loads. @returns it, and how many it has noted
 */
async function noting(context: TestContext, address: string, env: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-loaded-'))
  context.after(() => rm(folder, { recursive: true }))
  const [notes, hook] = [join(folder, 'notes'), join(folder, 'hook.mjs')]
  await writeFile(notes, '')
  await writeFile(
    hook,
    `import { appendFileSync } from 'node:fs'
     import { registerHooks } from 'node:module'
     registerHooks({ load(url, context, next) {
       if (/@opentelemetry\\/(?!api\\/)/.test(url)) appendFileSync(${JSON.stringify(notes)}, url + '\\n')
       return next(url, context)
     } })`,
  )
  const sidecar = await start(config(address, 'worker_processes 2;'), {
    env: { NODE_OPTIONS: `--import ${hook}`, ...env },
  })
  return { sidecar, loaded: async () => (await readFile(notes, 'utf8')).split('\n').length - 1 }
}

test('without its variables OpenTelemetry is not loaded, and contexts pass as they came', async (context) => {
  await using peer = await backend()
  const off = await noting(context, peer.address, { OTEL_METRICS_EXPORTER: 'otlp', OTEL_LOG_LEVEL: 'debug' })
  await using sidecar = off.sidecar
  const headers = { traceparent: 'not one at all', tracestate: 'A=,', 'X-Trace': '1' }
  await ask(sidecar.port, '/', { headers })
  const { head } = peer.requests[0]!
  assert.deepEqual(
    Object.keys(headers).map((name) => head.all(name)),
    Object.values(headers).map((value) => [value]),
  )
  assert.equal(await off.loaded(), 0)
  const [, record = ''] = await sidecar.logged(/^(\{.*\})$/m)
  assert.ok(!record.includes('trace_id'))
  const disabled = await noting(context, peer.address, { OTEL_SERVICE_NAME: 'x', OTEL_SDK_DISABLED: 'true' })
  await using second = disabled.sidecar
  assert.equal(await disabled.loaded(), 0)
  assert.ok(second.running)
  // That the noting notes.
  const on = await noting(context, peer.address, { OTEL_TRACES_EXPORTER: 'console' })
  await using third = on.sidecar
  assert.ok((await on.loaded()) > 10)
  assert.ok(third.running)
})
