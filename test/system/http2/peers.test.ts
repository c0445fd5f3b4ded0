import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { createServer } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import { ask } from '../../support/client.ts'
import { type Http2Answer, http2Peer, http2TlsPeer, say } from '../../support/http2-peer.ts'
import { start } from '../../support/sidecar.ts'
import { until } from '../../support/until.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const good = issuer.issue('good.test', { by: root })

/** A group, and what is said of its peers. */
const configuration = (servers: string, more = '', pass = 'proxy_pass http://up;') => `
  worker_processes 1;
  http {
    upstream up { ${servers} }
    server {
      listen 127.0.0.1:PORT; explain_header X-Why;
      location / { proxy_http_version 2; ${pass} ${more} }
    }
  }`

test('a request in HTTP/1.1 is answered by a peer that speaks HTTP/2', async () => {
  let seen: readonly string[] = []
  await using peer = await http2Peer((stream, _, raw) => {
    seen = raw
    let body = ''
    stream.setEncoding('latin1').on('data', (chunk: string) => {
      body += chunk
    })
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'set-cookie': ['a=1', 'b=2'] }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '9' }))
      stream.end(`got ${body}`)
    })
  })
  await using it = await start(configuration(`server ${peer.address};`, 'proxy_set_header X-Own yes;'))
  const reply = await ask(it.port, '/a%20b?c', {
    method: 'POST',
    headers: {
      TE: 'trailers',
      Connection: 'TE, X-Hop',
      'X-Hop': '1',
      'X-Kept': '2',
    },
    body: ['hello'],
  })
  assert.equal(reply.text, 'got hello')
  assert.equal(reply.header('x-why'), `${peer.address} 200 (single)`)
  assert.equal(reply.header('connection'), 'keep-alive')
  assert.deepEqual(seen.slice(0, 8), [
    ...[':method', 'POST', ':scheme', 'http', ':path', '/a%20b?c', ':authority', 'up'],
  ])
  const fields = new Map(seen.flatMap((name, i) => (i % 2 === 0 ? [[name, seen[i + 1]] as const] : [])))
  assert.equal(fields.get('te'), 'trailers')
  assert.equal(fields.get('x-own'), 'yes')
  assert.equal(fields.get('x-kept'), '2')
  for (const name of ['connection', 'transfer-encoding', 'x-hop', 'host']) assert.ok(!fields.has(name), name)
})

test('a peer that refuses a stream is asked once more, and then the next one, whatever the request does', async () => {
  let refusals = 0
  await using shy = await http2Peer((stream) => {
    refusals += 1
    if (refusals === 2) say(stream, 'second time')
    else stream.close(7)
  })
  await using other = await http2Peer((stream) => say(stream, 'other'))
  await using it = await start(
    configuration(`server ${shy.address} max_fails=0; server ${other.address} backup;`),
  )
  const post = () => ask(it.port, '/', { method: 'POST', headers: { 'Content-Length': '2' }, body: 'ab' })
  assert.equal((await post()).text, 'second time')
  const reply = await post()
  assert.equal(reply.text, 'other')
  assert.equal(
    reply.header('x-why'),
    `${shy.address} 502 stale (round_robin), ${shy.address} 502 refused (round_robin), ${other.address} 200 (backup)`,
  )
  assert.equal(shy.connections, 3)
})

test('a stream that is reset is a failure, and so is one that is silent; the connection goes on', async () => {
  await using bad = await http2Peer((stream, fields) => {
    if (fields[':path'] === '/reset') stream.close(2)
    else stream.resume()
  })
  await using other = await http2Peer((stream) => say(stream, 'other'))
  await using it = await start(
    configuration(
      `server ${bad.address} max_fails=0; server ${other.address} backup;`,
      'proxy_read_timeout 200ms;',
    ),
  )
  for (const [path, why] of [
    ['/reset', '502 reset'],
    ['/silent', '504 timeout_read'],
  ] as const) {
    const reply = await ask(it.port, path)
    assert.equal(reply.text, 'other')
    assert.equal(reply.header('x-why'), `${bad.address} ${why} (round_robin), ${other.address} 200 (backup)`)
  }
  await until(() => bad.resets.includes(8))
})

