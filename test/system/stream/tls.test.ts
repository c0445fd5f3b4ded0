import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { type Issued, Issuer } from '../../support/authority.ts'
import { type Client, dial } from '../../support/client.ts'
import { firstMessage } from '../../support/first-message.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'
import { type TcpPeer, tcpPeer } from '../../support/tcp-peer.ts'
import { dialTls } from '../../support/tls-client.ts'
import { type StreamingPeer, streamingPeer, tlsPeer } from '../../support/tls-peer.ts'
import { until } from '../../support/until.ts'

/** Sessions with clients that speak TLS, and with peers that do. */

interface Zone {
  readonly ssl: {
    readonly handshaked: number
    readonly reuses: number
    readonly timedout: number
    readonly failed: number
  }
  readonly sessions: { readonly internal_error: number; readonly success: number }
  readonly data: { readonly received: number; readonly sent: number }
}

const issuer = new Issuer()
const root = issuer.root()
const shop = issuer.issue('shop.example', { by: root })
const member = issuer.issue('member', { by: root })
const strange = issuer.issue('strange', { by: issuer.root('elsewhere') })
const expired = issuer.issue('expired.example', { by: root, days: -1 })
const protocols = ['TLSv1.2', 'TLSv1.3'] as const

let echo: StreamingPeer
let peer: TcpPeer
/** By name: peers that speak TLS. */
let good: StreamingPeer
let bad: StreamingPeer
let old: StreamingPeer
let asking: StreamingPeer
let told: string[] = []
let sidecar: Sidecar

before(async () => {
  echo = await streamingPeer()
  peer = await tcpPeer()
  good = await tlsPeer(shop, (secure) => {
    told.push(
      `${secure.getProtocol()} ${(secure as TLSSocket & { servername?: string }).servername} ${secure.isSessionReused()}`,
    )
  })
  bad = await tlsPeer(strange)
  old = await tlsPeer(expired)
  asking = await tlsPeer(shop, undefined, { requestCert: true, ca: root.cert })
  const own = `ssl_certificate ${shop.certFile}; ssl_certificate_key ${shop.keyFile};`
  const verified = `proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile};`
  sidecar = await start(`
    error_log stderr info;
    stream {
      log_format own '$server_port $status [$ssl_protocol $ssl_server_name $ssl_alpn_protocol $ssl_client_verify $ssl_client_s_dn] '
        '$bytes_received/$bytes_sent $upstream_bytes_sent/$upstream_bytes_received [$upstream_reason] $upstream_addr';
      access_log /dev/stdout own;
      proxy_next_upstream_budget off;
      upstream shop.example { zone u 64k; server ${bad.address}; server ${old.address}; server ${good.address} backup; }
      upstream lone { server ${bad.address}; }
      ${own}
      server { listen 127.0.0.1:PORT ssl; status_zone echo; ssl_alpn x y; proxy_pass ${echo.address}; }
      server { listen 127.0.0.1:PORT2 ssl; status_zone slow; ssl_handshake_timeout 200ms; return "hi $ssl_cipher"; }
      server { listen 127.0.0.1:PORT3 ssl; proxy_pass ${peer.address}; proxy_half_close on; }
      server { listen 127.0.0.1:PORT4 ssl; proxy_pass ${peer.address}; }
      server { listen 127.0.0.1:PORT5 ssl; ssl_verify_client on; ssl_client_certificate ${root.certFile}; status_zone known; return known; }
      server { listen 127.0.0.1:PORT6 ssl proxy_protocol; set_real_ip_from 127.0.0.0/8; return "$remote_addr $ssl_protocol"; }
      server { listen 127.0.0.1:PORT7; ${verified} proxy_ssl_server_name on; proxy_pass shop.example; }
      server { listen 127.0.0.1:PORT8; ${verified} proxy_pass lone; }
      server { listen 127.0.0.1:PORT9; proxy_ssl on; proxy_pass ${peer.address}; proxy_connect_timeout 200ms; }
      server { listen 127.0.0.1:PORT10; proxy_ssl on; proxy_pass ${asking.address};
        proxy_ssl_certificate ${member.certFile}; proxy_ssl_certificate_key ${member.keyFile}; }
      server { listen 127.0.0.1:PORT11 ssl; proxy_ssl on; proxy_protocol on; proxy_pass ${peer.address}; }
      server { listen 127.0.0.1:PORT12 ssl; proxy_ssl on; proxy_pass ${good.address}; proxy_timeout 1s; }
      server { listen 127.0.0.1:PORT13; proxy_ssl on; proxy_ssl_name other.example; ${verified.replace('proxy_ssl on;', '')} proxy_pass ${good.address}; }
      server { listen 127.0.0.1:PORT14 ssl; ssl_reject_handshake on; return never; }
    }`)
})

