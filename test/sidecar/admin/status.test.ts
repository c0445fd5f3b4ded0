import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import { ignore } from '../../../feedback/report.ts'
import { ServerZone } from '../../../feedback/server-zone.ts'
import type { Facts } from '../../../sidecar/admin/facts.ts'
import { apiPath, statusResponse } from '../../../sidecar/admin/status.ts'
import { facts, group, now, peer, wall } from './facts.ts'

function get(from: Facts, path: string, query = '', method = 'GET') {
  const answer = statusResponse(from, path, query, method, '127.0.0.1')
  return { ...answer, text: answer.body.toString() }
}

/** The value at a path, parsed. */
function value(from: Facts, path: string, query = ''): unknown {
  const { status, text } = get(from, path, query)
  assert.equal(status, 200, `${path}: ${text}`)
  return JSON.parse(text)
}

/** A group of one peer that has seen something. */
function seen() {
  const backend = group('backend', { '127.0.0.1:8081': { weight: 5, max_conns: 10 } })
  const { zone, peers } = backend.upstream
  const at = peers[0]!.index
  zone.peers.conns[at] = 1
  zone.peers.selected[at] = 48
  zone.peers.selectedWallAt[at] = wall
  zone.statuses[100]![at] = 45
  zone.statuses[402]![at] = 2
  zone.statuses.at(-1)![at] = 1
  zone.peers.bytesSent[at] = 340
  zone.peers.bytesReceived[at] = 745
  zone.peers.failsTotal[at] = 2
  zone.peers.unavailable[at] = 1
  zone.peers.downtimeMs[at] = 100
  zone.peers.downAt[at] = now - 31.5
  zone.peers.downstartWallAt[at] = wall - 31.5
  zone.peers.headerTime[at] = 0.2
  zone.peers.responseTime[at] = 12.6
  zone.reasons[0]![at] = 2
  zone.grpcStatuses[0]![at] = 44
  zone.grpcStatuses[14]![at] = 1
  zone.set('keepalive', 3)
  zone.set('requests', 46)
  zone.set('tries', 48)
  zone.set('retries', 2)
  return backend
}

test('a group is written byte for byte as Angie writes it, with what evenkeel adds at the ends', () => {
  const text = get(facts({ groups: [seen()] }), '/status/http/upstreams/backend').text
  const lines = [
    '{',
    '\t"peers": {',
    '\t\t"127.0.0.1:8081": {',
    '\t\t\t"server": "127.0.0.1:8081",',
    '\t\t\t"backup": false,',
    '\t\t\t"weight": 5,',
    '\t\t\t"state": "unavailable",',
    '\t\t\t"selected": {',
    '\t\t\t\t"current": 1,',
    '\t\t\t\t"total": 48,',
    '\t\t\t\t"last": "2026-11-30T01:54:49Z"',
    '\t\t\t},',
    '',
    '\t\t\t"max_conns": 10,',
    '\t\t\t"responses": {',
    '\t\t\t\t"200": 45,',
    '\t\t\t\t"502": 2,',
    '\t\t\t\t"xxx": 1',
    '\t\t\t},',
    '',
    '\t\t\t"data": {',
    '\t\t\t\t"sent": 340,',
    '\t\t\t\t"received": 745',
    '\t\t\t},',
    '',
    '\t\t\t"health": {',
    '\t\t\t\t"fails": 2,',
    '\t\t\t\t"unavailable": 1,',
    '\t\t\t\t"downtime": 131,',
    '\t\t\t\t"downstart": "2026-11-30T01:54:49.696Z",',
    '\t\t\t\t"header_time": 1,',
    '\t\t\t\t"response_time": 13',
    '\t\t\t},',
    '',
    '\t\t\t"sid": "00c23eedc13f75dbfcb6587bda3741b8",',
    '\t\t\t"evenkeel": {',
    '\t\t\t\t"track": "stable",',
    '\t\t\t\t"share": 1,',
    '\t\t\t\t"avg": 0,',
    '\t\t\t\t"ok": 1,',
    '\t\t\t\t"header_time": 0.2,',
    '\t\t\t\t"response_time": 12.6,',
    '\t\t\t\t"waiting": 0,',
    '\t\t\t\t"waiting_age": 0,',
    '\t\t\t\t"explored": 0,',
    '\t\t\t\t"unmeasured": 0,',
    '\t\t\t\t"reasons": {',
    '\t\t\t\t\t"refused": 2',
    '\t\t\t\t},',
    '',
    '\t\t\t\t"grpc_responses": {',
    '\t\t\t\t\t"OK": 44,',
    '\t\t\t\t\t"UNAVAILABLE": 1',
    '\t\t\t\t}',
    '\t\t\t}',
    '\t\t}',
    '\t},',
    '',
    '\t"keepalive": 3,',
    '\t"evenkeel": {',
    '\t\t"method": "round_robin",',
    '\t\t"requests": 46,',
    '\t\t"tries": 48,',
    '\t\t"retries": 2,',
    '\t\t"retries_waiting": 0,',
    '\t\t"denials": {}',
    '\t}',
    '}',
    '',
  ]
  assert.equal(text, lines.join('\r\n'))
})