test('inside of TLS both sides agree on HTTP/2; who does not is a failure for reason of tls', async () => {
  await using peer = await http2TlsPeer((stream) => say(stream, 'secure'), { cert: good.cert, key: good.key })
  const old = createServer({ cert: good.cert, key: good.key, ALPNProtocols: ['http/1.1'] }, (secure) => {
    secure.on('error', () => {})
  }).listen(0, '127.0.0.1')
  old.on('tlsClientError', () => {})
  await once(old, 'listening')
  // A listening TCP server has an address.
  const { port } = old.address() as { port: number }
  const verified = `proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile}; proxy_ssl_name`
  await using it = await start(
    configuration(
      `server 127.0.0.1:${port} max_fails=0; server ${peer.address} backup;`,
      `${verified} good.test;`,
      'proxy_pass https://up;',
    ),
  )
  const reply = await ask(it.port, '/')
  assert.equal(reply.text, 'secure')
  assert.match(reply.header('x-why') ?? '', /^\S+ 502 tls \(round_robin\), \S+ 200 \(backup\)$/)
  await ask(it.port, '/')
  assert.equal(peer.connections, 1)
  await using wrong = await start(
    configuration(`server ${peer.address};`, `${verified} other.test;`, 'proxy_pass https://up;'),
  )
  const refused = await ask(wrong.port, '/')
  assert.equal(`${refused.status} ${refused.header('x-why')}`, `502 ${peer.address} 502 tls (single), tries`)
  old.close()
})

for (const [what, tls, pass] of [
  ['without TLS', false, 'proxy_http_version 2; proxy_pass http://up;'],
  ['inside of TLS', true, 'proxy_http_version 2; proxy_pass https://up;'],
  ['of gRPC', false, 'grpc_pass grpc://up;'],
  ['of gRPC, inside of TLS', true, 'grpc_pass grpcs://up;'],
  ['inside of TLS where the location speaks HTTP/1.1', true, 'proxy_pass https://up;'],
] as const) {
  test(`probes over HTTP speak HTTP/2 with peers ${what}`, async () => {
    let status = 200
    let probes = 0
    const answer: Http2Answer = (stream, fields) => {
      if (fields[':path'] === '/health' && fields['x-probe'] === 'p') probes += 1
      stream.respond({ ':status': status })
      stream.end('fine')
    }
    await using peer = tls
      ? await http2TlsPeer(answer, { cert: good.cert, key: good.key })
      : await http2Peer(answer)
    const version = what.endsWith('HTTP/1.1') ? 'http_version=2' : ''
    await using it = await start(
      `http {
         map $upstream_status$upstream_probe_body $good { 200fine 1; }
         upstream up { zone up 64k; server ${peer.address}; }
         server {
           listen 127.0.0.1:PORT;
           location / {
             ${pass} proxy_set_header X-Probe $upstream_probe; grpc_set_header X-Probe $upstream_probe;
             upstream_probe p uri=/health interval=50ms test=$good ${version};
           }
         }
       }`,
    )
    const state = async () => {
      const peers = await it.json<Record<string, { state: string }>>('/status/http/upstreams/up/peers')
      return peers[peer.address]!.state
    }
    await until(() => probes > 1)
    assert.equal(await state(), 'up')
    status = 500
    await until(async () => (await state()) === 'unhealthy')
    status = 200
    await until(async () => (await state()) === 'up')
  })
}

test('calls of gRPC go inside of TLS too, and peers are probed by what they say of their health', async () => {
  let serving = 1
  let checks = 0
  await using peer = await http2TlsPeer(
    (stream, fields) => {
      const check = fields[':path'] === '/grpc.health.v1.Health/Check'
      if (check) checks += 1
      stream.resume()
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(check ? Buffer.of(0, 0, 0, 0, 2, 8, serving) : `${fields['te']}`)
      })
    },
    { cert: good.cert, key: good.key },
  )
  await using it = await start(
    `worker_processes 1;
     http {
       upstream up { zone up 64k; server ${peer.address}; server ${peer.address} backup; }
       server {
         listen 127.0.0.1:PORT;
         location / {
           grpc_pass grpcs://up; grpc_ssl_verify on; grpc_ssl_trusted_certificate ${root.certFile}; grpc_ssl_name good.test;
           upstream_probe health type=grpc interval=100ms;
         }
       }
     }`,
  )
  const call = () =>
    ask(it.port, '/', { method: 'POST', headers: { 'Content-Type': 'application/grpc' }, body: '' })
  assert.equal((await call()).text, 'trailers')
  await until(() => checks > 0)
  serving = 2
  await until(async () => (await call()).status === 502)
})
