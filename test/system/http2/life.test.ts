import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { backend } from '../../support/backend.ts'
import { answerOn, http2 } from '../../support/http2-client.ts'
import { dialFrames, endHeaders, endStream, fields, frame, get } from '../../support/http2-frames.ts'
import { eventually, lab } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'

interface Connections {
  readonly accepted: number
  readonly active: number
  readonly idle: number
}

test('a connection counts as one, idle or active, however many requests it carries', async () => {
  let finish = () => {}
  await using peer = await backend(async (x) => {
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    await x.reply()
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; http2 on; status_zone web; location / { return 200 ok; } location /up { proxy_pass http://up; } }`,
    [peer],
  )
  const connections = async () => {
    const { accepted, active, idle } = await it.sidecar.json<Connections>('/status/connections')
    return [accepted, active, idle]
  }
  await using client = await http2(it.port)
  await client.ask()
  assert.deepEqual(await connections(), [1, 0, 1])
  const [one, other] = [client.begin({ ':path': '/up' }), client.begin({ ':path': '/' })]
  const [rest] = await Promise.all([answerOn(other), eventually('asked', () => peer.requests.length === 1)])
  assert.equal(rest.status, 200)
  assert.deepEqual(await connections(), [1, 1, 0])
  finish()
  assert.equal((await answerOn(one)).status, 200)
  await eventually('idle', async () => (await connections()).join() === '1,0,1')
  const zone = await it.sidecar.json<{ requests: object; responses: object }>('/status/http/server_zones/web')
  assert.deepEqual([zone.requests, zone.responses], [{ total: 3, processing: 0, discarded: 0 }, { 200: 3 }])
  await client.session.close()
  await it.left()
})

test('an idle connection is closed in time with a farewell, a busy one is not', async () => {
  await using peer = await backend(async (x) => {
    await sleep(1800)
    await x.reply({ body: 'late' })
  })
  await using it = await lab(
    `upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; http2 on; keepalive_timeout 600ms; location / { return 200 ok; } location /up { proxy_pass http://up; } }`,
    [peer],
  )
  await using idle = await http2(it.port)
  await using busy = await http2(it.port)
  const late = busy.ask({ ':path': '/up' })
  await idle.ask()
  const from = performance.now()
  await idle.closed
  assert.ok(performance.now() - from < 1500)
  assert.deepEqual([...new Set(idle.goaways)], [0])
  assert.equal((await late).body, 'late')
})

test('a connection that may not be kept is closed after its requests', async () => {
  await using it = await lab(
    'server { listen 127.0.0.1:PORT; http2 on; keepalive_timeout 0; location / { return 200 ok; } }',
    [],
  )
  await using client = await http2(it.port)
  assert.equal((await client.ask()).status, 200)
  await client.closed
  assert.ok(client.goaways.length > 0)
})

test('a connection that has carried its requests says so, and loses none of those on their way', async () => {
  await using it = await lab(
    'server { listen 127.0.0.1:PORT; http2 on; keepalive_requests 5; location / { return 200 ok; } }',
    [],
  )
  using client = await dialFrames(it.port)
  // All of them at once: whoever goes on asking long after the farewell is refused.
  const heads = Array.from({ length: 8 }, (_, i) =>
    frame('headers', endStream | endHeaders, 2 * i + 1, fields(get)),
  )
  client.send(...heads)
  for (let i = 0; i < 8; i += 1) await client.frame('headers', 2 * i + 1)
  assert.equal(await client.end(), 0)
  const [first, last] = client.frames.filter(({ type }) => type === 'goaway')
  assert.deepEqual([first?.payload.readUInt32BE(0), last?.payload.readUInt32BE(0)], [2 ** 31 - 1, 15])
})

test('as the program ends, requests in progress are finished, and connections closed with a farewell', async () => {
  let finish = () => {}
  await using peer = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfir')
    await new Promise<void>((resolve) => {
      finish = resolve
    })
    x.done()
    await x.send('st!')
  })
  await using sidecar = await start(
    `http { upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; http2 on; location / { proxy_pass http://up; } } }`,
  )
  await using busy = await http2(sidecar.port)
  await using idle = await http2(sidecar.port)
  const answer = busy.ask()
  await eventually('asked', () => peer.requests.length === 1)
  sidecar.signal('SIGTERM')
  await idle.closed
  assert.equal(
    idle.goaways.every((code) => code === 0),
    true,
  )
  await sleep(600)
  finish()
  const { body, code } = await answer
  assert.deepEqual([body, code], ['first!', 0])
  await busy.closed
  assert.equal((await sidecar.exited).code, 0)
})

test('what does not end in time as the program ends is reset, so that it does not look whole', async () => {
  await using peer = await backend(async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
    await x.gone
  })
  await using sidecar = await start(
    `worker_shutdown_timeout 500ms; http { upstream up { server ${peer.address}; }
     server { listen 127.0.0.1:PORT; http2 on; location / { proxy_pass http://up; } } }`,
  )
  await using client = await http2(sidecar.port)
  const answer = client.ask()
  await eventually('asked', () => peer.requests.length === 1)
  sidecar.signal('SIGTERM')
  const { body, code } = await answer
  assert.equal(body, 'abc')
  assert.notEqual(code, 0)
  await sidecar.exited
})

test('a reload that takes an address away ends its connections in order; one that keeps it keeps them', async () => {
  const server = (port: string, text: string) =>
    `server { listen 127.0.0.1:${port}; http2 on; location / { return 200 ${text}; } }`
  await using sidecar = await start(`http { ${server('PORT', 'a')} ${server('PORT2', 'b')} }`)
  await using kept = await http2(sidecar.port)
  await using gone = await http2(sidecar.ports['PORT2']!)
  assert.deepEqual([(await kept.ask()).body, (await gone.ask()).body], ['a', 'b'])
  await sidecar.reload(`http { ${server('PORT', 'c')} }`)
  assert.equal((await kept.ask()).body, 'c')
  await gone.closed
  assert.deepEqual([...new Set(gone.goaways)], [0])
  assert.deepEqual(kept.goaways, [])
})

test('a reload can begin and end HTTP/2 on an address that stays', async () => {
  const text = (more: string) =>
    `http { server { listen 127.0.0.1:PORT; ${more} location / { return 200 ok; } } }`
  await using sidecar = await start(text(''))
  const early = await http2(sidecar.port)
  await early.closed
  await sidecar.reload(text('http2 on;'))
  await using client = await http2(sidecar.port)
  assert.equal((await client.ask()).status, 200)
  await sidecar.reload(text(''))
  assert.equal((await client.ask()).status, 200)
  const late = await http2(sidecar.port)
  await late.closed
})

test('behind a PROXY header HTTP/2 is spoken as well', async () => {
  await using it = await lab(
    `server { listen 127.0.0.1:PORT proxy_protocol; http2 on; set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
       location / { return 200 "$remote_addr $http2"; } }`,
    [],
  )
  const { connect } = await import('node:net')
  const socket = connect(it.port, '127.0.0.1')
  socket.write('PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n')
  const { connect: connect2 } = await import('node:http2')
  const session = connect2('http://127.0.0.1', { createConnection: () => socket })
  const answer = await answerOn(session.request({ ':path': '/' }))
  assert.equal(answer.body, '192.0.2.7 h2c')
  session.close()
})
