import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import type { Peer } from '../../../feedback/peer.ts'
import { Variables } from '../../../feedback/variables.ts'
import { jsonRecord } from '../../../sidecar/telemetry/json-record.ts'
import {
  combined,
  compileFormat,
  type Escape,
  escapeJson,
  escapeText,
} from '../../../sidecar/telemetry/log-format.ts'
import { group } from '../../support/peers.ts'
import { fc } from '../../support/property.ts'

function line(format: string, mode: Escape, fields: Partial<Call> = {}, variables = new Variables()): string {
  return compileFormat(format, mode, variables)(Object.assign(new Call(), fields))
}

/** What readers of a log make of a line: its bytes, as UTF-8. */
function parsed(text: string): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1')))
}

const bytesText = fc.uint8Array({ maxLength: 40 }).map((octets) => Buffer.from(octets).toString('latin1'))

test('combined is the format that nginx calls so', () => {
  const fields = {
    remoteAddr: '192.0.2.1',
    target: '/a?b',
    status: 200,
    bodyBytesSent: 5,
    rawHeaders: ['User-Agent', 'curl/8', 'Authorization', `Basic ${btoa('ann:x')}`],
  }
  assert.match(
    line(combined, 'default', fields),
    /^192\.0\.2\.1 - ann \[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET \/a\?b HTTP\/1\.1" 200 5 "-" "curl\/8"$/,
  )
})

test('what is absent is a dash, in JSON nothing; what a configuration set to nothing is nothing', () => {
  const format = '[$http_x][$upstream_addr][$is_args][$mine]'
  const shown = (mode: Escape) => {
    const variables = new Variables()
    variables.declareSet('mine')
    return line(format, mode, {}, variables)
  }
  assert.equal(shown('default'), '[-][-][][]')
  assert.equal(shown('none'), '[-][-][][]')
  assert.equal(shown('json'), '[][][][]')
})

test('a header cannot end its line, close its quotes or steer a terminal', () => {
  const fields = { rawHeaders: ['X', 'a" 200\n10.0.0.1 - \x1b[31m\\ \x7f\u00e9\t'] }
  assert.equal(
    line('"$http_x"', 'default', fields),
    '"a\\x22 200\\x0A10.0.0.1 - \\x1B[31m\\x5C \\x7F\\xE9\\x09"',
  )
  assert.equal(line('$http_x', 'none', fields), 'a" 200\\x0A10.0.0.1 - \\x1B[31m\\ \\x7F\u00e9\t')
  assert.equal(line('$http_x', 'json', fields), 'a\\" 200\\n10.0.0.1 - \\u001B[31m\\\\ \\u007F\\u00E9\\t')
})

test('the text of a format itself is not escaped, and its UTF-8 is kept', () => {
  const text = line('"ü" \\ $status', 'default', { status: 200 })
  assert.equal(Buffer.from(text, 'latin1').toString(), '"ü" \\ 200')
})

test('an unknown variable in a format is refused', () => {
  assert.throws(() => line('$nope', 'default'), { message: 'unknown "nope" variable' })
})

test('escaped text is printable ASCII without quotes and can be read back, whatever the bytes', () => {
  fc.assert(
    fc.property(bytesText, (value) => {
      const escaped = escapeText(value)
      assert.match(escaped, /^[ !#-~]*$/)
      const back = escaped.replace(/\\x([0-9A-F]{2})/g, (_, hex) =>
        String.fromCharCode(Number.parseInt(hex, 16)),
      )
      assert.equal(back, value)
    }),
  )
})

test('a JSON string is valid and one line, whatever the bytes', () => {
  fc.assert(
    fc.property(bytesText, (value) => {
      const escaped = escapeJson(value)
      assert.doesNotMatch(escaped, /[\x00-\x1f\x7f]/)
      assert.equal(typeof parsed(`"${escaped}"`), 'string')
    }),
  )
})

test('UTF-8 in JSON reads as the text that it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const utf8 = Buffer.from(text, 'utf8')
      // A lone surrogate has no UTF-8.
      fc.pre(utf8.toString('utf8') === text)
      assert.equal(parsed(`"${escapeJson(utf8.toString('latin1'))}"`), text)
    }),
  )
})