after(async () => {
  await sidecar[Symbol.asyncDispose]()
  await Promise.all([echo, peer, good, bad, old, asking].map((each) => each[Symbol.asyncDispose]()))
  issuer[Symbol.dispose]()
})

const port = (word: string) => sidecar.ports[word]!
const zone = (name: string) => sidecar.json<Zone>(`/status/stream/server_zones/${name}/`)

async function talk(client: Client, text: string | Buffer): Promise<void> {
  await client.write(text)
  const bytes = Buffer.from(text)
  assert.deepEqual(await client.inbox.take(bytes.length), bytes)
}

/** So many bytes, however many. */
async function gathered({ inbox }: Client, count: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let left = count
  while (left > 0) {
    const part = await inbox.some()
    if (part === undefined) break
    parts.push(part)
    left -= part.length
  }
  return Buffer.concat(parts)
}

async function leave(client: Client): Promise<void> {
  client.end()
  assert.equal(await client.closed, 'fin')
  client.close()
}

/** What a peer of the program's own says as it is asked. */
async function line(word: string, options: { cert?: string; key?: string } = {}): Promise<string> {
  const client = await dialTls(port(word), options)
  const text = `${await client.inbox.some()}`
  client.close()
  return text
}

for (const version of protocols) {
  test(`sessions over ${version} carry every byte, both ways at once, and are known by what they are`, async () => {
    const options = {
      minVersion: version,
      maxVersion: version,
      ca: root.cert,
      rejectUnauthorized: true,
    } as const
    const client = await dialTls(sidecar.port, {
      ...options,
      servername: 'shop.example',
      ALPNProtocols: ['y', 'z'],
    })
    assert.equal(client.secure.alpnProtocol, 'y')
    const bytes = randomBytes(3_000_000)
    void client.write(bytes)
    assert.ok((await gathered(client, bytes.length)).equals(bytes))
    await leave(client)
    const name = version.replace('.', '\\.')
    const log = `\\d+ 200 \\[${name} shop\\.example y NONE -\\] 3000000/3000000 3000000/3000000 \\[-?\\] ${echo.address}\n`
    await sidecar.logged(new RegExp(log))
  })

  test(`a session of ${version} is taken up again`, async () => {
    const options = { minVersion: version, maxVersion: version } as const
    const first = await dialTls(sidecar.port, options)
    // Of TLS 1.3 it comes after the handshake.
    let session = first.secure.getSession()
    first.secure.on('session', (fresh) => {
      session = fresh
    })
    await talk(first, 'x')
    await leave(first)
    const before = (await zone('echo')).ssl.reuses
    const second = await dialTls(sidecar.port, { ...options, ...(session && { session }) })
    await talk(second, 'again')
    assert.ok(second.secure.isSessionReused())
    await leave(second)
    assert.equal((await zone('echo')).ssl.reuses, before + 1)
  })
}

