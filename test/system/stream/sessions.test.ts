import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Client, dial } from '../../support/client.ts'
import { type DeafPeer, deafPeer } from '../../support/deaf-peer.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { echoPeer, type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { until } from '../../support/until.ts'

/** What an access log says of a session. */
interface Record {
  readonly server: string
  readonly status: number
  readonly bytes: number
  readonly request_bytes: number
  readonly denial: string | null
  readonly upstream: string | null
  readonly attempts: readonly {
    readonly peer: string
    readonly ending: string
    readonly reason: string | null
    readonly connect_ms: number | null
    readonly first_byte_ms: number | null
  }[]
}

let peer: TcpPeer
let echo: TcpPeer
let deaf: DeafPeer
let sidecar: Sidecar

before(async () => {
  peer = await tcpPeer()
  echo = await echoPeer()
  deaf = await deafPeer({ backlog: 1 })
  await deaf.fill(2)
  sidecar = await start(`
    worker_processes 1;
    stream {
      log_format own '$remote_addr $protocol $status $bytes_received/$bytes_sent $upstream_addr '
        '$upstream_bytes_sent $upstream_bytes_received [$upstream_reason] $upstream_pick $kind $server_port';
      map $remote_addr $kind { default other; 127.0.0.1 local; }
      upstream scripted { zone scripted 64k; server ${peer.address}; }
      upstream echo { server ${echo.address}; }
      upstream local { server ${echo.address}; }
      upstream half_dead { zone half_dead 64k; server 127.0.0.1:1 max_fails=0; server ${echo.address}; }
      upstream dead { zone dead 64k; server 127.0.0.1:1; server 127.0.0.1:2; }
      upstream deaf { zone deaf 64k; server 127.0.0.1:${deaf.port} max_fails=0; server ${echo.address} backup; }
      upstream narrow { zone narrow 64k; server ${peer.address} max_conns=1; }
      proxy_next_upstream_budget off;
      server { listen 127.0.0.1:PORT; proxy_pass scripted; }
      server { listen 127.0.0.1:PORT2; proxy_pass scripted; proxy_half_close on; }
      server { listen 127.0.0.1:PORT3; proxy_pass scripted; proxy_timeout 300ms; }
      server { listen 127.0.0.1:PORT4; proxy_pass echo; }
      server { listen 127.0.0.1:PORT5; proxy_pass half_dead; }
      server { listen 127.0.0.1:PORT6; proxy_pass dead; }
      server { listen 127.0.0.1:PORT7; proxy_pass deaf; proxy_connect_timeout 200ms; }
      server { listen 127.0.0.1:PORT8; proxy_pass deaf; proxy_next_upstream off; }
      server { listen 127.0.0.1:PORT9; return "$remote_addr:$server_port $protocol\\n"; }
      server { listen 127.0.0.1:PORT10; proxy_pass $kind; access_log /dev/stdout own; }
      server { listen 127.0.0.1:PORT11; proxy_pass $kind:99999; }
      server { listen 127.0.0.1:PORT12; proxy_pass narrow; }
      server { listen 127.0.0.1:PORT13; proxy_pass ${echo.address}; }
      server { listen 127.0.0.1:PORT15; proxy_pass deaf; proxy_connect_timeout 200ms; proxy_half_close on; }
      server { listen 127.0.0.1:PORT14; proxy_pass "$kind.example.com:80"; }
    }`)
})

after(async () => {
  await sidecar[Symbol.asyncDispose]()
  await Promise.all([peer, echo, deaf].map((each) => each[Symbol.asyncDispose]()))
})

const port = (word: string) => sidecar.ports[word]!

/** Records of sessions of one server, in order. */
function records(word: string): Record[] {
  const lines = sidecar.stdout.split('\n').filter((line) => line.startsWith('{'))
  return lines
    .map((line) => JSON.parse(line) as Record)
    .filter(({ server }) => server.endsWith(`:${port(word)}`))
}

/** The record of a server's next session, after those that there were. */
async function recorded(word: string, before: number): Promise<Record> {
  await until(() => records(word).length > before)
  return records(word)[before]!
}

/** A client and the connection that it has at the scripted peer. */
async function joined(word: string): Promise<{ client: Client; at: Client }> {
  const [client, at] = await Promise.all([dial(port(word)), peer.next()])
  return { client, at }
}

