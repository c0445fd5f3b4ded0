import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { Call } from '../../../feedback/call.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import type { SentRequest } from '../../../sidecar/telemetry/tracing.ts'
import { callFor } from '../../support/call.ts'
import { group } from '../../support/peers.ts'
import { endedSpans, keepTraces, spansHere } from '../../support/spans.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const context = ['traceparent', `00-${traceId}-${parentId}-01`, 'tracestate', 'a=1,b=2']

const shop = group([{ track: 'canary' }, { server: 'api.example.com:8002' }, {}], { name: 'shop' })
const spans = spansHere()

function request(target = '/cart/7', fields: Partial<Call> = {}): Call {
  return callFor(target, {
    startedAt: performance.now(),
    rawHeaders: ['Host', 'shop.example'],
    remoteAddr: '192.0.2.7',
    realipRemoteAddr: '127.0.0.1',
    realipRemotePort: '4711',
    location: '/cart/',
    completed: true,
    ...fields,
  })
}

/** Lets a request end. @returns its span */
function finish(call: Call, status = 200) {
  call.status = status
  call.endedAt = call.startedAt + 20
  spans.end(call)
  return endedSpans().at(-1)!
}

const get: SentRequest = { method: 'GET', target: '/cart/7', http2: false, own: new Set() }

/** Sends an attempt. @returns it, and what the peer is told */
function send(call: Call, peer = 0, sent = get) {
  const attempt = new Attempt(shop, shop.peers[peer], call.startedAt + 1, 'round_robin')
  call.upstream = 'shop'
  call.attempts.push(attempt)
  return { attempt, lines: spans.attempt(call, attempt, sent) }
}

/** Lets an attempt end. @returns its span */
function settle(call: Call, attempt: Attempt, outcome: Partial<Attempt>) {
  Object.assign(attempt, { responseMs: 5, ...outcome })
  spans.ended(call, attempt)
  return endedSpans().at(-1)!
}

test('a span of a request says what was asked and what the client got', () => {
  const call = request('/cart/7?page=2', {
    rawHeaders: ['Host', 'Shop.Example:81', 'User-Agent', 'tester/1'],
    httpVersion: '1.0',
  })
  spans.begin(call)
  const span = finish(call, 404)
  assert.equal(span.name, 'GET /cart/')
  assert.equal(span.kind, SpanKind.SERVER)
  assert.equal(span.status.code, SpanStatusCode.UNSET)
  assert.deepEqual(span.attributes, {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'url.path': '/cart/7',
    'url.query': 'page=2',
    'server.address': 'shop.example',
    'server.port': 81,
    'network.protocol.version': '1.0',
    'client.address': '192.0.2.7',
    'user_agent.original': 'tester/1',
    'network.peer.address': '127.0.0.1',
    'network.peer.port': 4711,
    'http.route': '/cart/',
    'http.response.status_code': 404,
  })
})

test('a span of an attempt says where it went and how it ended', () => {
  const call = request()
  spans.begin(call)
  const { attempt } = send(call, 1, { ...get, method: 'POST', target: '/v1?a=b' })
  const span = settle(call, attempt, { ending: 'ok', peerStatus: 204 })
  assert.equal(span.name, 'POST')
  assert.equal(span.kind, SpanKind.CLIENT)
  assert.deepEqual(span.attributes, {
    'http.request.method': 'POST',
    'server.address': 'api.example.com',
    'server.port': 8002,
    'network.peer.address': '127.0.0.1',
    'network.peer.port': 8002,
    'url.full': 'http://api.example.com:8002/v1?a=b',
    'network.protocol.version': '1.1',
    'evenkeel.track': 'stable',
    'evenkeel.upstream': 'shop',
    'evenkeel.peer': 'b',
    'evenkeel.pick': 'round_robin',
    'http.response.status_code': 204,
    'evenkeel.ending': 'ok',
  })
  assert.equal(span.parentSpanContext?.spanId, call.spanId)
  assert.deepEqual([attempt.traceId, attempt.spanId], [call.traceId, span.spanContext().spanId])
  finish(call)
})

