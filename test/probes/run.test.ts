import assert from 'node:assert/strict'
import { test } from 'node:test'
import { declareMaps } from '../../feedback/map.ts'
import { Variables } from '../../feedback/variables.ts'
import type { LiveProbe } from '../../probes/live-probe.ts'
import type { Answer, Target } from '../../probes/probe.ts'
import { run } from '../../probes/run.ts'
import { defaultSettings } from '../../sidecar/proxy/settings.ts'
import { answered, liveProbe, scriptedKind } from '../support/live-probe.ts'
import { group } from '../support/peers.ts'

const backend = group([1])
const variables = new Variables()
declareMaps(
  {
    $good: { source: '$upstream_status', values: { '200': '1' } },
    $pong: { source: '$upstream_probe_body', values: { PONG: '1' } },
  },
  variables,
)

const sending = { now: () => 1000, signal: new AbortController().signal, failing: false }

function probing(answer: Partial<Answer>, more: Partial<LiveProbe> = {}) {
  const kind = scriptedKind(() => answered(answer))
  return run(liveProbe(backend, kind, more), backend.peers[0]!, sending)
}

/** `passed` or `failed`, and what is said of it. */
async function verdict(answer: Partial<Answer>, more: Partial<LiveProbe> = {}): Promise<string> {
  const { passed, detail } = await probing(answer, more)
  return `${passed ? 'passed' : 'failed'}: ${detail}`
}

const policy = (...on: string[]) => ({ retry: { ...defaultSettings.retry, on: new Set(on) } })
const by = (text: string) => ({ test: variables.compile(text) })
const failure = (
  ending: 'error' | 'timeout' | 'invalid_header',
  reason: 'refused' | 'timeout_read' | 'body_cut',
) => ({
  failure: { ending, reason },
  status: undefined,
})

test('an answer passes as long as the location takes its status for no failure', async () => {
  assert.equal(await verdict({ status: 200 }), 'passed: status 200')
  assert.equal(await verdict({ status: 500 }), 'passed: status 500')
  assert.equal(await verdict({ status: 503 }), 'passed: status 503')
  assert.equal(await verdict({ status: 503 }, policy('http_503')), 'failed: status 503')
  assert.equal(await verdict({ status: 500 }, policy('http_503')), 'passed: status 500')
  // Of a client's request these are never a failure of the peer.
  assert.equal(await verdict({ status: 404 }, policy('http_404', 'http_403')), 'passed: status 404')
})

test('a status of gRPC that the location lists is a failure, be it in the header or in the trailers', async () => {
  const unavailable = ['grpc-status', '14']
  const listed = policy('error', 'grpc_unavailable')
  for (const where of [{ headers: unavailable }, { trailers: unavailable }]) {
    const answer = { status: 200, ...where }
    assert.equal(await verdict(answer, listed), 'failed: status 200, grpc_unavailable')
    assert.equal(await verdict(answer, policy('error')), 'passed: status 200')
  }
  assert.equal(await verdict({ status: 200, trailers: ['grpc-status', '0'] }, listed), 'passed: status 200')
})

test('a failure to answer does not pass, whatever the location lists', async () => {
  for (const retry of [policy(), policy('error', 'timeout')]) {
    assert.equal(
      await verdict({ ...failure('error', 'refused'), detail: 'connect ECONNREFUSED' }, retry),
      'failed: connect ECONNREFUSED',
    )
    assert.equal(await verdict(failure('timeout', 'timeout_read'), retry), 'failed: timeout_read')
    assert.equal(await verdict({ ...failure('error', 'body_cut'), status: 200 }, retry), 'failed: body_cut')
  }
})

test('with a test, the request has to succeed and the test to hold', async () => {
  assert.equal(await verdict({ status: 200 }, by('$good')), 'passed: status 200')
  assert.equal(await verdict({ status: 503 }, by('$good')), 'failed: status 503')
  assert.equal(await verdict({ status: 204 }, by('$good')), 'failed: status 204, the test is empty')
  assert.equal(await verdict({ status: 200 }, by('0')), 'failed: status 200, the test is 0')
  assert.equal(await verdict({ status: 200 }, by('00')), 'passed: status 200')
  assert.equal(await verdict(failure('error', 'refused'), by('1')), 'failed: refused')
  assert.equal(await verdict({ status: 503 }, { ...policy('http_503'), ...by('1') }), 'failed: status 503')
})

