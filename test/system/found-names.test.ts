// Names that a `proxy_pass` with variables comes to are looked up as requests bring them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ask } from '../support/client.ts'
import { neighbours } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

/** A server that goes wherever the request says. */
function anywhere(resolver = `resolver ${dns.address} ipv6=off;`, more = '', main = ''): string {
  return `
    ${main}
    http {
      ${resolver}
      upstream named { zone named 64k; server 127.0.0.1:1; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass http://$arg_to; ${more} } }
    }`
}

test('a name is looked up when a request brings it, and remembered', async () => {
  await using peers = await neighbours(1)
  await dns.has('app.example', ['127.0.0.1'], 60)
  await using sidecar = await start(anywhere())
  for (let i = 0; i < 3; i++) {
    const reply = await ask(sidecar.port, `/x?to=App.example:${peers.port}`)
    assert.deepEqual([reply.status, reply.body.toString()], [200, '1'])
  }
  await until(() => dns.asked('app.example') > 0)
  assert.equal(dns.asked('app.example'), 1)
  assert.deepEqual(
    peers.at(1).requests.map(({ target }) => target),
    Array(3).fill(`/x?to=App.example:${peers.port}`),
  )
})
