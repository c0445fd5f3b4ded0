import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { after, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import { ask } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { curl, dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const middle = issuer.issue('middle', { by: root, authority: true })
const lower = issuer.issue('lower', { by: middle, authority: true })
const a = issuer.issue('a.test', { by: root })
const aRsa = issuer.issue('a-rsa', { by: root, hosts: ['a.test'], kind: 'rsa' })
const b = issuer.issue('b.test', { by: root, hosts: ['b.test', '*.b.test'] })
const client = issuer.issue('client', { by: root, subject: '/C=CH/O=Größe, Inc./CN=client' })
const deep = issuer.issue('deep', { by: middle })
const deeper = issuer.issue('deeper', { by: lower })
const stranger = issuer.issue('stranger')
const expired = issuer.issue('expired', { by: root, days: -1 })
const revoked = issuer.issue('revoked', { by: root })
const crl = issuer.revoked(root, revoked)

const several = issuer.issue('several', { by: root, subject: '/C=CH/O=A, B+OU=x/CN=ü' })

const shows = (issued: { certFile: string; keyFile: string }) =>
  `ssl_certificate ${issued.certFile}; ssl_certificate_key ${issued.keyFile};`

/** Two certificates by SNI, and what else of servers there is. */
const config = `
error_log stderr info;
http {
  access_log off;
  server {
    listen 127.0.0.1:PORT ssl;
    server_name a.test;
    ${shows(a)} ${shows(aRsa)}
    status_zone a;
    location / { return 200 "a $ssl_protocol $ssl_server_name $scheme $https"; }
    location /all { return 200 "$ssl_cipher|$ssl_session_reused|$ssl_client_verify|$ssl_ciphers|$ssl_curves|$ssl_alpn_protocol"; }
  }
  server {
    listen 127.0.0.1:PORT ssl;
    server_name b.test *.b.test ~^b\\d+\\.test$;
    ${shows(b)}
    location / { return 200 "b $ssl_protocol"; }
  }
  server { listen 127.0.0.1:PORT ssl; server_name away.test; ssl_reject_handshake on; }
  server { listen 127.0.0.1:PORT ssl; server_name bare.test; location / { return 200 bare; } }
  server { listen 127.0.0.1:PORT ssl; server_name old.test; ${shows(a)} ssl_protocols TLSv1.2; ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256;
    location / { return 200 "$ssl_protocol $ssl_cipher"; } }
  server { listen 127.0.0.1:PORT ssl; server_name new.test; ${shows(a)} ssl_protocols TLSv1.3; location / { return 200 $ssl_protocol; } }
  server {
    listen 127.0.0.1:PORT4 ssl;
    ${shows(a)}
    ssl_client_certificate ${root.certFile};
    ssl_verify_client on;
    location / { return 200 "unnamed $ssl_client_verify"; }
  }
  server {
    listen 127.0.0.1:PORT ssl;
    server_name must.test;
    ${shows(a)}
    ssl_client_certificate ${root.certFile};
    ssl_verify_client on;
    ssl_crl ${crl};
    status_zone must;
    location / { return 200 "$ssl_client_verify|$ssl_client_s_dn|$ssl_client_i_dn|$ssl_client_serial|$ssl_client_fingerprint|$ssl_client_v_remain|$ssl_client_v_end"; }
    location /raw { return 200 "$ssl_client_raw_cert"; }
    location /escaped { return 200 "$ssl_client_escaped_cert"; }
    location /folded { return 200 "$ssl_client_cert"; }
  }
  server {
    listen 127.0.0.1:PORT ssl;
    server_name may.test;
    ${shows(a)}
    ssl_client_certificate ${root.certFile};
    ssl_verify_client optional;
    location / { return 200 $ssl_client_verify; }
  }
  server {
    listen 127.0.0.1:PORT ssl;
    server_name any.test;
    ${shows(a)}
    ssl_verify_client optional_no_ca;
    location / { return 200 $ssl_client_verify; }
  }
  server {
    listen 127.0.0.1:PORT ssl;
    server_name shallow.test;
    ${shows(a)}
    ssl_client_certificate ${root.certFile};
    ssl_verify_client on;
    ssl_verify_depth 0;
    error_page 495 =403 /refused;
    error_page 496 =401 /refused;
    location / { return 200 $ssl_client_verify; }
    location /refused { return 200 "refused $ssl_client_verify"; }
  }
  server {
    listen 127.0.0.1:PORT2 ssl;
    server_name other.test;
    ${shows(b)}
    error_page 497 =301 https://$host:PORT2$request_uri;
    location / { return 200 other; }
  }
  server {
    listen 127.0.0.1:PORT2 ssl;
    server_name named.test;
    ${shows(b)}
    ssl_client_certificate ${root.certFile};
    ssl_verify_client optional;
    location / { return 200 "$ssl_client_s_dn|$ssl_client_s_dn_legacy|$ssl_client_i_dn_legacy|$ssl_early_data"; }
  }
  server { listen 127.0.0.1:PORT3 ssl default_server; ssl_reject_handshake on; }
  server { listen 127.0.0.1:PORT3 ssl; server_name in.test; ${shows(b)} location / { return 200 in; } }
}`
const sidecar: Sidecar = await start(config)
after(() => sidecar[Symbol.asyncDispose]())

const url = (host: string, path = '/') => `https://${host}:${sidecar.port}${path}`
const trusted = ['--cacert', root.certFile]
const showing = (issued: { certFile: string; keyFile: string }) => [
  '--cert',
  issued.certFile,
  '--key',
  issued.keyFile,
]

test('names of certificates are written as OpenSSL writes them, now and before', async () => {
  const host = `https://named.test:${sidecar.ports['PORT2']}/`
  const { body } = await curl(host, '-k', ...showing(several))
  assert.equal(body, 'CN=\\C3\\BC,O=A\\, B+OU=x,C=CH|/C=CH/OU=x+O=A, B/CN=\\xC3\\xBC|/CN=root|')
})

for (const version of ['1.2', '1.3']) {
  const only = [`--tlsv${version}`, '--tls-max', version]
  test(`curl over TLS ${version} is shown the certificate of the server that it names`, async () => {
    const one = await curl(url('a.test'), ...trusted, ...only)
    assert.equal(one.body, `a TLSv${version} a.test https on`)
    for (const host of ['b.test', 'x.b.test'])
      assert.equal((await curl(url(host), ...trusted, ...only)).body, `b TLSv${version}`)
    // Nobody is called so: the default server's certificate does not fit.
    assert.equal((await curl(url('nobody.test'), ...trusted, ...only)).code, 60)
    assert.equal((await curl(url('nobody.test'), '-k', ...only)).status, 200)
  })

  test(`curl over TLS ${version} with and without a client certificate`, async () => {
    const good = await curl(url('must.test'), '-k', ...only, ...showing(client))
    assert.match(
      good.body,
      /^SUCCESS\|CN=client,O=Gr\\C3\\B6\\C3\\9Fe\\, Inc\.,C=CH\|CN=root\|[0-9A-F]+\|[0-9a-f]{40}\|1\|\w{3} .* GMT$/,
    )
    const none = await curl(url('must.test'), '-k', ...only)
    assert.equal(none.status, 400)
    assert.match(none.body, /No required SSL certificate was sent/)
    const strange = await curl(url('must.test'), '-k', ...only, ...showing(stranger))
    assert.equal(strange.status, 400)
    assert.match(strange.body, /The SSL certificate error/)
    await sidecar.logged(/client SSL certificate verify error: \(3:unable to get certificate CRL\), client/)
  })
}

test('a client that knows one kind of key alone is shown the certificate of that kind', async () => {
  for (const kind of ['ECDSA', 'RSA']) {
    const options = {
      servername: 'a.test',
      maxVersion: 'TLSv1.2',
      ciphers: `ECDHE-${kind}-AES128-GCM-SHA256`,
    } as const
    using one = await dialTls(sidecar.port, options)
    assert.equal(
      new X509Certificate(one.secure.getPeerCertificate().raw).publicKey.asymmetricKeyType,
      kind === 'RSA' ? 'rsa' : 'ec',
    )
  }
})

test('names by regular expression choose the certificate too', async () => {
  using one = await dialTls(sidecar.port, { servername: 'B12.test' })
  assert.equal(one.secure.getPeerCertificate().subject.CN, 'b.test')
})

test('protocols and ciphers are those of the server that is named', async () => {
  assert.equal((await curl(url('old.test'), '-k')).body, 'TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256')
  assert.equal((await curl(url('old.test'), '-k', '--tlsv1.3')).code, 35)
  assert.equal((await curl(url('new.test'), '-k')).body, 'TLSv1.3')
  assert.equal((await curl(url('new.test'), '-k', '--tls-max', '1.2')).code, 35)
})

test('a server that rejects handshakes is not spoken with, and one without a certificate shows the default one', async () => {
  const away = await curl(url('away.test'), '-k')
  assert.equal(away.code, 35)
  assert.match(away.stderr, /unrecognized name/)
  assert.equal((await curl(url('bare.test'), '-k')).body, 'bare')
  const strict = sidecar.ports['PORT3']
  assert.equal((await curl(`https://in.test:${strict}/`, '-k')).body, 'in')
  assert.equal((await curl(`https://out.test:${strict}/`, '-k')).code, 35)
  assert.equal((await curl(`https://127.0.0.1:${strict}/`, '-k')).code, 35)
})

test('what clients would have spoken can be told', async () => {
  const { body } = await curl(url('a.test', '/all'), '-k', '--tlsv1.3', '--no-alpn')
  const [cipher, reused, verify, ciphers, curves, alpn] = body.split('|')
  assert.match(cipher!, /^TLS_/)
  assert.deepEqual([reused, verify, alpn], ['.', 'NONE', ''])
  assert.match(ciphers!, /TLS_AES_256_GCM_SHA384/)
  assert.match(curves!, /X25519/)
  assert.match((await curl(url('a.test', '/all'), '-k', '--http1.1')).body, /\|http\/1\.1$/)
})

test('a client certificate can be passed on in every form', async () => {
  const shown = showing(client)
  const raw = (await curl(url('must.test', '/raw'), '-k', ...shown)).body
  assert.equal(raw.trim(), client.cert.trim())
  const escaped = (await curl(url('must.test', '/escaped'), '-k', ...shown)).body
  assert.equal(decodeURIComponent(escaped), raw)
  assert.doesNotMatch(escaped, /[+/\s=]/)
  const folded = (await curl(url('must.test', '/folded'), '-k', ...shown)).body
  assert.equal(folded, client.cert.trim().replaceAll('\n', '\n\t'))
})

test('certificates that are good for nothing any more, or were taken back, do not pass', async () => {
  for (const bad of [expired, revoked]) {
    const { status, body } = await curl(url('must.test'), '-k', ...showing(bad))
    assert.equal(status, 400)
    assert.match(body, /The SSL certificate error/)
  }
  assert.equal((await curl(url('may.test'), '-k', ...showing(client))).body, 'SUCCESS')
  assert.equal((await curl(url('may.test'), '-k')).body, 'NONE')
  assert.equal((await curl(url('may.test'), '-k', ...showing(stranger))).status, 400)
  assert.equal(
    (await curl(url('any.test'), '-k', ...showing(stranger))).body,
    'FAILED:self-signed certificate',
  )
  assert.equal(
    (await curl(url('any.test'), '-k', ...showing(client))).body,
    'FAILED:unable to verify the first certificate',
  )
})

test('how many authorities may stand in between is limited', async () => {
  const through = (issued: typeof deep) => ['--cert', issuer.chain(issued), '--key', issued.keyFile]
  assert.equal((await curl(url('may.test'), '-k', ...through(deep))).body, 'SUCCESS')
  assert.equal((await curl(url('may.test'), '-k', ...through(deeper))).status, 400)
  assert.equal((await curl(url('shallow.test'), '-k', ...showing(client))).body, 'SUCCESS')
  const refused = await curl(url('shallow.test'), '-k', ...through(deep))
  assert.deepEqual([refused.status, refused.body], [403, 'refused FAILED:certificate chain too long'])
  const none = await curl(url('shallow.test'), '-k')
  assert.deepEqual([none.status, none.body], [401, 'refused NONE'])
})

test('whoever has named one server is not let in where another one asks for a certificate', async () => {
  using one = await dialTls(sidecar.port, { servername: 'a.test' })
  assert.equal((await one.ask('/', { headers: { Host: 'must.test' } })).status, 421)
  // Where nothing is asked for, the name may be another one.
  assert.equal((await one.ask('/', { headers: { Host: 'b.test' } })).text, 'b TLSv1.3')
  using unnamed = await dialTls(sidecar.port)
  const reply = await unnamed.ask('/', { headers: { Host: 'must.test' } })
  assert.equal(reply.status, 400)
  assert.match(reply.text, /No required SSL certificate was sent/)
  using known = await dialTls(sidecar.port, { servername: 'may.test', cert: client.cert, key: client.key })
  assert.equal((await known.ask('/', { headers: { Host: 'must.test' } })).status, 421)
})

test('a server without a name lets in whoever has called it by its address, with a certificate', async () => {
  const port = sidecar.ports['PORT4']!
  const asking = { headers: { Host: `127.0.0.1:${port}` } }
  using known = await dialTls(port, { cert: client.cert, key: client.key })
  assert.equal((await known.ask('/', asking)).text, 'unnamed SUCCESS')
  using unknown = await dialTls(port)
  const reply = await unknown.ask('/', asking)
  assert.equal(reply.status, 400)
  assert.match(reply.text, /No required SSL certificate was sent/)
})

test('a request without a host is for the server that the handshake was for', async () => {
  using one = await dialTls(sidecar.port, { servername: 'b.test' })
  await one.write('GET / HTTP/1.0\r\n\r\n')
  assert.equal((await one.reply()).text, 'b TLSv1.3')
})

test('whoever speaks without TLS where it is spoken is told so, or sent to where it is', async () => {
  const reply = await ask(sidecar.port, '/')
  assert.equal(reply.status, 400)
  assert.match(reply.text, /The plain HTTP request was sent to HTTPS port/)
  assert.equal(reply.header('connection'), 'close')
  const moved = await ask(sidecar.ports['PORT2']!, '/x?y', { headers: { Host: 'other.test' } })
  assert.equal(moved.status, 301)
  assert.equal(moved.header('location'), `https://other.test:${sidecar.ports['PORT2']}/x?y`)
})

test('a session is taken up again, and again after a reload, but not where certificates are asked for', async () => {
  const session = async (options: ConnectionOptions) => {
    using first = await dialTls(sidecar.port, options)
    // With TLS 1.3 it comes after the handshake, with the answer at the latest.
    const later = options.maxVersion === 'TLSv1.2' ? undefined : once(first.secure, 'session')
    await first.ask('/', { headers: { Host: 'a.test' } })
    return later === undefined ? first.secure.getSession()! : ((await later)[0] as Buffer)
  }
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const options = { servername: 'a.test', maxVersion }
    const kept = await session(options)
    await sidecar.reload()
    using again = await dialTls(sidecar.port, { ...options, session: kept })
    assert.equal(again.secure.isSessionReused(), true, maxVersion)
    const reply = await again.ask('/all', { headers: { Host: 'a.test' } })
    assert.match(reply.text, /\|r\|/)
    // Another server's certificate was never shown to it.
    using elsewhere = await dialTls(sidecar.port, { ...options, servername: 'b.test', session: kept })
    assert.equal(elsewhere.secure.isSessionReused(), false)
    const known = { servername: 'may.test', cert: client.cert, key: client.key, maxVersion }
    using anew = await dialTls(sidecar.port, { ...known, session: await session(known) })
    assert.equal(anew.secure.isSessionReused(), false)
  }
})

test('handshakes are counted where their server is', async () => {
  const ssl = () => sidecar.json<Record<string, number>>('/status/http/server_zones/must/ssl')
  const before = await ssl()
  await curl(url('must.test'), '-k')
  await curl(url('must.test'), '-k', '--tls-max', '1.2', '--ciphers', 'AES128-SHA')
  await eventually('both are counted', async () => {
    const now = await ssl()
    return now['handshaked'] === before['handshaked']! + 1 && now['failed'] === before['failed']! + 1
  })
  const zone = await sidecar.json<Record<string, unknown>>('/status/http/server_zones/must')
  assert.deepEqual(Object.keys(zone), ['ssl', 'requests', 'responses', 'data'])
  const page = await (await fetch(`${sidecar.admin}/metrics/angie`)).text()
  assert.match(page, /^angie_http_server_zones_ssl_handshaked\{zone="must"\} \d+$/m)
})

test('no key is shown anywhere', async () => {
  const shown = [sidecar.stdout, sidecar.stderr]
  for (const path of ['/config', '/status', '/metrics'])
    shown.push(await (await fetch(sidecar.admin + path)).text())
  for (const text of shown) assert.doesNotMatch(text, /PRIVATE KEY/)
})
