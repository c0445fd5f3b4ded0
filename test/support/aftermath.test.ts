import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { assertSettled, type Looked } from './aftermath.ts'
import { backend } from './backend.ts'
import { dial } from './client.ts'
import { start } from './sidecar.ts'
import { udpClient } from './udp-client.ts'
import { udpPeer } from './udp-peer.ts'

/* This process stands for the program: its connections are looked at, and its metrics are whatever a test says. */

let metrics = ''
const admin = createHttpServer((_request, response) => response.end(metrics))
let program: Looked

before(async () => {
  admin.listen(0, '127.0.0.1')
  await once(admin, 'listening')
  program = {
    pid: process.pid,
    admin: `http://127.0.0.1:${(admin.address() as AddressInfo).port}`,
    file: '/dev/null',
    stderr: '',
    running: true,
  }
})

after(() => {
  admin.closeAllConnections()
  admin.close()
})

test('what is counted as in progress, or below nothing, is not settled', async () => {
  const series = '{upstream="u",peer="127.0.0.1:1"}'
  for (const line of [
    `evenkeel_peer_in_flight${series} 1`,
    `evenkeel_peer_in_flight${series} -1`,
    'evenkeel_upstream_retries_waiting{upstream="u"} 2',
    'evenkeel_connections_active 1',
    'evenkeel_connections_idle -1',
    'evenkeel_upstream_requests_total{upstream="u"} -3',
  ]) {
    metrics = `evenkeel_connections_idle 7\n${line}\n`
    await assert.rejects(assertSettled(program, { settleMs: 30 }), { message: /not settled/ }, line)
  }
  metrics = `evenkeel_peer_in_flight${series} 0\nevenkeel_connections_active 0\nevenkeel_peer_slope${series} -1\n`
  await assertSettled(program)
})

test('what comes to an end meanwhile is settled', async () => {
  metrics = 'evenkeel_connections_active 1\n'
  setTimeout(() => {
    metrics = 'evenkeel_connections_active 0\n'
  }, 60)
  await assertSettled(program)
})

test('alarms and a loop that was held up are told, unless a test has brought them about', async () => {
  metrics = 'nodejs_eventloop_lag_p99_seconds 1.2\n'
  await assert.rejects(assertSettled(program), { message: /held up for 1200 ms/ })
  await assertSettled(program, { lagMs: 2000 })
  metrics = ''
  for (const line of [
    '2026/01/01 00:00:00 [alert] 1#1: Error: no',
    'Uncaught Error: no',
    '(node:12) MaxListenersExceededWarning: Possible EventEmitter memory leak detected',
    'Error [ERR_HTTP_HEADERS_SENT]: Cannot set headers',
  ]) {
    const loud = { ...program, stderr: `fine\n${line}\n` }
    await assert.rejects(assertSettled(loud), { message: /alarms/ }, line)
    await assertSettled(loud, { alarms: / no$|Possible|Cannot/ })
  }
})

test('connections that are half closed, or open to peers beyond those kept idle, are told', async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).resume()
  const [socket] = await once(server, 'connection')
  const idle = (count: number) =>
    `evenkeel_upstream_idle_connections{upstream="u"} ${count}\nevenkeel_peer_in_flight{upstream="u",peer="127.0.0.1:${port}"} 0\n`
  metrics = idle(1)
  await assertSettled(program)
  metrics = idle(0)
  const soon = { settleMs: 30 }
  await assert.rejects(assertSettled(program, soon), {
    message: /1 connections to peers, 0 of them kept idle/,
  })
  metrics = idle(1)
  socket.end()
  await once(client, 'end')
  await assert.rejects(assertSettled(program, soon), { message: /half closed/ })
  client.destroy()
  await assertSettled(program)
  server.close()
})

test('sockets that were left open for datagrams of a peer are told', async () => {
  await using peer = await udpPeer()
  metrics = `evenkeel_peer_in_flight{upstream="stream/u",peer="${peer.address}"} 0\n`
  await assertSettled(program)
  await using client = await udpClient(peer.port)
  assert.ok(client.port > 0)
  await assert.rejects(assertSettled(program, { settleMs: 30 }), {
    message: /1 sockets for datagrams of peers/,
  })
})

test('metrics that cannot be read are told, unless the configuration keeps them from a test', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'evenkeel-aftermath-'))
  try {
    const file = join(folder, 'evenkeel.conf')
    const silent = { ...program, admin: 'http://127.0.0.1:9', file }
    await writeFile(file, 'admin 127.0.0.1:9;')
    await assert.rejects(assertSettled(silent), { message: /127\.0\.0\.1:9\/metrics cannot be read/ })
    await assertSettled({ ...silent, running: false })
    for (const text of ['admin off;', 'admin 127.0.0.1:9; admin_token_file token;']) {
      await writeFile(file, text)
      await assertSettled(silent)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a program is looked at as it is stopped: what it has not finished, and that it has not ended by itself', async () => {
  await using peer = await backend((x) => x.gone.then(() => {}))
  const text = `http { access_log off; server { listen 127.0.0.1:PORT; location / { proxy_pass http://${peer.address}; } } }`
  const sidecar = await start(text, { settleMs: 30 })
  using client = await dial(sidecar.port)
  await client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  while (peer.busy === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await assert.rejects(sidecar[Symbol.asyncDispose](), { message: /not settled/ })
  assert.ok(!sidecar.running)

  const other = await start(text)
  process.kill(other.pid, 'SIGKILL')
  await other.exited
  await assert.rejects(other[Symbol.asyncDispose](), { message: /ended by itself/ })
})
