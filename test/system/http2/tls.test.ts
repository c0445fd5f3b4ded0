import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { after, before, test } from 'node:test'
import { Issuer } from '../../support/authority.ts'
import { type Backend, backend } from '../../support/backend.ts'
import { answerOn, Http2, http2 } from '../../support/http2-client.ts'
import { type Lab, lab } from '../../support/invariants.ts'
import { curl, dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const a = issuer.issue('a.test', { by: root })
const b = issuer.issue('b.test', { by: root })
const own = issuer.issue('client', { by: root })

const shows = (issued: { certFile: string; keyFile: string }) =>
  `ssl_certificate ${issued.certFile}; ssl_certificate_key ${issued.keyFile};`

let peer: Backend
let it: Lab

before(async () => {
  peer = await backend(async (x) => x.reply({ body: (await x.body()).body }))
  it = await lab(
    `upstream up { server ${peer.address}; }
     server {
       listen 127.0.0.1:PORT ssl; listen 127.0.0.1:PORT2; http2 on; server_name a.test; ${shows(a)}
       ssl_verify_client optional; ssl_client_certificate ${root.certFile};
       location / { return 200 "a $http2 $server_protocol $ssl_protocol $ssl_alpn_protocol $scheme $ssl_client_verify"; }
       location /up { proxy_pass http://up; }
     }
     server {
       listen 127.0.0.1:PORT ssl; listen 127.0.0.1:PORT3 ssl http2; server_name b.test; ${shows(b)}
       location / { return 200 "b $http2 $server_protocol"; }
     }`,
    [peer],
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

const secure = (port: number, servername = 'a.test') =>
  new Http2(connect(`https://${servername}:${port}`, { host: '127.0.0.1', servername, ca: root.cert }))

test('curl speaks HTTP/2 and HTTP/1.1 over TLS 1.2 and 1.3, with and without a certificate of its own', async () => {
  const url = `https://a.test:${it.port}/`
  const said: string[] = []
  for (const version of ['1.2', '1.3']) {
    for (const http of ['2', '1.1']) {
      for (const shown of [[], ['--cert', own.certFile, '--key', own.keyFile]]) {
        const tls = ['--cacert', root.certFile, `--tlsv${version}`, '--tls-max', version, `--http${http}`]
        const { code, status, body } = await curl(url, ...tls, ...shown)
        assert.deepEqual([code, status], [0, 200])
        said.push(body)
      }
    }
  }
  assert.deepEqual(said, [
    'a h2 HTTP/2.0 TLSv1.2 h2 https NONE',
    'a h2 HTTP/2.0 TLSv1.2 h2 https SUCCESS',
    'a  HTTP/1.1 TLSv1.2 http/1.1 https NONE',
    'a  HTTP/1.1 TLSv1.2 http/1.1 https SUCCESS',
    'a h2 HTTP/2.0 TLSv1.3 h2 https NONE',
    'a h2 HTTP/2.0 TLSv1.3 h2 https SUCCESS',
    'a  HTTP/1.1 TLSv1.3 http/1.1 https NONE',
    'a  HTTP/1.1 TLSv1.3 http/1.1 https SUCCESS',
  ])
})

test('each server says by itself whether it speaks HTTP/2, or its address says so for all', async () => {
  const asked = (name: string, port: number) =>
    dialTls(port, { servername: name, ALPNProtocols: ['h2', 'http/1.1'] }).then((client) => {
      client.close()
      return client.secure.alpnProtocol
    })
  assert.equal(await asked('a.test', it.port), 'h2')
  assert.equal(await asked('b.test', it.port), 'http/1.1')
  assert.equal(await asked('b.test', it.sidecar.ports['PORT3']!), 'h2')
  const { body } = await curl(`https://b.test:${it.sidecar.ports['PORT3']}/`, '--cacert', root.certFile)
  assert.equal(body, 'b h2 HTTP/2.0')
})

test('a client that names no protocol speaks HTTP/1.1, whatever it begins with', async () => {
  const client = await dialTls(it.port, { servername: 'a.test' })
  await client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  assert.equal((await client.reply()).status, 505)
  client.close()
})

test('the same server speaks HTTP/2 without TLS where its address has none', async () => {
  await using client = await http2(it.sidecar.ports['PORT2']!)
  assert.match((await client.ask({ ':authority': 'a.test' })).body, /^a h2c HTTP\/2\.0 .*http $/)
})

test('bodies pass over TLS both ways, many at once', async () => {
  await it.begin()
  await using client = secure(it.port)
  const bodies = [1, 100_000, 1_000_000].map((length) => Buffer.alloc(length, 'x'))
  const answers = await Promise.all(
    bodies.map((body) => client.ask({ ':method': 'POST', ':path': '/up' }, body)),
  )
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.length]),
    bodies.map(({ length }) => [200, length]),
  )
  await it.settle(3)
})

test('a client that goes, politely or not, leaves nothing behind', async () => {
  await it.begin()
  const before = peer.requests.length
  peer.script = async (x) => void (await x.gone)
  const [polite, rude] = [secure(it.port), secure(it.port)]
  const stream = polite.begin({ ':path': '/up' })
  rude.begin({ ':path': '/up' })
  await Promise.all([polite, rude].map((client) => client.ask({ ':path': '/' })))
  while (peer.requests.length < before + 2) await new Promise((resolve) => setTimeout(resolve, 5))
  stream.close(8)
  await answerOn(stream)
  polite.session.close()
  rude.session.destroy()
  await it.settle(4)
  await it.left()
  peer.script = (x) => x.reply()
})
