import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { peerStateChannel } from '../../../feedback/channels.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import { Peer } from '../../../feedback/peer.ts'
import { attemptReasons } from '../../../feedback/reasons.ts'
import { describeAttempt, describeState, logAttempts } from '../../../sidecar/telemetry/attempt-lines.ts'
import { publishAttempt } from '../../../sidecar/telemetry/channels.ts'
import { ErrorLog } from '../../../sidecar/telemetry/error-log.ts'
import { group } from '../../support/peers.ts'

const backend = group([1])

function call(fields: Partial<Call> = {}): Call {
  return Object.assign(new Call(), {
    connection: 5,
    remoteAddr: '192.0.2.1',
    serverName: 'shop',
    target: '/a?b',
    rawHeaders: ['Host', 'Shop:80'],
    ...fields,
  })
}

function attempt(fields: Partial<Attempt>, peer: Peer | undefined = backend.peers[0]): Attempt {
  return Object.assign(new Attempt(backend, peer, 0, 'round_robin'), fields)
}

const context =
  ', client: 192.0.2.1, server: shop, request: "GET /a?b HTTP/1.1", upstream: "http://a/a?b", host: "Shop:80"'

test('the line of an attempt names a track that is not stable, and so do those of its peer', () => {
  const [canary] = group([{ track: 'canary' }]).peers
  const failed = { ending: 'error', reason: 'closed' } as const
  assert.ok(
    describeAttempt(call(), attempt(failed, canary))!.text.endsWith(', host: "Shop:80", track: "canary"'),
  )
  assert.ok(!describeAttempt(call({ track: 'canary' }), attempt(failed))!.text.includes('track'))
  const nobody = new Attempt(backend, undefined, 0, '')
  nobody.ending = 'no_live'
  assert.ok(describeAttempt(call({ track: 'canary' }), nobody)!.text.endsWith(', track: "canary"'))
  const event = { upstream: backend, peer: canary!, state: 'up', fails: 0, downtimeMs: 1 } as const
  assert.match(describeState(event).text, /peer: "a", track: "canary", downtime: 1ms$/)
})

test('the line of an attempt has the target that the peer got beside the one that the client sent', () => {
  const failed = attempt({ ending: 'error', reason: 'closed' })
  const { text } = describeAttempt(call({ proxyTarget: '/b/"x?y' }), failed)!
  assert.ok(text.includes('request: "GET /a?b HTTP/1.1", upstream: "http://a/b/\\x22x?y", host:'), text)
})

test('the line of a call of gRPC has its scheme and its peer', () => {
  const failed = attempt({ ending: 'error', reason: 'closed' })
  const told = (fields: Partial<Call>) => describeAttempt(call({ proxyGrpc: true, ...fields }), failed)!.text
  assert.match(told({}), /, upstream: "grpc:\/\/a", host/)
  assert.match(told({ proxySecure: true }), /, upstream: "grpcs:\/\/a", host/)
})

/** How an attempt ended, and what nginx would say of it. */
const table: readonly (readonly [Partial<Attempt>, string])[] = [
  [
    { ending: 'error', reason: 'refused', detail: 'connect ECONNREFUSED 127.0.0.1:81' },
    'connect() failed (111: Connection refused) while connecting to upstream',
  ],
  [
    {
      ending: 'error',
      reason: 'unreachable',
      detail: 'connect EHOSTUNREACH 10.0.0.1:81 - Local (0.0.0.0:0)',
    },
    'connect() failed (113: No route to host) while connecting to upstream',
  ],
  [
    { ending: 'error', reason: 'unreachable', detail: 'connect ENETUNREACH 10.0.0.1:81' },
    'connect() failed (101: Network is unreachable) while connecting to upstream',
  ],
  [
    { ending: 'error', reason: 'reset', detail: 'read ECONNRESET' },
    'connect() failed (104: Connection reset by peer) while connecting to upstream',
  ],
  [
    { ending: 'error', reason: 'reset', detail: 'read ECONNRESET', connectMs: 1 },
    'recv() failed (104: Connection reset by peer) while reading response header from upstream',
  ],
  [
    { ending: 'error', reason: 'reset', detail: 'write EPIPE', connectMs: 1 },
    'writev() failed (32: Broken pipe) while sending request to upstream',
  ],
  [
    { ending: 'error', reason: 'closed', detail: 'connection closed', connectMs: 1 },
    'upstream prematurely closed connection while reading response header from upstream',
  ],
  [
    { ending: 'timeout', reason: 'timeout_connect' },
    'upstream timed out (110: Connection timed out) while connecting to upstream',
  ],
  [
    { ending: 'timeout', reason: 'timeout_send' },
    'upstream timed out (110: Connection timed out) while sending request to upstream',
  ],
  [
    { ending: 'timeout', reason: 'timeout_read' },
    'upstream timed out (110: Connection timed out) while reading response header from upstream',
  ],
  [
    { ending: 'timeout', reason: 'body_timeout' },
    'upstream timed out (110: Connection timed out) while reading upstream',
  ],
  [
    { ending: 'error', reason: 'body_cut', detail: 'connection closed' },
    'upstream prematurely closed connection while reading upstream',
  ],
  [
    { ending: 'error', reason: 'body_cut', detail: 'read ECONNRESET' },
    'recv() failed (104: Connection reset by peer) while reading upstream',
  ],
  [
    { ending: 'invalid_header', reason: 'invalid_header', detail: 'bad name "a\nb"' },
    'upstream sent invalid header (bad name \\x22a\\x0Ab\\x22) while reading response header from upstream',
  ],
  [
    { ending: 'invalid_header', reason: 'header_overflow', detail: 'header larger than proxy_buffer_size' },
    'upstream sent too big header while reading response header from upstream',
  ],
  [
    { ending: 'error', reason: 'dns', detail: 'getaddrinfo ENOTFOUND x' },
    'host not found (getaddrinfo ENOTFOUND x) while connecting to upstream',
  ],
]
for (const [fields, expected] of table) {
  const { reason, detail = '' } = fields
  test(`${reason} ${detail.split(' ')[1] ?? ''} is told in nginx's words, with the request`, () => {
    assert.deepEqual(describeAttempt(call(), attempt(fields)), {
      level: 'error',
      text: `*5 ${expected}${context}`,
    })
  })
}

