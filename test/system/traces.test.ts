import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, backend } from '../support/backend.ts'
import { ask, dial, exchange } from '../support/client.ts'
import { Receiver } from '../support/otlp.ts'
import type { ReceivedSpan } from '../support/otlp-message.ts'
import { type SidecarOptions, start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

const server = ({ kind }: ReceivedSpan) => kind === 2
const client = ({ kind }: ReceivedSpan) => kind === 3
const named = (name: string) => (span: ReceivedSpan) => span.name === name
const inOrder = (spans: readonly ReceivedSpan[]) => [...spans].sort((a, b) => a.start - b.start)

/** A field of the requests that a peer got, in order. */
const told = (peer: Backend, name = 'traceparent') => peer.requests.map(({ head }) => head.header(name))

/** The environment of a program whose spans go there, soon. */
function traced(receiver: Receiver, env: Readonly<Record<string, string>> = {}): SidecarOptions {
  return { env: { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...env } }
}

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'

for (const [protocol, kind] of [
  ['http/protobuf', 'http'],
  ['http/json', 'http'],
  ['grpc', 'grpc'],
] as const) {
  test(`a request is one span and each of its attempts another, over ${protocol}`, async () => {
    await using receiver = await new Receiver(kind).listen()
    await using sick = await backend({ status: 503 })
    await using torn = await backend((exchange) => exchange.reset())
    await using fine = await backend({ body: 'here' })
    await using sidecar = await start(
      `http {
        upstream shop { server ${sick.address}; server ${torn.address}; server ${fine.address} track=canary; }
        server {
          listen 127.0.0.1:PORT;
          location /cart/ { proxy_pass http://shop; proxy_next_upstream error timeout http_503; }
        }
      }`,
      traced(receiver, { OTEL_EXPORTER_OTLP_PROTOCOL: protocol }),
    )
    const reply = await ask(sidecar.port, '/cart/7?page=2')
    assert.equal(reply.status, 200)
    const spans = await receiver.received(4)
    const [request] = spans.filter(server)
    const attempts = inOrder(spans.filter(client))
    assert.deepEqual([spans.length, attempts.length, request?.name], [4, 3, 'GET /cart/'])
    assert.deepEqual(
      attempts.map(({ attributes, status, name }) => [
        name,
        attributes['http.request.resend_count'],
        attributes['http.response.status_code'],
        attributes['error.type'],
        status,
        attributes['evenkeel.ending'],
        attributes['evenkeel.reason'],
        attributes['evenkeel.track'],
      ]),
      [
        ['GET', undefined, 503, '503', 2, 'http', 'http_503', 'stable'],
        ['GET', 1, undefined, 'reset', 2, 'error', 'reset', 'stable'],
        ['GET', 2, 200, undefined, 0, 'ok', undefined, 'canary'],
      ],
    )
    const peers = [sick, torn, fine]
    assert.deepEqual(
      attempts.map(({ attributes }) => attributes['evenkeel.peer']),
      peers.map(({ address }) => address),
    )
    // Every peer was told the same trace, and the span of its own attempt as the parent.
    assert.deepEqual(
      peers.map((peer) => told(peer)),
      attempts.map(({ spanId }) => [`00-${request?.traceId}-${spanId}-01`]),
    )
    for (const attempt of attempts) {
      assert.equal(attempt.traceId, request?.traceId)
      assert.equal(attempt.parentSpanId, request?.spanId)
      assert.ok(
        attempt.start >= request!.start && attempt.end < request!.end + 5 && attempt.end > attempt.start,
      )
    }
    assert.equal(request?.parentSpanId, '')
    assert.equal(request?.status, 0)
    assert.ok(Math.abs(request!.end - Date.now()) < 60_000)
    assert.equal(request?.resource['service.name'], 'evenkeel')
    assert.match(request.scope, /^evenkeel \d/)
    // The times that were measured lead to the trace, and so does the record.
    const open = await fetch(`${sidecar.admin}/metrics`, {
      headers: { accept: 'application/openmetrics-text' },
    })
    const exemplars = (await open.text()).split('\n').filter((line) => line.includes(' # {'))
    const of = (metric: string) => exemplars.filter((line) => line.startsWith(metric))
    assert.equal(of('evenkeel_peer_header_seconds_bucket{').length, 2)
    assert.equal(of('evenkeel_upstream_request_seconds_bucket{').length, 1)
    for (const line of exemplars) assert.ok(line.includes(`# {trace_id="${request.traceId}",span_id="`), line)
    const [, record = ''] = await sidecar.logged(/^(\{.*"path":"\/cart\/7.*\})$/m)
    // A record of our own format.
    const { trace_id, span_id, trace_flags } = JSON.parse(record) as Record<string, unknown>
    assert.deepEqual([trace_id, span_id, trace_flags], [request.traceId, request.spanId, '01'])
    // Nothing goes anywhere but where traces go.
    const path =
      kind === 'grpc' ? '/opentelemetry.proto.collector.trace.v1.TraceService/Export' : '/v1/traces'
    assert.ok(receiver.deliveries.every((delivery) => delivery.path === path))
  })
}

test('a context that comes with a request is gone on with, and one that is none is not', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend()
  await using sidecar = await start(
    `http {
      log_format ids "$otel_trace_id $otel_span_id $otel_parent_id $otel_parent_sampled";
      access_log /dev/stdout ids;
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://${peer.address}; }
        location /own/ { proxy_pass http://${peer.address}; proxy_set_header traceparent $http_traceparent; }
        location /without/ { proxy_pass http://${peer.address}; proxy_set_header traceparent ""; }
      }
    }`,
    traced(receiver, {
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
      OTEL_SERVICE_NAME: 'edge',
    }),
  )
  const parent = (flags: string) => `00-${traceId}-${parentId}-${flags}`
  const asked = async (target: string, headers: Readonly<Record<string, string>> = {}) => {
    await ask(sidecar.port, target, { headers })
    return peer.requests.at(-1)!.head
  }
  const kept = await asked('/kept', { traceparent: parent('01'), tracestate: 'a=1 ,b=2', baggage: 'user=7' })
  const [span] = await receiver.received(1, server)
  assert.deepEqual([span?.traceId, span?.parentSpanId, span?.traceState], [traceId, parentId, 'a=1,b=2'])
  assert.equal(span?.resource['service.name'], 'edge')
  const [attempt] = await receiver.received(1, client)
  assert.deepEqual(kept.all('traceparent'), [`00-${traceId}-${attempt?.spanId}-01`])
  assert.deepEqual([kept.all('tracestate'), kept.all('baggage')], [['a=1,b=2'], ['user=7']])
  await sidecar.logged(new RegExp(`^${traceId} ${span?.spanId} ${parentId} 1$`, 'm'))

  // Not kept: the client said so, or its context is none and the ratio of new traces is 0.
  const dropped = await asked('/', { traceparent: parent('00') })
  assert.match(
    dropped.header('traceparent') ?? '',
    new RegExp(`^00-${traceId}-(?!${parentId})[0-9a-f]{16}-00$`),
  )
  await sidecar.logged(new RegExp(`^${traceId} [0-9a-f]{16} ${parentId} 0$`, 'm'))
  for (const bad of [`ff${parent('01').slice(2)}`, parent('01').toUpperCase(), `${parent('01')}-x`, 'x']) {
    const head = await asked('/', { traceparent: bad, tracestate: 'a=1' })
    assert.match(
      head.header('traceparent') ?? '',
      new RegExp(`^00-(?!${traceId})[0-9a-f]{32}-[0-9a-f]{16}-00$`),
    )
    assert.equal(head.header('tracestate'), undefined)
  }
  const twice = `GET / HTTP/1.1\r\nHost: a\r\ntraceparent: ${parent('01')}\r\nTraceparent: ${parent('01')}\r\nConnection: close\r\n\r\n`
  await exchange(sidecar.port, twice)
  const [only, ...more] = peer.requests.at(-1)!.head.all('traceparent')
  assert.match(only ?? '', new RegExp(`^00-(?!${traceId})[0-9a-f]{32}-[0-9a-f]{16}-00$`))
  assert.deepEqual(more, [])

  // What the configuration says of the field is what is sent.
  const own = await asked('/own/', { traceparent: parent('00'), tracestate: 'a=1' })
  assert.deepEqual([own.all('traceparent'), own.all('tracestate')], [[parent('00')], ['a=1']])
  assert.deepEqual((await asked('/without/', { traceparent: parent('00') })).all('traceparent'), [])
  assert.equal(receiver.spans.length, 2)
})

test('whatever asks for a request on a data port has a span, and nothing else has one', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend(async (exchange) => {
    if (exchange.target === '/gone') await exchange.gone
    else if (exchange.target === '/socket') {
      await exchange.send('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n')
      await sleep(50)
      exchange.end()
    } else await exchange.reply({ body: 'x' })
  })
  await using dead = await backend()
  await dead.stop()
  await using sidecar = await start(
    `http {
      upstream up { zone up 64k; server ${peer.address}; }
      upstream gone { server ${dead.address}; server ${dead.address} down; }
      server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://up; upstream_probe alive uri=/alive interval=20ms; }
        location = /text { return 200 "text"; }
        location /status/ { api /status/; }
        location /dead/ { proxy_pass http://gone; error_page 502 = @spare; proxy_next_upstream off; }
        location @spare { proxy_pass http://up; }
        location ~ \\.php$ { return 403; }
      }
    }`,
    traced(receiver),
  )
  await ask(sidecar.port, '/text')
  await ask(sidecar.port, '/status/angie')
  await ask(sidecar.port, '/x.php')
  assert.equal((await ask(sidecar.port, '/dead/1')).status, 200)
  await ask(sidecar.port, '/a', { method: 'PROPFIND' })
  assert.match(
    await exchange(sidecar.port, 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'),
    /^HTTP\/1\.1 400 /,
  )
  assert.match(await exchange(sidecar.port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /)
  const upgrade = 'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
  assert.match(await exchange(sidecar.port, upgrade), /^HTTP\/1\.1 101 /)
  const leaver = await dial(sidecar.port)
  await leaver.write('GET /gone HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => peer.targets.includes('/gone'))
  leaver.socket.destroy()
  await fetch(`${sidecar.admin}/status/angie`)
  await fetch(`${sidecar.admin}/metrics`)
  await until(() => peer.targets.filter((target) => target === '/alive').length > 3)
  const spans = await receiver.received(9, server)
  assert.deepEqual(
    spans.map(({ name, attributes }) => `${name} ${attributes['http.response.status_code']}`).sort(),
    [
      'GET / 101',
      'GET / 499',
      'GET /dead/ 200',
      'GET /status/ 200',
      'GET 400',
      'GET = /text 200',
      'GET ~ \\.php$ 403',
      'HTTP / 200',
      'HTTP 400',
    ].sort(),
  )
  assert.equal(spans.find(named('HTTP /'))?.attributes['http.request.method_original'], 'PROPFIND')
  // Two attempts of the one that led to the error page, none of them a resending of the other; one of the others.
  const attempts = inOrder(await receiver.received(5, client))
  const dying = spans.find(named('GET /dead/'))
  const ofDying = attempts.filter(({ traceId }) => traceId === dying?.traceId)
  assert.deepEqual(
    ofDying.map(({ attributes }) => [attributes['error.type'], attributes['http.request.resend_count']]),
    [
      ['refused', undefined],
      [undefined, undefined],
    ],
  )
  assert.equal(attempts.length, 5)
  // A tunnel is as long as it is open.
  const tunnel = attempts.find(({ attributes }) => attributes['http.response.status_code'] === 101)!
  assert.ok(tunnel.end - tunnel.start >= 50)
  const left = attempts.find(({ attributes }) => attributes['evenkeel.reason'] === 'client_abort')
  assert.deepEqual([left?.attributes['evenkeel.ending'], left?.status], ['aborted', 0])
})

test('a kept connection that the peer has closed is resent on a new one, in a span of its own', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend(async (exchange) => {
    if (exchange.target === '/stale' && exchange.connection === 1) exchange.socket.destroy()
    else await exchange.reply({ body: 'x' })
  })
  await using sidecar = await start(
    `http { server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } } }`,
    traced(receiver),
  )
  await ask(sidecar.port, '/warm')
  assert.equal((await ask(sidecar.port, '/stale')).status, 200)
  const attempts = inOrder(await receiver.received(3, client)).slice(1)
  assert.deepEqual(
    attempts.map(({ attributes, status }) => [
      attributes['error.type'],
      status,
      attributes['http.request.resend_count'],
    ]),
    [
      ['stale', 2, undefined],
      [undefined, 0, 1],
    ],
  )
})

test('a request without a peer that could be asked has no span of an attempt, and says why', async () => {
  await using receiver = await new Receiver('http').listen()
  await using sidecar = await start(
    `http {
      upstream none { server 127.0.0.1:9 down; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://none; } }
    }`,
    traced(receiver, { OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', OTEL_EXPORTER_OTLP_HEADERS: 'x-team=blue' }),
  )
  assert.equal((await ask(sidecar.port)).status, 502)
  const [span] = await receiver.received(1)
  assert.deepEqual(
    [span?.attributes['evenkeel.denial'], span?.attributes['error.type'], span?.status, span?.name],
    ['no_live', '502', 2, 'GET /'],
  )
  assert.equal(receiver.spans.filter(client).length, 0)
  const [{ headers }] = receiver.deliveries as [Receiver['deliveries'][number]]
  assert.deepEqual([headers['content-encoding'], headers['x-team']], ['gzip', 'blue'])
})

test('other propagators than the W3C’s are told and heard where they are asked for', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await backend()
  await using sidecar = await start(
    `http { server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } } }`,
    traced(receiver, { OTEL_PROPAGATORS: 'tracecontext,b3' }),
  )
  await ask(sidecar.port, '/b3', {
    headers: { b3: `${traceId}-${parentId}-1`, 'x-b3-traceid': 'f'.repeat(32) },
  })
  const [span] = await receiver.received(1, server)
  assert.deepEqual([span?.traceId, span?.parentSpanId], [traceId, parentId])
  const [attempt] = await receiver.received(1, client)
  assert.deepEqual(told(peer, 'b3'), [`${traceId}-${attempt?.spanId}-1`])
  assert.deepEqual(told(peer), [`00-${traceId}-${attempt?.spanId}-01`])
  assert.deepEqual(told(peer, 'x-b3-traceid'), [undefined])
  // Strict all the same: two of them are none.
  const bad = `00-${traceId}-${parentId}-01`
  await exchange(
    sidecar.port,
    `GET / HTTP/1.1\r\nHost: a\r\ntraceparent: ${bad}\r\ntraceparent: ${bad}\r\nConnection: close\r\n\r\n`,
  )
  const spans = await receiver.received(2, server)
  assert.notEqual(spans[1]?.traceId, traceId)
  assert.equal(spans[1]?.parentSpanId, '')
})