test('who speaks no TLS, says nothing, or leaves in the handshake gets no peer, and is counted', async () => {
  const plain = await dial(port('PORT2'))
  await plain.write('GET / HTTP/1.1\r\n\r\n')
  assert.notEqual(await plain.closed, undefined)
  const silent = await dial(port('PORT2'))
  const hello = await firstMessage({})
  const half = await dial(port('PORT2'))
  await half.write(hello.subarray(0, 100))
  const whole = await dial(port('PORT2'))
  await whole.write(hello)
  const from = performance.now()
  for (const client of [silent, half, whole]) await client.closed
  assert.ok(performance.now() - from > 100)
  const gone = await dial(port('PORT2'))
  await gone.write(hello.subarray(0, 100))
  await wait(20)
  gone.reset()
  const broken = await dial(port('PORT2'))
  await broken.write(Buffer.concat([hello.subarray(0, 5), Buffer.alloc(hello.length, 9)]))
  await broken.closed
  await until(async () => (await zone('slow')).sessions.internal_error === 6)
  const { ssl, sessions } = await zone('slow')
  assert.deepEqual(ssl, { handshaked: 0, reuses: 0, timedout: 3, failed: 3 })
  assert.equal(sessions.success, 0)
  await sidecar.logged(/client sent no TLS to a port where it is spoken/)
  for (const client of [plain, silent, half, whole, broken]) client.close()
  assert.match(await line('PORT2'), /^hi \S+$/)
})

test('one direction goes on after the other has ended, where that is allowed', async () => {
  const client = await dialTls(port('PORT3'))
  const at = await peer.next()
  await client.write('question')
  client.end()
  assert.equal(`${await at.inbox.take(8)}`, 'question')
  await until(() => at.inbox.ended === 'fin')
  await wait(50)
  await at.write('answer')
  assert.equal(`${await client.inbox.take(6)}`, 'answer')
  at.end()
  assert.equal(await client.closed, 'fin')
  client.close()
  at.close()
})

test('the peer ends: the client gets all of it, and an end in order', async () => {
  const client = await dialTls(port('PORT4'))
  const at = await peer.next()
  const bytes = randomBytes(500_000)
  void at.write(bytes)
  at.end()
  assert.ok((await gathered(client, bytes.length)).equals(bytes))
  assert.equal(await client.closed, 'fin')
  client.close()
  at.close()
})

test('a reset goes through, either way', async () => {
  const client = await dialTls(port('PORT4'))
  const at = await peer.next()
  await client.write('x')
  await at.inbox.take(1)
  at.reset()
  assert.equal(await client.closed, 'reset')
  client.close()
  const raw = connectTcp(port('PORT4'), '127.0.0.1')
  const other = connect({ socket: raw, rejectUnauthorized: false })
  other.on('error', () => {})
  await once(other, 'secureConnect')
  const there = await peer.next()
  other.write('x')
  await there.inbox.take(1)
  raw.resetAndDestroy()
  assert.equal(await there.closed, 'reset')
  there.close()
})

test('clients show certificates where they are asked for', async () => {
  assert.equal(await line('PORT5', member), 'known')
  await sidecar.logged(/200 \[TLSv1\.3 - - SUCCESS CN=member\]/)
  for (const options of [{}, strange]) {
    const client = await dialTls(port('PORT5'), options).catch(() => undefined)
    if (client) {
      assert.equal(await client.inbox.some(), undefined)
      client.close()
    }
  }
  await sidecar.logged(/client sent no required SSL certificate/)
  await sidecar.logged(/client SSL certificate verify error: \(21:unable to verify the first certificate\)/)
  assert.equal((await zone('known')).sessions.internal_error, 2)
})

test('a PROXY header stands before the handshake, from clients and to peers', async () => {
  const raw = await dial(port('PORT6'))
  await raw.write('PROXY TCP4 10.1.2.3 10.0.0.2 1 2\r\n')
  raw.socket.removeAllListeners('data')
  const secure = connect({ socket: raw.socket, rejectUnauthorized: false })
  const [text] = await once(secure, 'data')
  assert.equal(`${text}`, '10.1.2.3 TLSv1.3')
  secure.destroy()
  const client = await dialTls(port('PORT11'))
  const at = await peer.next()
  const first = (await at.inbox.some())!
  assert.match(`${first.subarray(0, 40)}`, /^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 /)
  client.close()
  at.close()
})