test('a span of a call of gRPC says its status, and is an error where the peer is to blame', () => {
  const call = request()
  spans.begin(call)
  const told = (outcome: Partial<Attempt>) => {
    const { attributes, status } = settle(call, send(call).attempt, { peerStatus: 200, ...outcome })
    return [attributes['rpc.grpc.status_code'], attributes['error.type'], status.code]
  }
  const { UNSET, ERROR } = SpanStatusCode
  assert.deepEqual(told({ ending: 'ok', grpcStatus: 0 }), [0, undefined, UNSET])
  assert.deepEqual(told({ ending: 'ok', grpcStatus: 5 }), [5, undefined, UNSET])
  assert.deepEqual(told({ ending: 'ok', grpcStatus: 13 }), [13, 'grpc_13', ERROR])
  const listed = { ending: 'http', reason: 'grpc_unavailable', grpcStatus: 14 } as const
  assert.deepEqual(told(listed), [14, 'grpc_unavailable', ERROR])
  assert.deepEqual(told({ ending: 'ok' }), [undefined, undefined, UNSET])
  finish(call)
})

test('a span of a request says the status of gRPC that the client got, wherever in the answer that stood', () => {
  const told = (fields: Partial<Call>, status = 200) => {
    const call = request('/talk.Talk/say', fields)
    spans.begin(call)
    const { attributes, status: word } = finish(call, status)
    return [attributes['rpc.grpc.status_code'], attributes['error.type'], word.code]
  }
  const { UNSET, ERROR } = SpanStatusCode
  const sentHeaders = ['content-type', 'application/grpc']
  assert.deepEqual(told({ sentHeaders, sentTrailers: ['grpc-status', '0'] }), [0, undefined, UNSET])
  assert.deepEqual(told({ sentHeaders, sentTrailers: ['grpc-status', '5'] }), [5, undefined, UNSET])
  assert.deepEqual(told({ sentHeaders: [...sentHeaders, 'grpc-status', '14'] }), [14, 'grpc_14', ERROR])
  // One of our own.
  assert.deepEqual(told({ sentHeaders: ['Grpc-Status', '14'] }, 503), [14, '503', ERROR])
  assert.deepEqual(told({ sentHeaders: ['Grpc-Status', '8'] }, 413), [8, undefined, UNSET])
  // Clients take the want of one for UNKNOWN, unless there was no end.
  assert.deepEqual(told({ sentHeaders }), [2, 'grpc_2', ERROR])
  assert.deepEqual(told({ sentHeaders, completed: false, left: true }), [undefined, undefined, UNSET])
  assert.deepEqual(told({ sentHeaders: ['content-type', 'text/html'] }), [undefined, undefined, UNSET])
})

test('spans say which version of HTTP was spoken on either side', () => {
  const told = (httpVersion: string, http2: boolean) => {
    const call = request('/', { httpVersion })
    spans.begin(call)
    const attempt = settle(call, send(call, 0, { ...get, http2 }).attempt, { ending: 'ok' })
    return [finish(call), attempt].map(({ attributes }) => attributes['network.protocol.version'])
  }
  assert.deepEqual(told('1.0', false), ['1.0', '1.1'])
  assert.deepEqual(told('1.1', true), ['1.1', '2'])
  assert.deepEqual(told('2.0', false), ['2', '1.1'])
  assert.deepEqual(told('2.0', true), ['2', '2'])
})

