import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { failing, GrpcClient, grpcPeer } from '../../support/grpc.ts'
import { Receiver } from '../../support/otlp.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

/** Calls by the status that peers ended them with, as `/metrics` has it. */
async function counted({ admin }: Sidecar): Promise<Record<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const samples = text.matchAll(/^evenkeel_peer_grpc_responses_total\{.*,code="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...samples].map(([, code, count]) => [code, Number(count)]))
}

/** Ends a call of one message with the status that it names, and no other. */
const asTold = () =>
  grpcPeer({
    unary: (call, done) => {
      const code = Number(call.request)
      if (code === status.OK) done(null, 'fine')
      else done(failing(code, 'as told'))
    },
    chat: () => {},
  })

test('calls are counted by their status over threads and reloads, those alone that have one', async () => {
  await using peer = await asTold()
  const config = (more = '') => `
    worker_processes 2;
    http {
      upstream talk { zone talk 64k; server ${peer.address} max_fails=0; }
      server { listen 127.0.0.1:PORT; http2 on; location / { grpc_pass grpc://talk; ${more} } }
    }`
  await using sidecar = await start(config())
  assert.deepEqual(await counted(sidecar), {})
  // Each its own connection, so that all threads have some.
  const call = async (message: string) => {
    using client = new GrpcClient(sidecar.port)
    return (await client.unary(message)).code
  }
  for (const code of [0, 0, 0, 5, 14, 14]) assert.equal(await call(String(code)), code)
  const seen = { OK: 3, NOT_FOUND: 1, UNAVAILABLE: 2 }
  const total = async () => Object.values(await counted(sidecar)).reduce((sum, one) => sum + one, 0)
  await until(async () => (await total()) === 6)
  assert.deepEqual(await counted(sidecar), seen)

  using client = new GrpcClient(sidecar.port)
  const left = client.chat()
  left.on('error', () => {})
  left.write('x')
  await until(() => peer.calls === 7)
  left.cancel()
  await sidecar.logged(/"reason":"client_abort"/)
  assert.deepEqual(await counted(sidecar), seen)

  await sidecar.reload(config('grpc_next_upstream off;'))
  assert.equal(await call('16'), 16)
  await until(async () => (await total()) === 7)
  assert.deepEqual(await counted(sidecar), { ...seen, UNAUTHENTICATED: 1 })
  const key = `/status/http/upstreams/talk/peers/${encodeURIComponent(peer.address)}/evenkeel/grpc_responses`
  assert.deepEqual(await sidecar.json(key), { ...seen, UNAUTHENTICATED: 1 })
})

test('spans and logs have the status that the client got, of the program’s own errors too', async () => {
  await using receiver = await new Receiver('http').listen()
  await using peer = await asTold()
  await using sidecar = await start(
    `http {
      log_format calls '<$sent_trailer_grpc_status|$sent_http_grpc_status>';
      access_log /dev/stdout calls;
      upstream talk { server ${peer.address} max_fails=0; }
      upstream nobody { server 127.0.0.1:1 down; }
      server { listen 127.0.0.1:PORT; http2 on; location / { grpc_pass grpc://talk; } }
      server { listen 127.0.0.1:PORT2; http2 on; location / { grpc_pass grpc://nobody; } }
    }`,
    { env: { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } },
  )
  using client = new GrpcClient(sidecar.port)
  using lost = new GrpcClient(sidecar.ports['PORT2']!)
  assert.equal((await client.unary('0')).code, status.OK)
  await sidecar.logged(/<0\|->/)
  assert.equal((await client.unary('14')).code, status.UNAVAILABLE)
  await sidecar.logged(/<-\|14>/)
  assert.equal((await lost.unary('0')).code, status.UNAVAILABLE)
  await sidecar.logged(/(?:<-\|14>\s+){2}/)
  const spans = await receiver.received(5)
  const told = spans
    .toSorted((a, b) => a.start - b.start || a.kind - b.kind)
    .map(({ kind, attributes, status }) => [
      kind,
      attributes['rpc.grpc.status_code'],
      attributes['network.protocol.version'],
      attributes['error.type'],
      status,
    ])
  assert.deepEqual(told, [
    [2, 0, '2', undefined, 0],
    [3, 0, '2', undefined, 0],
    [2, 14, '2', 'grpc_14', 2],
    [3, 14, '2', 'grpc_14', 2],
    [2, 14, '2', '502', 2],
  ])
})
