import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { failing, GrpcClient, grpcPeer } from '../../support/grpc.ts'
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