test('spans begin and end when what they tell of did', () => {
  const call = request()
  const wall = performance.timeOrigin + call.startedAt
  spans.begin(call)
  const { attempt } = send(call)
  const client = settle(call, attempt, { ending: 'ok', peerStatus: 200, responseMs: 7.5 })
  const server = finish(call)
  const ms = ([seconds, nanoseconds]: readonly [number, number]) => seconds * 1000 + nanoseconds / 1e6
  const near = (actual: number, expected: number) =>
    assert.ok(Math.abs(actual - expected) < 0.01, `${actual} is not ${expected}`)
  near(ms(server.duration), 20)
  near(ms(client.duration), 7.5)
  near(ms(client.startTime) - ms(server.startTime), 1)
  assert.ok(Math.abs(ms(server.startTime) - wall) < 100)
})

test('each attempt has a parent id of its own, in the trace of the client, kept as the client says', () => {
  const call = request('/', { rawHeaders: context })
  spans.begin(call)
  const sent = [send(call, 0), send(call, 1), send(call, 2)]
  const ids = sent.map(({ attempt }) => attempt.spanId)
  assert.equal(new Set(ids).size, 3)
  assert.deepEqual(
    sent.map(({ lines }) => lines),
    ids.map((id) => `traceparent: 00-${traceId}-${id}-01\r\ntracestate: a=1,b=2\r\n`),
  )
  const counts = sent.map(
    ({ attempt }) => settle(call, attempt, { ending: 'ok' }).attributes['http.request.resend_count'],
  )
  assert.deepEqual(counts, [undefined, 1, 2])
  const span = finish(call)
  assert.equal(span.parentSpanContext?.spanId, parentId)
  assert.equal(span.spanContext().traceState?.serialize(), 'a=1,b=2')
  const { trace } = call
  assert.deepEqual(
    [trace?.traceId, trace?.spanId, trace?.parentId, trace?.parentSampled, trace?.sampled],
    [traceId, call.spanId, parentId, true, true],
  )
})

test('an answer from an error page is a request of its own, as far as resending goes', () => {
  const call = request()
  spans.begin(call)
  send(call)
  send(call)
  call.runs.push(2)
  const { attempt } = send(call, 2)
  assert.equal(settle(call, attempt, { ending: 'ok' }).attributes['http.request.resend_count'], undefined)
  finish(call)
})

test('a trace that is not kept has no spans and no exemplars, and peers are told so all the same', () => {
  keepTraces(false)
  const call = request('/', { rawHeaders: context })
  spans.begin(call)
  const [first, second] = [send(call), send(call, 1)]
  keepTraces(true)
  for (const { attempt } of [first, second]) {
    Object.assign(attempt, { ending: 'ok', responseMs: 1 })
    spans.ended(call, attempt)
  }
  call.status = 200
  spans.end(call)
  assert.deepEqual(endedSpans(), [])
  assert.deepEqual([call.traceId, call.spanId, first.attempt.traceId], ['', '', ''])
  assert.match(
    first.lines,
    new RegExp(`^traceparent: 00-${traceId}-[0-9a-f]{16}-00\r\ntracestate: a=1,b=2\r\n$`),
  )
  assert.notEqual(first.lines, second.lines)
  assert.ok(!first.lines.includes(parentId))
  assert.deepEqual([call.trace?.traceId, call.trace?.sampled], [traceId, false])
})

test('a context that is not to be believed is left, and a trace begins', () => {
  const call = request('/', { rawHeaders: ['traceparent', `00-${traceId}-${parentId}`, 'tracestate', 'a=1'] })
  spans.begin(call)
  const { attempt, lines } = send(call)
  settle(call, attempt, { ending: 'ok' })
  const span = finish(call)
  assert.equal(span.parentSpanContext, undefined)
  assert.notEqual(call.traceId, traceId)
  assert.equal(lines, `traceparent: 00-${call.traceId}-${attempt.spanId}-01\r\n`)
})

test('that ids of a trace are random is told on', () => {
  const call = request('/', { rawHeaders: ['traceparent', `00-${traceId}-${parentId}-03`] })
  spans.begin(call)
  assert.match(send(call).lines, /-03\r\n$/)
  finish(call)
})

