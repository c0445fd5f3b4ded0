import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Backend, backend } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import { type Lab, lab } from '../../support/invariants.ts'

let peer: Backend
let it: Lab

before(async () => {
  peer = await backend((x) => x.reply())
  it = await lab(
    `upstream up { server ${peer.address}; }
     map $http_x_kind $kind { default none; ~. $http_x_kind; }
     server {
       listen 127.0.0.1:PORT; http2 on; server_name a.example;
       location / { proxy_pass http://up; proxy_set_header Host $host; }
       location /told { return 200 "$server_protocol $http2 $request $http_host $host $scheme $request_length $kind"; }
       location /none { return 204; }
       location /moved { return 302 /told; }
       location /nothing { return 444; }
       location /own { return 200 mine; add_header Connection close; add_header X-Own "a b" always; }
     }
     server { listen 127.0.0.1:PORT; server_name b.example; location / { return 200 b; } }`,
    [peer],
  )
})

after(async () => {
  await it[Symbol.asyncDispose]()
  await peer[Symbol.asyncDispose]()
})

test('HTTP/2 and HTTP/1.1 are spoken on the same port, and each request says which', async () => {
  await using client = await http2(it.port)
  const answer = await client.ask({ ':path': '/told?a=1', ':authority': 'A.example:80' })
  assert.equal(answer.status, 200)
  assert.match(
    answer.body,
    /^HTTP\/2\.0 h2c GET \/told\?a=1 HTTP\/2\.0 A\.example:80 a\.example http \d\d none$/,
  )
  const old = await ask(it.port, '/told')
  assert.match(old.body.toString(), /^HTTP\/1\.1 {2}GET \/told HTTP\/1\.1 /)
})

test('a request goes to its peer as HTTP/1.1, with its fields and without those of HTTP/2', async () => {
  await it.begin()
  await using client = await http2(it.port)
  const answer = await client.ask({
    ':path': '/a%20b?c=d',
    ':authority': 'a.example',
    'x-one': ['1', '2'],
    cookie: ['a=1', 'b=2'],
    te: 'trailers',
  })
  assert.equal(answer.status, 200)
  const { head, target, version } = peer.requests.at(-1)!
  assert.equal(`${target} ${version}`, '/a%20b?c=d HTTP/1.1')
  assert.equal(head.header('host'), 'a.example')
  assert.equal(head.header('cookie'), 'a=1; b=2')
  assert.equal(head.header('te'), 'trailers')
  const sent = head.headers.join(' ')
  assert.match(sent, /x-one 1 x-one 2/)
  assert.doesNotMatch(sent, /:path|:authority|Transfer-Encoding/)
  await it.settle(1)
})

test('requests of one connection are told apart by their host', async () => {
  await using client = await http2(it.port)
  const bodies = await Promise.all(
    ['b.example', 'a.example'].map(async (host) => {
      return (await client.ask({ ':path': '/own', ':authority': host })).body
    }),
  )
  assert.deepEqual(bodies, ['b', 'mine'])
})

test('fields of connections go nowhere, and the others are in lower case', async () => {
  await using client = await http2(it.port)
  const { headers } = await client.ask({ ':path': '/own', ':authority': 'a.example' })
  assert.equal(headers['x-own'], 'a b')
  assert.equal(headers['connection'], undefined)
  peer.script = (x) =>
    x.send(
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nX-End: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    )
  const passed = await client.ask({ ':authority': 'a.example' })
  assert.equal(passed.body, 'ok')
  const { 'x-end': end, 'x-hop': hop, 'keep-alive': kept, 'set-cookie': cookies } = passed.headers
  assert.deepEqual([end, hop, kept, cookies], ['2', undefined, undefined, ['a=1', 'b=2']])
  peer.script = (x) => x.reply()
})