test('bytes pass both ways as they are', async () => {
  const { client, at } = await joined('PORT')
  const [there, back] = [randomBytes(3_000_000), randomBytes(3_000_000)]
  const sending = Promise.all([client.write(there), at.write(back)])
  const [came, returned] = await Promise.all([at.inbox.take(there.length), client.inbox.take(back.length)])
  await sending
  assert.ok(there.equals(came!) && back.equals(returned!))
  const before = records('PORT').length
  client.end()
  const { status, bytes, request_bytes, attempts, upstream } = await recorded('PORT', before)
  assert.deepEqual([status, bytes, request_bytes], [200, back.length, there.length])
  assert.deepEqual([upstream, attempts.map(({ peer }) => peer)], ['stream/scripted', [peer.address]])
})

test('a peer may speak first, and the client not at all', async () => {
  const { client, at } = await joined('PORT')
  await at.write('220 ready\r\n')
  assert.equal(`${await client.inbox.until('\n')}`, '220 ready\r\n')
  at.end()
  assert.equal(await client.closed, 'fin')
})

test('when one side has ended, the other gets the rest, and both are closed', async () => {
  const rest = randomBytes(500_000)
  for (const first of ['client', 'at'] as const) {
    const { [first]: one, [first === 'client' ? 'at' : 'client']: other } = await joined('PORT')
    void one.write(rest)
    one.end()
    assert.ok(rest.equals((await other.inbox.take(rest.length))!), first)
    assert.deepEqual(await Promise.all([one.closed, other.closed]), ['fin', 'fin'], first)
    other.close()
  }
})

test('where half-closed connections are allowed one direction goes on after the other has ended', async () => {
  for (const first of ['client', 'at'] as const) {
    const { [first]: one, [first === 'client' ? 'at' : 'client']: other } = await joined('PORT2')
    await one.write('that is all')
    one.end()
    assert.equal(await other.closed, 'fin')
    assert.equal(`${other.inbox.unread}`, 'that is all')
    const answer = randomBytes(200_000)
    for (let at = 0; at < answer.length; at += 50_000) {
      await other.write(answer.subarray(at, at + 50_000))
      await wait(10)
    }
    assert.ok(answer.equals((await one.inbox.take(answer.length))!), first)
    assert.equal(one.inbox.ended, undefined)
    const before = records('PORT2').length
    other.end()
    assert.equal(await one.closed, 'fin')
    assert.equal((await recorded('PORT2', before)).attempts[0]?.ending, 'ok')
  }
})

test('a side that is cut off is no side that has ended: the other one is reset', async () => {
  for (const word of ['PORT', 'PORT2']) {
    for (const first of ['client', 'at'] as const) {
      const { [first]: one, [first === 'client' ? 'at' : 'client']: other } = await joined(word)
      await one.write('half of')
      await other.inbox.take(7)
      const before = records(word).length
      one.reset()
      assert.equal(await other.closed, 'reset', `${word} ${first}`)
      const { status, attempts } = await recorded(word, before)
      const how = first === 'client' ? ['aborted', 'client_abort'] : ['error', 'reset']
      assert.deepEqual([status, attempts[0]?.ending, attempts[0]?.reason], [200, ...how])
    }
  }
  const text = await (await fetch(`${sidecar.admin}/metrics`)).text()
  assert.match(text, /^evenkeel_peer_failures_total\{upstream="stream\/scripted",.*\} 0$/m)
})

test('what a client sends before there is a connection is kept for it', async () => {
  const much = randomBytes(100_000)
  const [client, ended] = await Promise.all([dial(port('PORT7')), dial(port('PORT15'))])
  void client.write(much)
  await ended.write('kept, with its end')
  ended.end()
  assert.ok(much.equals((await client.inbox.take(much.length))!))
  assert.equal(await ended.closed, 'fin')
  assert.equal(`${ended.inbox.unread}`, 'kept, with its end')
  client.end()
})

test('a peer that refuses, and one that does not answer, are passed over', async () => {
  for (const [word, reason] of [
    ['PORT5', 'refused'],
    ['PORT7', 'timeout_connect'],
  ] as const) {
    for (let i = 0; i < 2; i++) {
      const client = await dial(port(word))
      await client.write('over')
      assert.equal(`${await client.inbox.take(4)}`, 'over')
      client.end()
      await client.closed
    }
    await until(() => records(word).some(({ attempts }) => attempts.length === 2))
    const found = records(word).find(({ attempts }) => attempts.length === 2)!
    const [first, second] = found.attempts
    assert.deepEqual([first?.reason, first?.connect_ms], [reason, null])
    assert.deepEqual(
      [found.status, second?.peer, second?.ending, second?.reason],
      [200, echo.address, 'ok', null],
    )
  }
})