test('the root shows every part, empty ones as empty objects', () => {
  assert.equal(
    get(facts(), '/status/', 'pretty=off').text,
    '{"angie":{"version":"0.1.0","build":"evenkeel","address":"127.0.0.1","generation":1,' +
      '"load_time":"2026-11-30T01:54:49.728Z"},' +
      '"connections":{"accepted":7,"dropped":1,"active":2,"idle":3},"slabs":{},' +
      '"http":{"server_zones":{},"location_zones":{},"caches":{},"limit_conns":{},"limit_reqs":{},"upstreams":{}},' +
      '"resolvers":{},"stream":{"server_zones":{},"limit_conns":{},"upstreams":{}}}',
  )
})

test('every depth can be asked for, down to a scalar, with or without slashes around it', () => {
  const from = facts({ groups: [seen()] })
  const whole = value(from, '/status') as object
  const visit = (path: string, expected: unknown) => {
    assert.deepEqual(value(from, path), expected, path)
    assert.deepEqual(value(from, `${path}/`), expected, `${path}/`)
    if (typeof expected !== 'object' || expected === null) return
    for (const [key, member] of Object.entries(expected)) visit(`${path}/${key}`, member)
  }
  visit('/status', whole)
  assert.equal(get(from, '/status/http/upstreams/backend/peers/127.0.0.1:8081/selected/total').text, '48\r\n')
  assert.equal(get(from, 'status//http/upstreams/backend/keepalive', 'pretty=off').text, '3')
})

test('a peer on a Unix socket is found although its name has slashes', () => {
  const from = facts({
    groups: [group('u', { 'unix:/run/a': { weight: 2 }, 'unix:/run/a/b': { weight: 3 } })],
  })
  assert.equal(value(from, '/status/http/upstreams/u/peers/unix:/run/a/weight'), 2)
  assert.equal(value(from, '/status/http/upstreams/u/peers/unix:/run/a/b/weight'), 3)
})

test('moments are seconds where the query says so', () => {
  const from = facts({ groups: [seen()] })
  assert.equal(value(from, '/status/angie/load_time', 'date=epoch'), 1_796_003_689)
  const last = '/status/http/upstreams/backend/peers/127.0.0.1:8081/selected/last'
  assert.equal(value(from, last, 'pretty=off&date=epoch'), 1_796_003_689)
  assert.equal(value(from, last, 'date=iso'), '2026-11-30T01:54:49Z')
})

test('an answer says that it must not be kept, and how long it is', () => {
  assert.deepEqual(get(facts(), '/status/angie/generation').headers, {
    'content-type': 'application/json',
    expires: 'Thu, 01 Jan 1970 00:00:01 GMT',
    'cache-control': 'no-cache',
    'content-length': '3',
  })
})

test('HEAD has the headers of GET and no body', () => {
  const whole = get(facts(), '/status/')
  const head = get(facts(), '/status/', '', 'HEAD')
  assert.deepEqual(head.headers, whole.headers)
  assert.equal(head.text, '')
  const none = get(facts(), '/status/nope', '', 'HEAD')
  assert.equal(none.status, 404)
  assert.equal(none.text, '')
})

test('an unknown path is answered 404 with the path as asked for', () => {
  const { status, text, headers } = get(facts(), '/status/nope')
  assert.equal(status, 404)
  assert.equal(
    text,
    '{\r\n\t"error": "PathNotFound",\r\n\t"description": "Requested API entity \\"/status/nope\\" doesn\'t exist."\r\n}\r\n',
  )
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(get(facts(), '/status/angie/version/x').status, 404)
  assert.equal(get(facts(), '/stat').status, 404)
  assert.equal(get(facts(), '/status/http/upstreams/constructor').status, 404)
})

test('another method is answered 405 with its name and the path', () => {
  const { status, text, headers } = get(facts(), '/status/http/', 'pretty=off', 'PUT')
  assert.equal(status, 405)
  assert.equal(
    text,
    '{"error":"MethodNotAllowed","description":"The PUT method is not allowed for the requested API entity \\"/status/http/\\"."}',
  )
  assert.equal(headers['allow'], 'GET, HEAD')
})