test("a kind's own verdict stands in the place of the location's, and the test has to hold as well", async () => {
  const queue = { status: undefined, detail: 'queue 12 of 10' }
  assert.equal(await verdict({ ...queue, passed: false }), 'failed: queue 12 of 10')
  assert.equal(await verdict({ ...queue, passed: true }), 'passed: queue 12 of 10')
  assert.equal(await verdict({ ...queue, passed: true }, by('0')), 'failed: queue 12 of 10, the test is 0')
  assert.equal(await verdict({ ...queue, passed: false }, by('1')), 'failed: queue 12 of 10')
})

test("the variables of an attempt tell of the probe's", async () => {
  const text =
    '$upstream_probe $upstream_probe_body $upstream_status $upstream_addr $upstream_http_x_load ' +
    '$upstream_connect_time $upstream_header_time $upstream_response_time'
  let said = ''
  const read = variables.compile(text)
  const answer = {
    status: 201,
    body: 'ok',
    headers: ['X-Load', '7'],
    connectMs: 1,
    headerMs: 20,
    responseMs: 300,
  }
  await probing(answer, {
    name: 'ready',
    test(call) {
      said = read(call)
      return '1'
    },
  })
  assert.equal(said, 'ready ok 201 a 7 0.001 0.020 0.300')
})

test('the status of a failure is the one that a client would see', async () => {
  const read = variables.compile('$upstream_status')
  const { call, attempt } = await probing(failure('timeout', 'timeout_read'))
  assert.equal(read(call), '504')
  assert.deepEqual([attempt.ending, attempt.reason, attempt.failed], ['timeout', 'timeout_read', true])
  const listed = await probing({ status: 503 }, policy('http_503'))
  assert.deepEqual(
    [listed.attempt.ending, listed.attempt.reason, listed.attempt.failed],
    ['http', 'http_503', true],
  )
})

test('a map that the request was made of is looked up anew for the answer', async () => {
  const good = variables.compile('$good')
  const { passed } = await probing(
    { status: 200 },
    {
      test: good,
      question(call) {
        assert.equal(good(call), '')
        return liveProbe(
          backend,
          scriptedKind(() => answered()),
        ).question(call)
      },
    },
  )
  assert.equal(passed, true)
})

test('the port of a probe stands in the place of the peer’s own', async () => {
  const seen: Target[] = []
  const kind = scriptedKind((target) => {
    seen.push(target)
    return answered()
  })
  await run(liveProbe(backend, kind, { port: 9000 }), backend.peers[0]!, sending)
  assert.deepEqual(seen, [{ name: 'a', address: { kind: 'tcp', host: '127.0.0.1', port: 9000 } }])
})

test('what this machine could not ask, and what broke, says nothing of the peer', async () => {
  const local = {
    failure: { ending: 'error', reason: 'unreachable', local: true },
    detail: 'connect EMFILE',
  } as const
  const one = await probing({ ...local, passed: false, status: undefined })
  assert.deepEqual([one.passed, one.detail], [undefined, 'connect EMFILE'])
  const kind = scriptedKind(() => {
    throw new Error('no such thing')
  })
  const two = await run(liveProbe(backend, kind), backend.peers[0]!, sending)
  assert.deepEqual([two.passed, two.detail], [undefined, 'the probe broke: no such thing'])
  const three = await probing({}, { question: () => undefined })
  assert.deepEqual([three.passed, three.detail], [undefined, 'a field of the request has a line break'])
})

test('a kind whose answers have no end may ask whether the test holds with what has come', async () => {
  const pong = variables.compile('$pong')
  const asked: (boolean | undefined)[] = []
  const kind = scriptedKind((_target, { holds }) => {
    for (const body of ['P', 'PON', 'PONG']) asked.push(holds?.(answered({ body, status: undefined })))
    return answered({ body: 'PONG', status: undefined, passed: true, detail: '4 bytes came' })
  })
  const one = await run(liveProbe(backend, kind, { test: pong }), backend.peers[0]!, sending)
  assert.deepEqual(asked, [false, false, true])
  assert.deepEqual([one.passed, one.detail], [true, '4 bytes came'])
  await run(liveProbe(backend, kind), backend.peers[0]!, sending)
  assert.deepEqual(asked.slice(3), [undefined, undefined, undefined], 'there is no test')
})
