import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { exchange } from '../../support/client.ts'
import { eventually, type Lab, lab } from '../../support/invariants.ts'

let peer: Backend
let front: Lab

before(async () => {
  peer = await backend((x) => x.reply({ body: x.head.header('x-server') ?? '' }))
  front = await lab(
    `upstream peers { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; server_name first; proxy_set_header X-Server first;
       location / { proxy_pass http://peers; }
       location /hi/ { proxy_pass http://peers/base/; }
       location /admin { return 403; }
       location /open/ { proxy_pass http://peers; }
     }
     server { listen 127.0.0.1:PORT; server_name gone;
       location /away/ { proxy_pass http://127.0.0.1:PORT2/base/; }
     }
     server { listen 127.0.0.1:PORT; server_name h; proxy_set_header X-Server h;
       location / { proxy_pass http://peers; }
     }`,
    [peer],
  )
})

beforeEach(() => front.begin())

after(async () => {
  await front.sidecar.stop()
  await peer.stop()
})

/** Sends one request line; says what it was answered and what targets the peer saw. */
async function sent(
  line: string,
  headers = 'Host: first\r\n',
): Promise<{ status: number; body: string; seen: string[] }> {
  const before = peer.requests.length
  const said = await exchange(front.port, `${line} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`)
  const seen = peer.requests.slice(before).map((request) => `${request.method} ${request.target}`)
  await front.settle(1)
  return { status: Number(said.slice(9, 12)), body: said.slice(said.indexOf('\r\n\r\n') + 4), seen }
}

test('a target in absolute form goes on as a path, and its host decides', async () => {
  for (const [line, seen] of [
    ['GET http://h?token=1', 'GET /?token=1'],
    ['GET http://h/a/b?c', 'GET /a/b?c'],
    ['GET http://H', 'GET /'],
  ] as const) {
    assert.deepEqual(await sent(line, 'Host: h\r\n'), { status: 200, body: 'h', seen: [seen] })
  }
  const { status, body, seen } = await sent('GET http://h/x', 'Host: first\r\n')
  if (status !== 400) assert.deepEqual({ status, body, seen }, { status: 200, body: 'h', seen: ['GET /x'] })
})

for (const target of ['x', '@evil/', '*', 'http:///x', 'ftp://h/']) {
  test(`the target "${target}" is refused`, async () => {
    assert.deepEqual(await sent(`GET ${target}`).then(({ status, seen }) => ({ status, seen })), {
      status: 400,
      seen: [],
    })
  })
}

test('CONNECT is refused and its body is not taken for a request', async () => {
  const before = peer.requests.length
  const smuggled = 'GET /evil HTTP/1.1\r\nHost: first\r\n\r\n'
  const said = await exchange(
    front.port,
    `CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  )
  assert.match(said, /^HTTP\/1.1 (405|501) /)
  assert.equal(said.split('HTTP/1.1 ').length, 2)
  assert.equal(peer.requests.length, before)
  await front.settle(1)
})

test('OPTIONS * is answered or goes on as it is', async () => {
  const { status, seen } = await sent('OPTIONS *')
  if (seen.length > 0) assert.deepEqual(seen, ['OPTIONS *'])
  assert.ok([200, 204, 400, 405].includes(status), String(status))
})

test('encoded dots do not lead out of a base path, and three dots are a name', async () => {
  const { status, seen } = await sent('GET /hi/ho/%2E%2E/%2e%2e/admin')
  assert.deepEqual(seen, [])
  assert.ok(status === 400 || status === 403, String(status))
  assert.deepEqual((await sent('GET /hi/.../x')).seen, ['GET /base/.../x'])
  assert.deepEqual((await sent('GET /hi/a/../b')).seen, ['GET /base/b'])
  assert.equal((await sent('GET /hi/../../x')).status, 400)
})

test('odd but legal characters go on byte for byte, and NUL is refused', async () => {
  const target = '/a%2Fb%5C%3B//c?x=/../y'
  assert.deepEqual((await sent(`GET ${target}`)).seen, [`GET ${target}`])
  const { status, seen } = await sent('GET /a%2Fb%5C%00%3B//c?x=/../y')
  assert.deepEqual({ status, seen }, { status: 400, seen: [] })
})

test('who is asked goes by what the path means, and the bytes go on as they came', async () => {
  for (const target of [
    '/open/%2e%2e/admin',
    '/open/..%2fadmin',
    '/open/%2E./admin/x',
    '/%61dmin',
    '//admin',
    '/open/x/%2e%2e/..//admin',
  ]) {
    assert.deepEqual(await sent(`GET ${target}`).then(({ status, seen }) => ({ status, seen })), {
      status: 403,
      seen: [],
    })
  }
  // A backslash and a semicolon are letters, an escaped percent sign stays one.
  for (const target of ['/open/..%5cadmin', '/open/..\\admin', '/open/..;/admin', '/open/%252e%252e/admin']) {
    assert.deepEqual((await sent(`GET ${target}`)).seen, [`GET ${target}`])
  }
  for (const target of ['/open/%', '/open/%zz', '/open/%00', '/open/%2']) {
    assert.deepEqual(await sent(`GET ${target}`).then(({ status, seen }) => ({ status, seen })), {
      status: 400,
      seen: [],
    })
  }
})

test('control characters in a header are refused', async () => {
  for (const value of ['a\rX-Evil: 1', 'a\0b', 'a\x01b', 'a\n X: folded']) {
    const { status, seen } = await sent('GET /', `Host: first\r\nX-A: ${value}\r\n`)
    assert.deepEqual({ status, seen }, { status: 400, seen: [] }, JSON.stringify(value))
  }
})

test('a folded header is refused', async () => {
  const { status, seen } = await sent('GET /', 'Host: first\r\nX-A: 1\r\n  2\r\n')
  assert.deepEqual({ status, seen }, { status: 400, seen: [] })
})

test('a request without Host, or with two, is refused', async () => {
  assert.equal((await sent('GET /', '')).status, 400)
  assert.equal((await sent('GET /', 'Host: first\r\nHost: h\r\n')).status, 400)
})

test('the error log tells which target a peer that could not be reached was to get', async () => {
  const { status } = await sent('GET /away/%20x?y=%41', 'Host: gone\r\n')
  assert.equal(status, 502)
  const { PORT2: port } = front.sidecar.ports
  const wanted = `request: "GET /away/%20x?y=%41 HTTP/1.1", upstream: "http://127.0.0.1:${port}/base/%20x?y=%41"`
  await eventually(wanted, () => front.sidecar.stderr.includes(wanted))
})
