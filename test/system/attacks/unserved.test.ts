import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backend } from '../../support/backend.ts'
import { exchange } from '../../support/client.ts'
import { lab } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

test('a request of another version of HTTP is refused, and no peer gets it as one of 1.1', async () => {
  await using peer = await backend({ body: 'b' })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const asked = [
    ['0.9', 400],
    ['2.0', 505],
    ['3.1', 505],
  ] as const
  for (const [version, status] of asked) {
    const said = await exchange(
      it.port,
      `POST /${version} HTTP/${version}\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`,
    )
    assert.match(said, new RegExp(`^HTTP/1\\.1 ${status} `), version)
    assert.match(said, /\r\nConnection: close\r\n/, version)
  }
  assert.deepEqual(peer.targets, [])
  await it.settle(asked.length)
})

test('a refusal of a HEAD request has a head alone', async () => {
  await using peer = await backend({ body: 'b' })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  const said = await exchange(
    it.port,
    'HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: that\r\n\r\n',
  )
  assert.match(said, /^HTTP\/1\.1 417 .*\r\n\r\n$/s)
  const late = await exchange(
    it.port,
    'HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n\r\n',
  )
  assert.match(late, /^HTTP\/1\.1 400 .*\r\n\r\n$/s)
  assert.deepEqual(peer.targets, [])
  await it.settle(2)
})

test('a target that is none ends its connection, whatever the method', async () => {
  await using peer = await backend({ body: 'b' })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; location / { proxy_pass http://up; } }`,
    [peer],
  )
  for (const method of ['GET', 'TRACE', 'OPTIONS']) {
    const next = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'
    const said = await exchange(it.port, `${method} evil:80 HTTP/1.1\r\nHost: x\r\n\r\n${next}`)
    assert.match(said, /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n/s, method)
  }
  assert.deepEqual(peer.targets, [])
  await it.settle(3)
})

test('who wants to know is told why a request was refused, and a bare line feed is no wait', async () => {
  await using sidecar = await start(
    `error_log stderr info;
     http { access_log off; server { listen 127.0.0.1:PORT; location / { return 200 ok; } location /b { proxy_pass http://127.0.0.1:9; } } }`,
  )
  const told: readonly (readonly [string, RegExp, number?])[] = [
    ['GET / HTTP/1.1\r\nHost : x\r\n\r\n', /invalid header name, client: 127\.0\.0\.1, .*"GET \/ HTTP/],
    ['GET / HTTP/1.1\nHost: x\n\n', /served: invalid request line, client/],
    ['\x16\x03\x01\x02\x00', /served: TLS where HTTP is spoken \(see "listen \.\.\. ssl"\), client/],
    [
      'PRI * HTTP/2.0\r\n\r\n',
      /served: HTTP\/2 where HTTP\/1\.1 is spoken \(no "http2 on", or no TLS\), client/,
      505,
    ],
    [
      'GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      /both content-length/,
    ],
    [
      'POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n',
      /cannot be read: invalid chunk size, .*"POST \/b/,
    ],
    [
      'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n',
      /\[info\] .*intended to send too large body, .*"POST \/b/,
      413,
    ],
    ['GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n', /\[info\] .*invalid host or target, .*"GET \/%zz/],
  ]
  for (const [request, line, status = 400] of told) {
    assert.match(await exchange(sidecar.port, request), new RegExp(`^HTTP/1\\.1 ${status} `))
    await sidecar.logged(line)
  }
})
