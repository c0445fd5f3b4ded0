import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { ended, GrpcClient, type GrpcPeer, grpcPeer, type Talk } from '../../support/grpc.ts'
import { type Http2Peer, http2Peer } from '../../support/http2-peer.ts'
import { start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

/** Calls over one connection. */
const calls = process.env['TEST_LONG'] === '1' ? 10_000 : 1000

const talk = (peer: GrpcPeer): Talk => ({
  unary: (call, done) => setImmediate(() => done(null, `${peer.port} ${call.request}`)),
  chat(call) {
    call.on('data', (part: string) => call.write(part))
    call.on('end', () => call.end())
  },
})

/** A group, and what its location says more. */
const configuration = (group: string, more = '') => `
  worker_processes 1;
  http {
    access_log off;
    upstream up { ${group} }
    server { listen 127.0.0.1:PORT; http2 on; http2_max_concurrent_streams 200; location / { grpc_pass grpc://up; ${more} } }
  }`

/** Makes many calls, so many at a time. @param more asked before each @returns how often each answer came, by its first word */
async function many(
  client: GrpcClient,
  count: number,
  atOnce = 50,
  more = () => true,
): Promise<Map<string, number>> {
  const seen = new Map<string, number>()
  let left = count
  const lane = async () => {
    while (left > 0 && more()) {
      left -= 1
      const { code, details, messages } = await client.unary('x')
      const word = code === status.OK ? messages[0]!.split(' ')[0]! : `${code} ${details}`
      seen.set(word, (seen.get(word) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return seen
}

test(`${calls} calls over one connection are spread as the method says`, { timeout: 120_000 }, async () => {
  await using one = await grpcPeer(talk)
  await using two = await grpcPeer(talk)
  await using three = await grpcPeer(talk)
  await using it = await start(
    // A connection that has had its share of requests is given up, and its client begins another one.
    configuration(`server ${one.address} weight=2; server ${two.address}; server ${three.address};`).replace(
      'http2 on;',
      `http2 on; keepalive_requests ${2 * calls};`,
    ),
  )
  using client = new GrpcClient(it.port)
  const seen = await many(client, calls)
  assert.deepEqual(
    seen,
    new Map([one, two, three].map(({ port }, i) => [String(port), i === 0 ? calls / 2 : calls / 4])),
  )
})

test('a peer that shuts down in order, and one that comes back, cost no call', async () => {
  await using one = await grpcPeer(talk)
  const two = await grpcPeer(talk)
  const { port } = two
  await using it = await start(
    configuration(
      `server ${one.address}; server 127.0.0.1:${port} fail_timeout=1s;`,
      'grpc_next_upstream error non_idempotent;',
    ),
  )
  using client = new GrpcClient(it.port)
  let goesOn = true
  const load = many(client, 1e6, 10, () => goesOn)
  try {
    await until(() => two.calls > 50)
    await two.shutDown()
    const before = one.calls
    await until(() => one.calls > before + 100)
    await using again = await grpcPeer(talk, port)
    await until(() => again.calls > 20)
    goesOn = false
    assert.deepEqual(new Set((await load).keys()), new Set([String(one.port), String(port)]))
  } finally {
    goesOn = false
    await two[Symbol.asyncDispose]()
  }
})

test('a peer that sends its clients elsewhere again and again costs no call, listed or not', async () => {
  await using peer = await http2Peer(
    (stream) => {
      const { session } = stream
      stream.resume()
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(Buffer.of(0, 0, 0, 0, 2, 0x6f, 0x6b))
        // What it has not seen by then it will not look at.
        if (stream.id! % 31 === 0) session?.close()
      })
    },
    { settings: { maxConcurrentStreams: 7 } },
  )
  await using it = await start(configuration(`server ${peer.address};`, 'grpc_next_upstream off;'))
  using client = new GrpcClient(it.port)
  assert.deepEqual(await many(client, 500, 40), new Map([['ok', 500]]))
  assert.ok(peer.connections > 10, `${peer.connections} connections`)
})

test('a new peer gets its share although a connection is old', async () => {
  await using one = await grpcPeer(talk)
  await using two = await grpcPeer(talk)
  await using it = await start(configuration(`server ${one.address};`))
  using client = new GrpcClient(it.port)
  const old = client.chat()
  const over = ended(old)
  old.write('a')
  await new Promise((resolve) => old.once('data', resolve))
  await it.reload(configuration(`server ${one.address}; server ${two.address};`))
  const seen = await many(client, 100, 10)
  assert.deepEqual(
    seen,
    new Map([
      [String(one.port), 50],
      [String(two.port), 50],
    ]),
  )
  // The one that is as old as the connection goes on.
  old.write('b')
  assert.equal(await new Promise((resolve) => old.once('data', resolve)), 'b')
  old.end()
  assert.equal((await over).code, status.OK)
})

test('a peer that is gone in the middle of calls is reported as such, and the next one asked where it may be', async () => {
  const held: Http2Peer = await http2Peer((stream) => {
    stream.resume()
  })
  await using good = await grpcPeer(talk)
  await using it = await start(
    configuration(
      `server ${held.address}; server ${good.address} backup;`,
      'grpc_next_upstream error non_idempotent;',
    ),
  )
  using client = new GrpcClient(it.port)
  const waiting = [client.unary('a'), client.unary('b')]
  await until(() => held.requests === 2)
  await held[Symbol.asyncDispose]()
  for (const called of waiting) assert.equal((await called).code, status.OK)
})