test('answers without a body have none: HEAD, 204, 304 and redirects of a peer', async () => {
  await using client = await http2(it.port)
  const none = await client.ask({ ':path': '/none', ':authority': 'a.example' })
  assert.deepEqual([none.status, none.body, none.headers['content-length']], [204, '', undefined])
  const head = await client.ask({ ':path': '/told', ':method': 'HEAD', ':authority': 'a.example' })
  assert.deepEqual([head.status, head.body, Number(head.headers['content-length']) > 0], [200, '', true])
  peer.script = { status: 304, headers: { ETag: '"x"' } }
  const same = await client.ask({ ':authority': 'a.example' })
  assert.deepEqual([same.status, same.body, same.headers['etag'], same.code], [304, '', '"x"', 0])
  peer.script = { status: 205, body: 'none' }
  const reset = await client.ask({ ':authority': 'a.example' })
  assert.deepEqual([reset.status, reset.body, reset.code], [205, '', 0])
  peer.script = { body: 'long enough', headers: { 'X-Peer': '1' } }
  const asked = await client.ask({ ':method': 'HEAD', ':authority': 'a.example' })
  assert.deepEqual([asked.headers['content-length'], asked.body, asked.code], ['11', '', 0])
  const moved = await client.ask({ ':path': '/moved', ':authority': 'a.example' })
  assert.equal(moved.headers['location'], `http://a.example:${it.port}/told`)
  peer.script = (x) => x.reply()
})

test('trailers of a peer go to a client that takes them, but not those that change the message', async () => {
  await using client = await http2(it.port)
  peer.script = (x) =>
    x.send(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nGrpc-Status: 0\r\nX-Two: 1\r\nX-Two: 2\r\nContent-Length: 9\r\n\r\n',
    )
  const taken = await client.ask({ ':authority': 'a.example', te: 'trailers' })
  assert.deepEqual([taken.body, taken.code], ['ok', 0])
  assert.deepEqual(Object.entries(taken.trailers ?? {}), [
    ['grpc-status', '0'],
    ['x-two', '1, 2'],
  ])
  const left = await client.ask({ ':authority': 'a.example' })
  assert.deepEqual([left.body, left.trailers, left.code], ['ok', undefined, 0])
  peer.script = (x) => x.reply({ body: 'none' })
  const none = await client.ask({ ':authority': 'a.example', te: 'trailers' })
  assert.deepEqual([none.body, none.trailers, none.code], ['none', undefined, 0])
  peer.script = (x) => x.reply()
})

test('interim answers come before the answer', async () => {
  await using client = await http2(it.port)
  peer.script = (x) =>
    x.send(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    )
  const answer = await client.ask({ ':authority': 'a.example' })
  assert.deepEqual([answer.interim, answer.status, answer.body], [[103, 102], 200, 'ok'])
  peer.script = (x) => x.reply()
})

test('a client that waits for a 100 gets one, and its body goes on', async () => {
  await using client = await http2(it.port)
  peer.script = async (x) => x.reply({ body: `${(await x.body()).body.length}` })
  const stream = client.begin({ ':method': 'POST', ':authority': 'a.example', expect: '100-continue' }, false)
  stream.on('continue', () => stream.end('12345'))
  const answer = await answerOn(stream)
  assert.deepEqual([answer.interim, answer.status, answer.body], [[100], 200, '5'])
  const other = await client.ask({ ':authority': 'a.example', expect: 'miracles' })
  assert.equal(other.status, 417)
  peer.script = (x) => x.reply()
})

test('return 444 ends the request without an answer, and other requests go on', async () => {
  await it.begin()
  await using client = await http2(it.port)
  const answer = await client.ask({ ':path': '/nothing', ':authority': 'a.example' })
  assert.deepEqual([answer.status, answer.code], [0, 1])
  assert.equal((await client.ask({ ':authority': 'a.example' })).status, 200)
  await it.settle(2)
  const { status } = (await it.records()).find(({ request }) => request.startsWith('GET /nothing'))!
  assert.equal(status, 444)
})

test('CONNECT is refused, and there is no other way to a tunnel', async () => {
  await using client = await http2(it.port)
  assert.notEqual(client.session.remoteSettings.enableConnectProtocol, true)
  const stream = client.session.request({ ':method': 'CONNECT', ':authority': 'a.example:443' })
  stream.on('error', () => {})
  assert.equal((await answerOn(stream)).status, 405)
  const traced = await client.ask({ ':method': 'TRACE', ':authority': 'a.example' })
  assert.equal(traced.status, 405)
})

test('many requests at once on one connection each get their own answer', async () => {
  await it.begin()
  await using client = await http2(it.port)
  peer.script = (x) => x.reply({ body: x.target })
  const paths = Array.from({ length: 100 }, (_, i) => `/n${i}`)
  const bodies = await Promise.all(
    paths.map(async (path) => (await client.ask({ ':path': path, ':authority': 'a.example' })).body),
  )
  assert.deepEqual(bodies, paths)
  await it.settle(100)
  peer.script = (x) => x.reply()
})