test('what the configuration sets itself is not set again', () => {
  const call = request('/', { rawHeaders: context })
  spans.begin(call)
  assert.match(send(call, 0, { ...get, own: new Set(['tracestate']) }).lines, /^traceparent: .*\r\n$/)
  assert.equal(send(call, 0, { ...get, own: new Set(['traceparent', 'tracestate']) }).lines, '')
  finish(call)
})

test('a failure is an error of its kind, a status above 399 is one of the attempt, above 499 of the request', () => {
  const call = request()
  spans.begin(call)
  const error = (outcome: Partial<Attempt>) => {
    const { attempt } = send(call)
    const { attributes, status } = settle(call, attempt, outcome)
    return [attributes['error.type'], status.code === SpanStatusCode.ERROR, attributes['evenkeel.reason']]
  }
  assert.deepEqual(error({ ending: 'error', reason: 'refused', status: 502 }), ['refused', true, 'refused'])
  assert.deepEqual(error({ ending: 'http', reason: 'http_503', peerStatus: 503 }), ['503', true, 'http_503'])
  assert.deepEqual(error({ ending: 'ok', peerStatus: 404 }), ['404', true, undefined])
  assert.deepEqual(error({ ending: 'ok', peerStatus: 302 }), [undefined, false, undefined])
  assert.deepEqual(error({ ending: 'error', reason: 'body_cut', peerStatus: 200 }), [
    'body_cut',
    true,
    'body_cut',
  ])
  assert.deepEqual(error({ ending: 'stale', reason: 'stale' }), ['stale', true, 'stale'])
  // The client's leaving says nothing of the peer.
  assert.deepEqual(error({ ending: 'aborted', reason: 'client_abort' }), [undefined, false, 'client_abort'])
  const span = finish(call, 502)
  assert.deepEqual([span.attributes['error.type'], span.status.code], ['502', SpanStatusCode.ERROR])
})

test('a client that leaves is no error, a body that a peer cuts is one', () => {
  const left = request()
  spans.begin(left)
  const gone = finish(Object.assign(left, { completed: false }), 499)
  assert.deepEqual(
    [gone.attributes['http.response.status_code'], gone.status.code],
    [499, SpanStatusCode.UNSET],
  )
  const halfway = request()
  spans.begin(halfway)
  const late = finish(Object.assign(halfway, { completed: false, left: true }), 200)
  assert.deepEqual(
    [late.attributes['http.response.status_code'], late.status.code],
    [499, SpanStatusCode.UNSET],
  )
  const cut = request()
  spans.begin(cut)
  const { attempt } = send(cut)
  settle(cut, attempt, { ending: 'error', reason: 'body_cut', failed: true, peerStatus: 200 })
  const span = finish(Object.assign(cut, { completed: false }), 200)
  assert.deepEqual([span.attributes['error.type'], span.status.code], ['body_cut', SpanStatusCode.ERROR])
})

test('a request that no peer was asked about says why', () => {
  const call = request('/', { upstream: 'shop', denial: 'no_live' })
  spans.begin(call)
  const nobody = new Attempt(shop, undefined, call.startedAt, '')
  nobody.ending = 'no_live'
  call.attempts.push(nobody)
  const span = finish(call, 502)
  assert.deepEqual(
    [span.attributes['evenkeel.upstream'], span.attributes['evenkeel.denial'], span.attributes['error.type']],
    ['shop', 'no_live', '502'],
  )
})

test('a request that has waited in the queue says how long', () => {
  assert.equal(finish(request('/', { queueMs: 12.5 })).attributes['evenkeel.queue_ms'], 12.5)
  assert.equal('evenkeel.queue_ms' in finish(request('/')).attributes, false)
})