test('with nobody to connect to a session ends, and says so', async () => {
  const first = await dial(port('PORT6'))
  assert.equal(await first.closed, 'fin')
  const one = await recorded('PORT6', 0)
  assert.deepEqual(
    [one.status, one.attempts.map(({ reason }) => reason), one.denial],
    [502, ['refused', 'refused'], 'tries'],
  )
  const second = await dial(port('PORT6'))
  assert.equal(await second.closed, 'fin')
  const { status, denial, attempts } = await recorded('PORT6', 1)
  assert.deepEqual(
    [status, denial, attempts],
    [502, 'no_live', [{ ...attempts[0], peer: 'dead', ending: 'no_live', reason: null }]],
  )
  await sidecar.logged(
    /\[error\] .* no live upstreams while connecting to upstream, client: 127\.0\.0\.1, server: 127\.0\.0\.1:\d+, upstream: "dead", bytes from\/to client:0\/0/,
  )
  await sidecar.logged(
    /connect\(\) failed \(111: Connection refused\) while connecting to upstream, client: .*, upstream: "127\.0\.0\.1:1"/,
  )
})

test('a client that leaves while its peer is connected to says nothing of the peer', async () => {
  for (const how of ['end', 'reset'] as const) {
    const before = records('PORT8').length
    const client = await dial(port('PORT8'))
    await wait(50)
    client[how]()
    const { status, attempts } = await recorded('PORT8', before)
    assert.deepEqual([status, attempts[0]?.ending, attempts[0]?.reason], [200, 'aborted', 'client_abort'])
  }
})

test('a session ends when nothing has passed for its time, and not before', async () => {
  const { client, at } = await joined('PORT3')
  for (let i = 0; i < 4; i++) {
    await wait(150)
    await (i % 2 === 0 ? client : at).write('.')
  }
  const from = performance.now()
  const before = records('PORT3').length
  assert.deepEqual(await Promise.all([client.closed, at.closed]), ['fin', 'fin'])
  const idle = performance.now() - from
  assert.ok(idle > 250 && idle < 1000, `${idle} ms`)
  const { status, attempts } = await recorded('PORT3', before)
  assert.deepEqual([status, attempts[0]?.ending, attempts[0]?.reason], [200, 'ok', null])
})

test('a side that takes nothing for that time is reset, since what is held for it is lost', async () => {
  const { client, at } = await joined('PORT3')
  client.socket.pause()
  void at.write(Buffer.alloc(16 << 20))
  assert.equal(await at.closed, 'fin')
  client.socket.resume()
  assert.equal(await client.closed, 'reset')
})

test('a text of the server is all that a client gets of it', async () => {
  const client = await dial(port('PORT9'))
  assert.equal(await client.closed, 'fin')
  assert.equal(`${client.inbox.unread}`, `127.0.0.1:${port('PORT9')} TCP\n`)
  assert.equal((await recorded('PORT9', 0)).status, 200)
})

test('a name of variables goes to the group of that name, and to nobody where there is none', async () => {
  const client = await dial(port('PORT10'))
  await client.write('abc')
  await client.inbox.take(3)
  client.end()
  await sidecar.logged(
    new RegExp(`^127.0.0.1 TCP 200 3/3 ${echo.address} 3 3 \\[-\\] single local ${port('PORT10')}$`, 'm'),
  )
  const lost = await dial(port('PORT11'))
  assert.equal(await lost.closed, 'fin')
  assert.deepEqual([(await recorded('PORT11', 0)).status, records('PORT11')[0]?.upstream], [500, null])
  const unknown = await dial(port('PORT14'))
  assert.equal(await unknown.closed, 'fin')
  assert.equal((await recorded('PORT14', 0)).status, 500)
  await sidecar.logged(
    /\[error\] .* no resolver defined to resolve local\.example\.com, client: 127\.0\.0\.1, server: /,
  )
})

test('an address is a group of its own', async () => {
  const client = await dial(port('PORT13'))
  await client.write('abc')
  await client.inbox.take(3)
  client.end()
  assert.equal((await recorded('PORT13', 0)).upstream, `stream/${echo.address}`)
})

test('a peer has no more sessions than it may have', async () => {
  const { client } = await joined('PORT12')
  const refused = await dial(port('PORT12'))
  assert.equal(await refused.closed, 'fin')
  const { status, denial } = await recorded('PORT12', 0)
  assert.deepEqual([status, denial], [502, 'overflow'])
  client.end()
  await recorded('PORT12', 1)
  const { client: next } = await joined('PORT12')
  next.end()
})