test('primaries come first in order, then backups, then peers that only finish their calls', () => {
  const backend = group('backend', { b: { backup: true }, z: {}, a: { down: true } })
  const { zone } = backend.upstream
  zone.retired.push(peer(zone, 'old'), peer(zone, 'z'))
  const peers = value(facts({ groups: [backend] }), '/status/http/upstreams/backend/peers') as object
  const states = Object.entries(peers).map(([name, { state, backup }]) => `${name} ${state} ${backup}`)
  assert.deepEqual(states, ['z up false', 'a down false', 'b up true', 'old draining false'])
})

test('a peer without share says why', () => {
  const backend = group('backend', { a: { max_conns: 1 }, b: {} })
  backend.upstream.zone.peers.conns[backend.upstream.peers[0]!.index] = 1
  const from = facts({ groups: [backend] })
  const at = '/status/http/upstreams/backend/peers'
  assert.equal(value(from, `${at}/a/state`), 'busy')
  assert.equal(value(from, `${at}/a/evenkeel/excluded`), 'busy')
  assert.equal(value(from, `${at}/a/evenkeel/share`), 0)
  assert.equal(value(from, `${at}/b/evenkeel/share`), 1)
})

test('a peer of a group that asks for reports tells what became of them', () => {
  const asked = { name: '$load', read: () => '', orca: false, inverse: false, expire: 60_000 }
  const learning = {
    mode: 'header',
    factor: 0.9,
    errors: 3,
    decay: 0,
    account: undefined,
    value: asked,
  } as const
  const backend = group('backend', { a: {}, b: {} }, { learning })
  const { zone } = backend.upstream
  zone.peers.report[0] = 1 / 3
  zone.peers.reportAt[0] = now - 1500.4
  ignore(zone, 0, 'absent')
  ignore(zone, 0, 'absent')
  const from = facts({ groups: [backend, group('other', { a: {} })] })
  const at = '/status/http/upstreams/backend/peers'
  assert.deepEqual(value(from, `${at}/a/evenkeel/report`), {
    value: 0.333333,
    age: 1500,
    counts: true,
    ignored: { absent: 2 },
  })
  assert.deepEqual(value(from, `${at}/b/evenkeel/report`), { counts: false, ignored: {} })
  assert.equal(get(from, '/status/http/upstreams/other/peers/a/evenkeel/report').status, 404)
})

test('what is not there is left out: no last choice, no limit, no start of an outage', () => {
  const from = facts({ groups: [group('backend', { a: {} })] })
  const a = value(from, '/status/http/upstreams/backend/peers/a') as Record<string, object>
  assert.deepEqual(a['selected'], { current: 0, total: 0 })
  assert.equal('max_conns' in a, false)
  assert.deepEqual(a['responses'], {})
  assert.deepEqual(a['health'], { fails: 0, unavailable: 0, downtime: 0, header_time: 0, response_time: 0 })
})

test('zones of servers and of locations show what clients asked and got', () => {
  const zone = new ServerZone('front')
  const call = new Call()
  for (const [status, bytes] of [
    [404, 10],
    [200, 20],
    [0, 0],
  ] as const) {
    zone.begin()
    call.status = status
    call.bytesSent = bytes
    call.requestLength = 100
    zone.end(call)
  }
  zone.begin()
  const from = facts({
    serverZones: () => new Map([['front', zone]]),
    locationZones: () => new Map([['l', zone]]),
  })
  const shared = { responses: { 200: 1, 404: 1 }, data: { received: 300, sent: 30 } }
  assert.deepEqual(value(from, '/status/http/server_zones'), {
    front: { requests: { total: 4, processing: 1, discarded: 1 }, ...shared },
  })
  assert.deepEqual(value(from, '/status/http/location_zones'), {
    l: { requests: { total: 4, discarded: 1 }, ...shared },
  })
})

test('a location shows the part of the tree that its argument names, and what lies below', () => {
  assert.equal(apiPath('/status/', '/status/', '/status/'), '/status/')
  assert.equal(apiPath('/status/', '/status/', '/status/http/upstreams/'), '/status/http/upstreams/')
  assert.equal(apiPath('/status/http/upstreams', '/p/', '/p/backend'), '/status/http/upstreams/backend')
  assert.equal(apiPath('/status/http/upstreams/', '/p', '/p/backend'), '/status/http/upstreams/backend')
  assert.equal(apiPath('/status/angie/', undefined, '/anything'), '/status/angie/')
  assert.equal(apiPath('/status/', '/p/', '/elsewhere'), '/status/elsewhere')
  assert.equal(
    apiPath('/status/http/upstreams/', '/p/', Buffer.from('/p/ü').toString('latin1')),
    '/status/http/upstreams/ü',
  )
})
