import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { Attempt } from '../../feedback/outcome.ts'
import { Variables } from '../../feedback/variables.ts'
import { group } from '../support/peers.ts'

const upstream = group([1, 1], { kind: 'stream', name: 'stream/u' })
const variables = new Variables({ hostname: 'box', pid: 7, version: '1.2.3' }, 'stream')

/** A session that found its first peer shut, and the second one open. */
function session(): Call {
  const call = new Call()
  call.protocol = 'TCP'
  call.remoteAddr = '127.0.0.1'
  call.remotePort = '4711'
  call.realipRemoteAddr = '10.0.0.1'
  call.serverAddr = '127.0.0.2'
  call.serverPort = '53'
  call.connection = 9
  call.status = 200
  call.requestLength = 11
  call.bytesSent = 22
  call.startedAt = 1000
  call.endedAt = 3500
  call.proxied = { addr: '127.0.0.1', port: '4711', serverAddr: '192.0.2.1', serverPort: '443' }
  const [shut, open] = upstream.peers.map((peer) => new Attempt(upstream, peer, 1000, 'round_robin'))
  Object.assign(shut!, { reason: 'refused', ending: 'error', responseMs: 1 })
  Object.assign(open!, {
    connectMs: 2,
    headerMs: 30,
    responseMs: 2400,
    bytesSent: 11,
    bytesReceived: 22,
    ending: 'ok',
  })
  call.attempts.push(shut!, open!)
  return call
}

const read = (text: string, call = session()) => variables.compile(text)(call)

test('a session tells of its client, its server and itself', () => {
  assert.equal(
    read(
      '$remote_addr:$remote_port $realip_remote_addr $server_addr:$server_port $protocol $connection $hostname $pid',
    ),
    '127.0.0.1:4711 10.0.0.1 127.0.0.2:53 TCP 9 box 7',
  )
  assert.equal(read('$status $bytes_received $bytes_sent $session_time'), '200 11 22 2.500')
  assert.equal(read('$binary_remote_addr'), '\x7f\0\0\x01')
  assert.equal(
    read('$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port'),
    '127.0.0.1 4711 192.0.2.1 443',
  )
  assert.match(read('$time_iso8601 $time_local $msec'), /^\d{4}-.*T.* \d\d\/\w+\/\d{4}.* \d+\.\d{3}$/)
})

test('a session tells of each attempt, and has a dash for what was not reached', () => {
  assert.equal(read('$upstream_addr'), 'a, b')
  assert.equal(read('$upstream_connect_time'), '-, 0.002')
  assert.equal(read('$upstream_first_byte_time'), '-, 0.030')
  assert.equal(read('$upstream_session_time'), '0.001, 2.400')
  assert.equal(read('$upstream_bytes_sent'), '0, 11')
  assert.equal(read('$upstream_bytes_received'), '0, 22')
  assert.equal(read('$upstream_reason'), 'refused, -')
  assert.equal(read('$upstream_pick'), 'round_robin, round_robin')
  assert.equal(read('$upstream_track'), 'stable')
  assert.equal(read('$upstream_sticky_status'), '')
  assert.equal(read('$upstream_addr$upstream_connect_time', new Call()), '')
})

test('that nobody was eligible is told by the name of the group, as written', () => {
  const call = new Call()
  const attempt = new Attempt(upstream, undefined, 0, '')
  attempt.ending = 'no_live'
  call.attempts.push(attempt)
  assert.equal(read('$upstream_addr $upstream_session_time', call), 'u 0.000')
})

test('what requests alone have is unknown there', () => {
  for (const name of [
    'request',
    'uri',
    'http_host',
    'args',
    'upstream_status',
    'upstream_http_x',
    'orca_rps',
    'trace_id',
  ]) {
    assert.throws(() => variables.compile(`$${name}`), { message: `unknown "${name}" variable` })
  }
})
