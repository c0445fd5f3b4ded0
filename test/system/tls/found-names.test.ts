import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Issuer } from '../../support/authority.ts'
import { ask } from '../../support/client.ts'
import { type DnsServer, dnsServer } from '../../support/dns-server.ts'
import { securePeer, seen, shown } from '../../support/secure-peer.ts'
import { start } from '../../support/sidecar.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const good = issuer.issue('good.test', { by: root })

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

test("the name that is looked up is sent and has to be the certificate's", async () => {
  const peer = await securePeer(shown(good), (x) => x.reply({ body: `${seen(x).servername}` }))
  await dns.has('good.test', ['127.0.0.1'], 60)
  await dns.has('other.test', ['127.0.0.1'], 60)
  await using sidecar = await start(`
    http {
      resolver ${dns.address} ipv6=off;
      server {
        listen 127.0.0.1:PORT;
        proxy_ssl_server_name on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile};
        location / { proxy_pass https://$arg_to; }
      }
    }`)
  const reply = await ask(sidecar.port, `/?to=good.test:${peer.port}`)
  assert.deepEqual([reply.status, reply.text], [200, 'good.test'])
  assert.equal((await ask(sidecar.port, `/?to=other.test:${peer.port}`)).status, 502)
  assert.equal(peer.requests.length, 1)
})
