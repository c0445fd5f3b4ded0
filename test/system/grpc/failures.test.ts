import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { ended, failing, GrpcClient, type GrpcPeer, grpcPeer } from '../../support/grpc.ts'
import { type Http2Peer, http2Peer } from '../../support/http2-peer.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

let good: GrpcPeer
/** Ends every call with the status that its message names. */
let bad: GrpcPeer
/** Answers by plain HTTP, with the status of the path. */
let web: Http2Peer
let it: Sidecar
let client: GrpcClient

/** Ports by locations; `/test.Talk/unary` is the path of every call, so each case has a server of its own. */
const cases = ['listed', 'passed', 'late', 'web', 'nobody', 'body'] as const

before(async () => {
  good = await grpcPeer({
    unary: (call, done) => done(null, `good ${call.request}`),
    recite: (call) => {
      call.write('one')
      call.end()
    },
  })
  bad = await grpcPeer({
    unary: (call, done) => done(failing(Number(call.request), 'bad')),
    recite: (call) => {
      call.write('one')
      call.emit('error', failing(Number(call.request), 'bad'))
    },
  })
  web = await http2Peer((stream) => {
    stream.respond({ ':status': 503, 'content-type': 'text/html' })
    stream.end('<p>sorry')
  })
  const group = (name: string, lines: string) => `upstream ${name} { ${lines} }`
  const server = (i: number, text: string) =>
    `server { listen 127.0.0.1:PORT${i === 0 ? '' : i + 1}; http2 on; ${text} location / { grpc_pass grpc://${cases[i]}; } }`
  const both = `server ${bad.address} max_fails=0; server ${good.address} backup;`
  it = await start(
    `worker_processes 1;
     http {
       ${group('listed', both)} ${group('passed', `least_time header; server ${bad.address};`)}
       ${group('late', `server ${bad.address};`)}
       ${group('web', `server ${web.address};`)} ${group('nobody', 'server 127.0.0.1:PORT9;')} ${group('body', both)}
       ${server(0, 'grpc_next_upstream grpc_unavailable grpc_internal;')}
       ${server(1, '')}
       ${server(2, 'grpc_next_upstream grpc_unavailable;')}
       ${server(3, '')}
       ${server(4, '')}
       ${server(5, 'client_max_body_size 1k; grpc_next_upstream off;')}
     }`,
  )
  client = new GrpcClient(it.port)
})

after(async () => {
  client[Symbol.dispose]()
  await it[Symbol.asyncDispose]()
  await good[Symbol.asyncDispose]()
  await bad[Symbol.asyncDispose]()
  await web[Symbol.asyncDispose]()
})

function clientOf(name: (typeof cases)[number]): GrpcClient {
  return new GrpcClient(it.ports[`PORT${cases.indexOf(name) + 1}`.replace(/^PORT1$/, 'PORT')]!)
}

test('a listed status goes on to another peer, and any other to the client', async () => {
  const called = await client.unary(String(status.UNAVAILABLE))
  assert.equal(called.code, status.OK, called.details)
  assert.deepEqual(called.messages, ['good 14'])
  await it.logged(/"reason":"grpc_unavailable","status":200,.*"grpc_status":14,.*"grpc_status":0/)
  const other = await client.unary(String(status.DATA_LOSS))
  assert.equal(other.code, status.DATA_LOSS)
})

test('a status that is not listed is the client’s, and a failure for least_time', async () => {
  using client = clientOf('passed')
  for (const code of [status.UNAVAILABLE, status.UNAVAILABLE, status.NOT_FOUND]) {
    assert.equal((await client.unary(String(code))).code, code)
  }
  const text = await (await fetch(`${it.admin}/metrics`)).text()
  const [, ok] = /evenkeel_peer_success_ratio\{[^}]*upstream="passed"[^}]*\} ([\d.]+)/.exec(text) ?? []
  assert.ok(ok !== undefined && Number(ok) < 1, `${ok}`)
})

test('a listed status that comes after messages counts against the peer', async () => {
  using client = clientOf('late')
  const call = client.recite(String(status.UNAVAILABLE))
  const parts: string[] = []
  call.on('data', (part: string) => parts.push(part)).on('error', () => {})
  assert.equal((await ended(call)).code, status.UNAVAILABLE)
  assert.deepEqual(parts, ['one'])
  await it.logged(/recite".*"ending":"http","reason":"grpc_unavailable"/)
})

test('a peer that answers by plain HTTP is passed on, and clients know what it means', async () => {
  using client = clientOf('web')
  assert.equal((await client.unary('x')).code, status.UNAVAILABLE)
})

test('own errors have the status of HTTP and that of gRPC', async () => {
  using nobody = clientOf('nobody')
  const called = await nobody.unary('x')
  assert.equal(called.code, status.UNAVAILABLE)
  await it.logged(/"path":"\/test.Talk\/unary","status":502/)
  using body = clientOf('body')
  assert.equal((await body.unary('x'.repeat(5000))).code, status.RESOURCE_EXHAUSTED)
  const plain = await fetch(`${it.url.replace(String(it.port), String(it.ports['PORT5']))}/`, {
    method: 'POST',
    headers: { 'content-type': 'application/grpc+proto' },
  })
  assert.equal(plain.status, 502)
  assert.equal(plain.headers.get('grpc-status'), '14')
  assert.equal(plain.headers.get('grpc-message'), 'Bad Gateway')
  assert.equal(await plain.text(), '')
  const page = await fetch(`${it.url.replace(String(it.port), String(it.ports['PORT5']))}/`)
  assert.match(await page.text(), /<h1>502/)
})
