import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../support/backend.ts'
import { ask, dial } from '../support/client.ts'
import { type Sidecar, start } from '../support/sidecar.ts'
import { echoPeer } from '../support/tcp-peer.ts'
import { until } from '../support/until.ts'

/** Values of metrics whose lines begin so, by the rest of the line. */
async function metrics({ admin }: Sidecar, beginning: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`evenkeel_${beginning}`))
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice('evenkeel_'.length, at), Number(line.slice(at + 1))]
    }),
  )
}

interface Zone {
  readonly connections: { readonly total: number; readonly processing: number }
  readonly sessions: { readonly success: number; readonly bad_gateway: number }
  readonly data: { readonly received: number; readonly sent: number }
}

test('groups of one name in http and stream are told apart everywhere, over threads, while sessions go on and after', async () => {
  await using web = await backend({ body: 'web' })
  await using echo = await echoPeer()
  await using sidecar = await start(`
    worker_processes 2;
    http {
      access_log off;
      upstream app { zone app 64k; server ${web.address}; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://app; } }
    }
    stream {
      access_log off;
      upstream app { zone sapp 64k; server ${echo.address}; }
      upstream gone { server 127.0.0.1:1 down; }
      server { listen 127.0.0.1:PORT2; status_zone tcp; proxy_pass app; }
      server { listen 127.0.0.1:PORT3; status_zone tcp; proxy_pass gone; }
    }`)
  const zone = () => sidecar.json<Zone>('/status/stream/server_zones/tcp')
  const clients = await Promise.all([1, 2, 3].map(() => dial(sidecar.ports['PORT2']!)))
  for (const client of clients) {
    await client.write('hello')
    assert.equal(`${await client.inbox.take(5)}`, 'hello')
  }
  using refused = await dial(sidecar.ports['PORT3']!)
  await refused.closed
  await ask(sidecar.port, '/')

  const tree = await sidecar.json<{
    http: { upstreams: object }
    stream: { upstreams: Record<string, { peers: Record<string, { selected: object }> }> }
  }>('/status/')
  assert.deepEqual(Object.keys(tree.http.upstreams), ['app'])
  assert.deepEqual(Object.keys(tree.stream.upstreams), ['app', 'gone'])
  const { selected } = await sidecar.json<{ selected: { current: number; total: number } }>(
    `/status/stream/upstreams/app/peers/${echo.address}/`,
  )
  assert.deepEqual([selected.current, selected.total], [3, 3])
  await until(async () => (await zone()).sessions.bad_gateway === 1)
  const during = await zone()
  assert.deepEqual(during.connections, { total: 4, processing: 3, discarded: 0, passed: 0 })
  assert.deepEqual([during.sessions.success, during.sessions.bad_gateway], [0, 1])
  const peer = `{upstream="stream/app",peer="${echo.address}",track="stable"}`
  assert.equal((await metrics(sidecar, 'peer_in_flight'))[`peer_in_flight${peer}`], 3)
  // A connection is counted as it is made, and not when the session ends.
  assert.equal((await metrics(sidecar, 'peer_connects'))[`peer_connects_total${peer}`], 3)
  assert.deepEqual(Object.keys(await metrics(sidecar, 'upstream_request_seconds_count')), [
    'upstream_request_seconds_count{upstream="app",track="stable"}',
  ])

  for (const client of clients) client.end()
  await until(async () => (await zone()).connections.processing === 0)
  const after = await zone()
  assert.deepEqual([after.sessions.success, after.sessions.bad_gateway], [3, 1])
  assert.deepEqual(after.data, { received: 15, sent: 15 })
  assert.deepEqual(await metrics(sidecar, 'upstream_session_seconds_count'), {
    'upstream_session_seconds_count{upstream="stream/app",track="stable"}': 3,
    'upstream_session_seconds_count{upstream="stream/gone",track="stable"}': 1,
  })
  const codes = await metrics(sidecar, 'upstream_responses_total{upstream="stream/')
  assert.deepEqual(codes, {
    'upstream_responses_total{upstream="stream/app",track="stable",code="200"}': 3,
    'upstream_responses_total{upstream="stream/app",track="stable",code="502"}': 0,
    'upstream_responses_total{upstream="stream/gone",track="stable",code="200"}': 0,
    'upstream_responses_total{upstream="stream/gone",track="stable",code="502"}': 1,
  })
  const explained = await (await fetch(`${sidecar.admin}/explain/stream/app?format=text`)).text()
  assert.match(explained, /^upstream stream\/app, round_robin, a single peer\n/)
  assert.match(explained, /retries: 0 in 3 sessions, 0 waiting/)
})