const backend = group([1, 1])

function proxied(): Call {
  const call = new Call()
  Object.assign(call, {
    startedAt: 1000,
    endedAt: 1012.3456,
    remoteAddr: '192.0.2.1',
    host: 'shop.example',
    target: '/cart?id=1',
    status: 200,
    bytesSent: 321,
    requestLength: 100,
    upstream: 'backend',
    rawHeaders: ['User-Agent', 'curl/8'],
  })
  const refused = new Attempt(backend, backend.peers[0], 1000, 'least_time')
  Object.assign(refused, { ending: 'error', reason: 'refused', status: 502, responseMs: 0.51 })
  const answered = new Attempt(backend, backend.peers[1], 1001, 'explored')
  Object.assign(answered, {
    ending: 'ok',
    status: 200,
    connectMs: 0,
    headerMs: 7.25,
    responseMs: 10,
    bytesSent: 90,
    bytesReceived: 400,
    reused: true,
  })
  call.attempts.push(refused, answered)
  return call
}

test('the JSON record has the request and each of its attempts', () => {
  const { time, request_id, ...rest } = parsed(jsonRecord(proxied())) as Record<string, unknown>
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.match(String(request_id), /^[0-9a-f]{32}$/)
  assert.deepEqual(rest, {
    client: '192.0.2.1',
    method: 'GET',
    host: 'shop.example',
    path: '/cart?id=1',
    status: 200,
    bytes: 321,
    request_bytes: 100,
    duration_ms: 12.346,
    upstream: 'backend',
    track: 'stable',
    denial: null,
    user_agent: 'curl/8',
    attempts: [
      {
        peer: 'a',
        track: 'stable',
        pick: 'least_time',
        at_ms: 0,
        ending: 'error',
        reason: 'refused',
        status: 502,
        connect_ms: null,
        header_ms: null,
        response_ms: 0.51,
        bytes_sent: 0,
        bytes_received: 0,
        reused: false,
      },
      {
        peer: 'b',
        track: 'stable',
        pick: 'explored',
        at_ms: 1,
        ending: 'ok',
        reason: null,
        status: 200,
        connect_ms: 0,
        header_ms: 7.25,
        response_ms: 10,
        bytes_sent: 90,
        bytes_received: 400,
        reused: true,
      },
    ],
  })
})

test('the JSON record says why there was no further attempt, and how long the queue took', () => {
  const call = Object.assign(proxied(), { denial: 'queue_timeout', queueMs: 60_000.25 })
  const record = parsed(jsonRecord(call)) as Record<string, unknown>
  assert.equal(record['denial'], 'queue_timeout')
  assert.equal(record['queue_ms'], 60_000.25)
})

test('the JSON record says the track of each attempt, and of a request for which nobody was there', () => {
  const call = proxied()
  const { peers } = group([1, { track: 'canary' }])
  const tried = (peer: Peer | undefined) => new Attempt(backend, peer, 1000, 'fallback')
  call.attempts.splice(0, 2, tried(peers[1]), tried(peers[0]))
  const record = () => {
    // The shape that the record has.
    const { track, attempts } = parsed(jsonRecord(call)) as { track: unknown; attempts: { track: unknown }[] }
    return [track, ...attempts.map((one) => one.track)]
  }
  assert.deepEqual(record(), ['stable', 'canary', 'stable'])
  call.track = 'canary'
  call.attempts.splice(0, 2, tried(undefined))
  assert.deepEqual(record(), ['canary', null])
})

test('the JSON record is valid and one line, whatever a client sends', () => {
  fc.assert(
    fc.property(
      fc.array(bytesText, { minLength: 5, maxLength: 5 }),
      ([method, target, host, agent, address]) => {
        const call = Object.assign(proxied(), {
          method: method!,
          target: target!,
          host: host!,
          remoteAddr: address!,
          rawHeaders: ['User-Agent', agent!],
        })
        const text = jsonRecord(call)
        assert.doesNotMatch(text, /[\x00-\x1f\x7f]/)
        assert.equal((parsed(text) as Record<string, unknown>)['status'], 200)
      },
    ),
  )
})