test('an attempt that nobody has ended ends with its request', () => {
  const call = request()
  spans.begin(call)
  send(call)
  call.status = 500
  spans.end(call)
  assert.deepEqual(
    endedSpans().map(({ kind }) => kind),
    [SpanKind.CLIENT, SpanKind.SERVER],
  )
})

test('what was no request that could be read has a span all the same', () => {
  const call = request('/', {
    method: '',
    rawHeaders: [],
    remoteAddr: 'unix:',
    realipRemoteAddr: 'unix:',
    location: '',
  })
  const span = finish(call, 400)
  assert.equal(span.name, 'HTTP')
  assert.equal(span.attributes['http.request.method'], '_OTHER')
  assert.equal(span.attributes['server.address'], undefined)
  assert.equal(span.attributes['client.address'], undefined)
})

test('methods that are not known share one name', () => {
  const call = request('/', { method: 'PROPFIND' })
  spans.begin(call)
  const span = finish(call)
  assert.equal(span.name, 'HTTP /cart/')
  assert.equal(span.attributes['http.request.method'], '_OTHER')
  assert.equal(span.attributes['http.request.method_original'], 'PROPFIND')
  const dav = spansHere(undefined, 'GET, PROPFIND')
  const known = request('/', { method: 'PROPFIND', endedAt: performance.now() })
  dav.end(known)
  assert.equal(endedSpans()[0]?.name, 'PROPFIND /cart/')
})

test('values that are credentials by their names do not leave', () => {
  const query =
    'a=1&access_token=abc&Signature=x%3D&token=&b=token&X-Amz-Credential=k/2&mytoken=kept&api_key=k'
  const call = request(`/cart/7?${query}`)
  spans.begin(call)
  const { attempt } = send(call, 0, { ...get, target: `/x?sig=secret&q=1#sig=2` })
  const client = settle(call, attempt, { ending: 'ok' })
  assert.equal(client.attributes['url.full'], 'http://127.0.0.1:8001/x?sig=REDACTED&q=1#sig=2')
  assert.equal(
    finish(call).attributes['url.query'],
    'a=1&access_token=REDACTED&Signature=REDACTED&token=REDACTED&b=token&X-Amz-Credential=REDACTED&mytoken=kept&api_key=REDACTED',
  )
})

test('where proxies before this one tell what the client asked for, that is told', () => {
  const asked = (...rawHeaders: readonly string[]) => {
    const call = request('/', { rawHeaders })
    spans.begin(call)
    const { attributes } = finish(call)
    return [attributes['url.scheme'], attributes['server.address'], attributes['server.port']]
  }
  assert.deepEqual(asked('Host', 'in.side'), ['http', 'in.side', 80])
  assert.deepEqual(asked('Host', '[::1]:8080'), ['http', '::1', 8080])
  const forwarded = ['X-Forwarded-Host', 'out.side, in.side', 'X-Forwarded-Proto', 'https']
  assert.deepEqual(asked('Host', 'in.side', ...forwarded), ['https', 'out.side', 443])
  assert.deepEqual(asked('Host', 'in.side', 'Forwarded', 'for=1.2.3.4;host="out.side:8443";proto=https'), [
    'https',
    'out.side',
    8443,
  ])
  const nonsense = ['X-Forwarded-Host', '<script>', 'X-Forwarded-Proto', 'gopher']
  assert.deepEqual(asked('Host', 'in.side', ...nonsense), ['http', 'in.side', 80])
})

test('without propagators nothing is read and nothing told, and what clients send passes', () => {
  const silent = spansHere('none')
  assert.equal(silent.fields.size, 0)
  const call = request('/', { rawHeaders: context, endedAt: performance.now(), status: 200 })
  silent.begin(call)
  const attempt = new Attempt(shop, shop.peers[0], call.startedAt, '')
  call.attempts.push(attempt)
  assert.equal(silent.attempt(call, attempt, get), '')
  silent.end(call)
  assert.notEqual(endedSpans().at(-1)?.spanContext().traceId, traceId)
})