test('nobody eligible is told with the name of the group', () => {
  const line = describeAttempt(call(), new Attempt(backend, undefined, 0, ''))
  assert.equal(line, undefined)
  const nobody = Object.assign(new Attempt(backend, undefined, 0, ''), { ending: 'no_live' })
  assert.deepEqual(describeAttempt(call(), nobody), {
    level: 'error',
    text: `*5 no live upstreams while connecting to upstream${context.replace('http://a/', 'http://backend/')}`,
  })
})

test('where nobody is eligible for a limit the line says so', () => {
  const detail = 'max_conns reached by the lease of the fleet'
  const full = Object.assign(new Attempt(backend, undefined, 0, ''), { ending: 'no_live', detail })
  const { text } = describeAttempt(call(), full)!
  assert.ok(text.startsWith(`*5 no live upstreams, ${detail} while connecting to upstream, client: `))
})

test('clients and peers that leave and stale connections are no errors, and answers are not told of', () => {
  const told = Object.fromEntries(
    attemptReasons.map((reason) => [reason, describeAttempt(call(), attempt({ reason }))?.level]),
  )
  const levels = new Map<string, string[]>()
  for (const [reason, level = 'none'] of Object.entries(told)) {
    levels.set(level, [...(levels.get(level) ?? []), reason])
  }
  assert.deepEqual(levels.get('info'), ['stale', 'client_abort', 'dropped'])
  assert.ok(levels.get('none')!.every((reason) => /^(?:http|grpc)_/.test(reason)))
  assert.equal(describeAttempt(call(), attempt({ ending: 'ok' })), undefined)
})

test('what a client writes cannot forge a line', () => {
  const forged = call({ target: '/\x1b"x', rawHeaders: ['Host', 'a"\x07', 'Referer', '"\t'], serverName: '' })
  const { text } = describeAttempt(forged, attempt({ reason: 'timeout_read' }))!
  assert.match(
    text,
    /, server: , request: "GET \/\\x1B\\x22x HTTP\/1\.1", upstream: "http:\/\/a\/\\x1B\\x22x"/,
  )
  assert.match(text, /, host: "a\\x22\\x07", referrer: "\\x22\\x09"$/)
})

test('the path of a Unix socket is told apart from that of the request', () => {
  const { zone } = backend
  const peer = new Peer(
    zone,
    0,
    'unix:/s',
    'unix:/s',
    { kind: 'unix', path: '/s' },
    backend.peers[0]!.options,
  )
  const { text } = describeAttempt(call(), attempt({ reason: 'closed' }, peer))!
  assert.match(text, /upstream: "http:\/\/unix:\/s:\/a\?b"/)
})

test('a peer that is set aside is a warning, and that it is back a notice', () => {
  const event = { upstream: backend, peer: backend.peers[0]!, fails: 3, downtimeMs: 0 }
  assert.deepEqual(describeState({ ...event, state: 'unavailable' }), {
    level: 'warn',
    text: 'upstream server temporarily disabled, upstream: "backend", peer: "a", fails: 3',
  })
  assert.deepEqual(describeState({ ...event, state: 'up', fails: 0, downtimeMs: 10_000.4 }), {
    level: 'notice',
    text: 'upstream server enabled again, upstream: "backend", peer: "a", downtime: 10000ms',
  })
})

test('a peer that another instance set aside is a warning that says so', () => {
  const event = { upstream: backend, peer: backend.peers[0]!, fails: 1, downtimeMs: 0, heard: true } as const
  assert.deepEqual(describeState({ ...event, state: 'unavailable' }), {
    level: 'warn',
    text: 'peer a of upstream "backend" is unavailable: another instance set it aside',
  })
})

/** Takes lines instead of writing them. */
class Heard extends ErrorLog {
  readonly lines: string[] = []
  override log(...[level, text]: Parameters<ErrorLog['log']>): void {
    if (this.admits(level)) this.lines.push(`${level}: ${text.replace(/,.*/, '')}`)
  }
}

test('each failed attempt and each change of state is one line, until it is stopped', () => {
  const heard = new Heard()
  const stop = logAttempts(heard)
  const state = { upstream: backend, peer: backend.peers[0]!, state: 'unavailable', fails: 1, downtimeMs: 0 }
  const happen = () => {
    publishAttempt(call(), attempt({ ending: 'ok' }))
    publishAttempt(call(), attempt({ ending: 'error', reason: 'closed' }))
    publishAttempt(call(), attempt({ ending: 'http', reason: 'http_503' }))
    publishAttempt(call(), attempt({ ending: 'aborted', reason: 'client_abort' }))
    peerStateChannel.publish(state)
  }
  happen()
  stop()
  happen()
  assert.deepEqual(heard.lines, [
    'error: *5 upstream prematurely closed connection while reading response header from upstream',
    'warn: upstream server temporarily disabled',
  ])
})
