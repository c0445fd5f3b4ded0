import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { change } from '../../support/changing.ts'
import { dial } from '../../support/client.ts'
import { deafPeer } from '../../support/deaf-peer.ts'
import { start } from '../../support/sidecar.ts'
import { tcpPeer } from '../../support/tcp-peer.ts'
import { until } from '../../support/until.ts'

for (const threads of [1, 2]) {
  test(`a session that looks for a peer while peers change goes on among those that there are now: ${threads} thread(s)`, async () => {
    await using deaf = await deafPeer({ backlog: 1 })
    await deaf.fill(2)
    await using fresh = await tcpPeer((session) => void session.write('here'))
    await using sidecar = await start(`
      worker_processes ${threads};
      stream {
        upstream u { zone u 64k; server 127.0.0.1:${deaf.port} max_fails=0; server 127.0.0.1:1 max_fails=0 down; }
        server { listen 127.0.0.1:PORT; proxy_pass u; proxy_connect_timeout 700ms; proxy_next_upstream_tries 2; }
      }`)
    const client = await dial(sidecar.port)
    await until(async () => {
      const peers = await sidecar.json<Record<string, { selected: { current: number } }>>(
        '/status/stream/upstreams/u/peers/',
      )
      return Object.values(peers).some(({ selected }) => selected.current === 1)
    })
    await change(sidecar, 'POST', 'stream%2Fu/peers', { server: fresh.address })
    await change(sidecar, 'PATCH', `stream%2Fu/peers/127.0.0.1:${deaf.port}`, { state: 'down' })
    await wait(50)
    assert.equal(`${await client.inbox.take(4)}`, 'here')
    client.close()
    await sidecar.logged(/"reason":"timeout_connect"/)
    const attempts = sidecar.stdout.match(/"peer":"[^"]*"/g)
    assert.deepEqual(attempts, [`"peer":"127.0.0.1:${deaf.port}"`, `"peer":"${fresh.address}"`])
  })
}