test('a peer whose certificate does not pass is no peer: the next one is asked, and it counts against it', async () => {
  told = []
  const client = await dial(port('PORT7'))
  await talk(client, 'hello')
  await leave(client)
  assert.deepEqual(told, ['TLSv1.3 shop.example false'])
  const log = await sidecar.logged(/ 200 \[.*\] 5\/5 .* \[tls, tls, -?\] \S+, \S+, (\S+)\n/)
  assert.equal(log[1], good.address)
  const alone = await dial(port('PORT8'))
  assert.equal(await alone.closed, 'fin')
  alone.close()
  await sidecar.logged(/502 \[.*\[tls\]/)
  const misnamed = await dial(port('PORT13'))
  assert.equal(await misnamed.closed, 'fin')
  misnamed.close()
  await sidecar.logged(/upstream SSL certificate does not match \\x22other\.example/)
})

test('a peer that does not answer the handshake is given up in time', async () => {
  const client = await dial(port('PORT9'))
  const at = await peer.next()
  const from = performance.now()
  assert.equal(await client.closed, 'fin')
  assert.ok(performance.now() - from > 150)
  await sidecar.logged(/502 \[.*\[timeout_connect\]/)
  client.close()
  at.close()
  const refused = await dial(port('PORT9'))
  const there = await peer.next()
  await there.write('SSH-2.0-no\r\n')
  assert.equal(await refused.closed, 'fin')
  refused.close()
  there.close()
})

test('peers are shown a certificate, and take a session up again', async () => {
  const client = await dial(port('PORT10'))
  await talk(client, 'hello')
  await leave(client)
  told = []
  for (let i = 0; i < 2; i++) {
    const both = await dialTls(port('PORT12'))
    await talk(both, randomBytes(200_000))
    await leave(both)
  }
  assert.deepEqual(told, ['TLSv1.3 false false', 'TLSv1.3 false true'])
})

test('sessions that are idle end in time, and those of the end in order', async () => {
  const idle = await dialTls(port('PORT12'))
  assert.equal(await idle.closed, 'fin')
  idle.close()
})

test('where handshakes are rejected there are none', async () => {
  await assert.rejects(dialTls(port('PORT14')), /unrecognized name/)
})

test('certificates change by a reload, and sessions that are there go on', async () => {
  const configuration = ({ certFile, keyFile }: Issued) => `
    stream { server { listen 127.0.0.1:PORT ssl; ssl_certificate ${certFile}; ssl_certificate_key ${keyFile}; proxy_pass ${echo.address}; } }`
  await using front = await start(configuration(shop))
  const before = await dialTls(front.port)
  assert.equal(before.secure.getPeerCertificate().subject.CN, 'shop.example')
  await front.reload(configuration(strange))
  const then = await dialTls(front.port)
  assert.equal(then.secure.getPeerCertificate().subject.CN, 'strange')
  for (const client of [before, then]) {
    await talk(client, 'hello')
    await leave(client)
  }
})

test('probes speak TLS as sessions do', async () => {
  const tls = `proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile}; proxy_ssl_name shop.example;`
  await using front = await start(`
    stream {
      upstream u { zone u 64k; server ${good.address}; server ${bad.address}; }
      map $upstream_probe_response $same { PING 1; }
      server { listen 127.0.0.1:PORT; ${tls} proxy_pass u;
        upstream_probe p interval=100ms send=data:PING test=$same; }
    }`)
  await until(async () => {
    const peers = await front.json<Record<string, { state: string }>>('/status/stream/upstreams/u/peers/')
    return peers[good.address]?.state === 'up' && peers[bad.address]?.state === 'unhealthy'
  })
})
