import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import { type Backend, backend, type Exchange, echo } from '../../support/backend.ts'
import { ask, webSocket } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { start } from '../../support/sidecar.ts'
import { dialTls } from '../../support/tls-client.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const root = issuer.root()
const middle = issuer.issue('middle', { by: root, authority: true })
const lower = issuer.issue('lower', { by: middle, authority: true })
const good = issuer.issue('good.test', { by: root })
const expired = issuer.issue('expired', { by: root, hosts: ['good.test'], days: -1 })
const self = issuer.issue('self', { hosts: ['good.test'] })
const other = issuer.issue('other.test', { by: root })
const revoked = issuer.issue('revoked', { by: root, hosts: ['good.test'] })
const deep = issuer.issue('deep', { by: middle, hosts: ['good.test'] })
const deeper = issuer.issue('deeper', { by: lower, hosts: ['good.test'] })
const client = issuer.issue('client', { by: root })
const crl = issuer.revoked(root, revoked)

const shown = ({ cert, key }: { cert: string; key: string }): TlsOptions => ({ cert, key })

/** What a peer knows of its client. */
function seen({ socket }: Exchange): TLSSocket {
  // The peers here speak TLS.
  return socket as TLSSocket
}

const answers = (x: Exchange) => x.reply({ body: `${seen(x).servername} ${seen(x).isSessionReused()}` })

async function peer(tls: TlsOptions, script = answers): Promise<Backend> {
  const one = await backend(script, { tls })
  after(() => one.stop())
  return one
}

const verified = `proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile}; proxy_ssl_name good.test;`

test('without being told to, certificates of peers are not looked at, and no name is sent', async () => {
  const a = await peer(shown(self))
  await using sidecar = await start(`http {
    access_log off;
    server { listen 127.0.0.1:PORT; explain_header X-Why; location / { proxy_pass https://${a.address}; } }
  }`)
  const reply = await ask(sidecar.port)
  assert.equal(reply.text, 'false false')
  assert.equal(reply.header('x-why'), `${a.address} 200 (single)`)
})

test('a peer whose certificate does not pass is a failure for reason of tls, and the next one is asked', async () => {
  const fine = await peer(shown(good))
  const chain = deeper.cert + lower.cert + middle.cert
  const cases = [
    [expired, expired.cert, 'certificate verify error: (10:certificate has expired)'],
    [self, self.cert, 'certificate verify error: (18:self-signed certificate)'],
    [other, other.cert, 'certificate does not match \\x22good.test\\x22'],
    [revoked, revoked.cert, 'certificate verify error: (23:certificate revoked)'],
    [deeper, chain, 'certificate verify error: (22:certificate chain too long)'],
  ] as const
  const bad = await Promise.all(cases.map(([{ key }, cert]) => peer({ key, cert })))
  const each = (line: (name: string, address: string) => string) =>
    cases.map(([{ name }], i) => line(name.split('.')[0]!, bad[i]!.address)).join('\n')
  await using sidecar = await start(`http {
    access_log off;
    ${each((name, address) => `upstream ${name} { zone ${name} 64k; server ${address} max_fails=2; server ${fine.address}; }`)}
    server {
      listen 127.0.0.1:PORT; explain_header X-Why; ${verified}
      ${each((name) => `location /${name} { proxy_pass https://${name}; ${name === 'revoked' ? `proxy_ssl_crl ${crl};` : ''} }`)}
    }
  }`)
  for (const [i, [issued, , words]] of cases.entries()) {
    const name = issued.name.split('.')[0]!
    const { address, requests } = bad[i]!
    const reply = await ask(sidecar.port, `/${name}`)
    assert.equal(reply.status, 200, name)
    assert.equal(reply.header('x-why'), `${address} 502 tls (round_robin), ${fine.address} 200 (round_robin)`)
    const line = `upstream SSL ${words} while SSL handshaking to upstream`
    await eventually(line, () => sidecar.stderr.includes(line))
    const peers = await sidecar.json<Record<string, { health: { fails: number } }>>(
      `/status/http/upstreams/${name}/peers`,
    )
    assert.equal(peers[address]!.health.fails, 1)
    assert.equal(requests.length, 0)
  }
  assert.match(sidecar.stderr, /upstream: "https:\/\/127/)
  const metrics = await (await fetch(`${sidecar.admin}/metrics`)).text()
  assert.equal(metrics.match(/reason="tls"[^\n]* 1$/gm)?.length, cases.length)
})

test('a good certificate passes, by as many authorities as may stand in between', async () => {
  const one = await peer(shown(good))
  const two = await peer({ key: deep.key, cert: deep.cert + middle.cert })
  await using sidecar = await start(`http {
    access_log off;
    server {
      listen 127.0.0.1:PORT; ${verified}
      location /one { proxy_pass https://${one.address}; proxy_ssl_verify_depth 0; }
      location /two { proxy_pass https://${two.address}; }
      location /none { proxy_pass https://${two.address}; proxy_ssl_verify_depth 0; }
    }
  }`)
  for (const [path, status] of [
    ['/one', 200],
    ['/two', 200],
    ['/none', 502],
  ] as const)
    assert.equal((await ask(sidecar.port, path)).status, status, path)
})

test('a name with variables is verified, and sent where names are', async () => {
  const a = await peer(shown(good))
  await using sidecar = await start(`worker_processes 1; http {
    access_log off;
    server {
      listen 127.0.0.1:PORT; proxy_ssl_verify on; proxy_ssl_trusted_certificate ${root.certFile};
      proxy_ssl_server_name on; proxy_ssl_name $arg_name.test;
      location / { proxy_pass https://${a.address}; }
    }
  }`)
  assert.equal((await ask(sidecar.port, '/?name=good')).text, 'good.test false')
  assert.equal((await ask(sidecar.port, '/?name=bad')).status, 502)
  // The connection that is kept is for the other name.
  assert.equal((await ask(sidecar.port, '/?name=good')).text, 'good.test false')
  assert.equal(a.connections, 1)
})

test('connections are kept, and shared by nobody who says something else of TLS', async () => {
  const a = await peer({ ...shown(good), requestCert: true, rejectUnauthorized: false }, (x) => {
    const { subject } = seen(x).getPeerCertificate()
    return x.reply({ body: `${x.connection} ${subject?.CN}` })
  })
  await using sidecar = await start(`worker_processes 1; http {
    access_log off;
    upstream u { server ${a.address}; }
    server {
      listen 127.0.0.1:PORT;
      location /plain { proxy_pass https://u; }
      location /same { proxy_pass https://u; }
      location /shown { proxy_pass https://u; proxy_ssl_certificate ${client.certFile}; proxy_ssl_certificate_key ${client.keyFile}; }
      location /verified { proxy_pass https://u; ${verified} }
      location /old { proxy_pass https://u; proxy_ssl_protocols TLSv1.2; }
    }
  }`)
  const bodies: string[] = []
  for (const path of ['plain', 'same', 'shown', 'verified', 'old', 'plain', 'shown', 'old'])
    bodies.push((await ask(sidecar.port, `/${path}`)).text)
  assert.deepEqual(bodies, [
    '1 undefined',
    '1 undefined',
    '2 client',
    '3 undefined',
    '4 undefined',
    '1 undefined',
    '2 client',
    '4 undefined',
  ])
})

test('sessions are taken up again, unless that is switched off', async () => {
  const a = await peer(shown(good))
  await using sidecar = await start(`worker_processes 1; http {
    access_log off;
    upstream u { server ${a.address}; keepalive 0; }
    server {
      listen 127.0.0.1:PORT; ${verified}
      location / { proxy_pass https://u; }
      location /off { proxy_pass https://u; proxy_ssl_session_reuse off; }
    }
  }`)
  const reused = async (path: string) => (await ask(sidecar.port, path)).text
  assert.equal(await reused('/'), 'false false')
  assert.equal(await reused('/'), 'false true')
  assert.equal(await reused('/off'), 'false false')
  assert.equal(await reused('/off'), 'false false')
})

test('a peer that does not speak TLS, or hangs in the handshake, is a failure of its own kind', async () => {
  const plain = await listening((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
  )
  const leaving = await listening((socket) => socket.once('data', () => socket.end()))
  const held: Socket[] = []
  const silent = await listening((socket) => held.push(socket))
  const rude = await listening((socket) => socket.once('data', () => socket.destroy()))
  await using sidecar = await start(`http {
    access_log off;
    proxy_connect_timeout 150ms;
    server {
      listen 127.0.0.1:PORT; explain_header X-Why;
      location /plain { proxy_pass https://127.0.0.1:${plain.port}; }
      location /leaving { proxy_pass https://127.0.0.1:${leaving.port}; }
      location /silent { proxy_pass https://127.0.0.1:${silent.port}; }
      location /rude { proxy_pass https://127.0.0.1:${rude.port}; }
    }
  }`)
  const why = async (path: string) => (await ask(sidecar.port, path)).header('x-why')!.replace(/^\S+ /, '')
  assert.equal(await why('/plain'), '502 tls (single), tries')
  assert.equal(await why('/silent'), '504 timeout_connect (single), tries')
  assert.equal(await why('/rude'), '502 tls (single), tries')
  assert.equal(await why('/leaving'), '502 tls (single), tries')
  for (const socket of held) socket.destroy()
  for (const { server } of [plain, leaving, silent, rude]) server.close()
})

async function listening(serve: (socket: Socket) => void): Promise<{ server: Server; port: number }> {
  const server = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return { server, port: address.port }
}

test('a peer that refuses what it is shown is a failure for reason of tls', async () => {
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    // OpenSSL's own refusal, with an alert: Node would close without one.
    const a = await peer({
      ...shown(good),
      maxVersion,
      minVersion: 'TLSv1.3' > maxVersion ? 'TLSv1.2' : 'TLSv1.3',
    })
    await using sidecar = await start(`http {
      access_log off;
      server {
        listen 127.0.0.1:PORT; explain_header X-Why;
        proxy_ssl_protocols ${maxVersion === 'TLSv1.2' ? 'TLSv1.3' : 'TLSv1.2'};
        location / { proxy_pass https://${a.address}; }
      }
    }`)
    const reply = await ask(sidecar.port)
    assert.equal(reply.header('x-why'), `${a.address} 502 tls (single), tries`)
    await sidecar.logged(/SSL_do_handshake\(\) failed \(SSL: .*alert.*\) while SSL handshaking to upstream/)
  }
})

test('bodies pass both ways, and are counted without what TLS adds', async () => {
  const a = await peer(shown(good), async (x) => {
    const { body } = await x.body()
    await x.reply({ body })
  })
  await using sidecar = await start(`http {
    log_format own '$request_length $bytes_sent $body_bytes_sent $upstream_bytes_received $upstream_response_length';
    access_log /dev/stdout own;
    client_max_body_size 8m;
    server {
      listen 127.0.0.1:PORT ssl; ssl_certificate ${good.certFile}; ssl_certificate_key ${good.keyFile};
      location / { proxy_pass https://${a.address}; }
    }
  }`)
  const body = Buffer.alloc(3_000_000, 'abcdefg')
  const secure = await dialTls(sidecar.port)
  const reply = await secure.ask('/', { method: 'POST', body })
  assert.ok(reply.body.equals(body))
  secure.close()
  const [, ...numbers] = await sidecar.logged(/(\d+) (\d+) (\d+) (\d+) (\d+)/)
  const [request, sent, bodySent, received, length] = numbers.map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ]
  assert.equal(bodySent, body.length)
  assert.equal(length, body.length)
  for (const bytes of [request, sent, received])
    assert.ok(bytes > body.length && bytes < body.length + 500, `${bytes}`)
})

test('tunnels run over TLS on either side, or on both', async () => {
  const a = await peer(shown(good), echo)
  await using b = await backend(echo)
  await using sidecar = await start(`http {
    access_log off;
    server {
      listen 127.0.0.1:PORT; listen 127.0.0.1:PORT2 ssl; ssl_certificate ${good.certFile}; ssl_certificate_key ${good.keyFile};
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
      location /secure { proxy_pass https://${a.address}; }
      location /plain { proxy_pass http://${b.address}; }
    }
  }`)
  const headers = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
  }
  const payload = Buffer.alloc(500_000, 'x')
  for (const path of ['/secure', '/plain']) {
    const tunnel = await dialTls(sidecar.ports['PORT2']!)
    assert.equal((await tunnel.ask(path, { headers })).status, 101)
    void tunnel.write(payload)
    let got = 0
    while (got < payload.length) got += (await tunnel.inbox.some())!.length
    assert.equal(got, payload.length)
    tunnel.end()
    await tunnel.closed
  }
  const { client } = await webSocket(sidecar.port, '/secure')
  await client.write('from a plain one')
  assert.equal((await client.inbox.some())?.toString(), 'from a plain one')
  client.end()
  await client.closed
})

test('an answer that is broken off is not taken for whole, and its client can tell', async () => {
  const a = await peer(shown(good), async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
    await sleep(20)
    x.socket.destroy()
  })
  await using sidecar = await start(`http {
    access_log off;
    server {
      listen 127.0.0.1:PORT ssl; ssl_certificate ${good.certFile}; ssl_certificate_key ${good.keyFile};
      location / { proxy_pass https://${a.address}; }
    }
  }`)
  const secure = await dialTls(sidecar.port)
  const reply = await secure.ask('/')
  assert.deepEqual([reply.status, reply.complete, reply.text], [200, false, 'half'])
  secure.close()
  await sidecar.logged(/upstream prematurely closed connection while reading upstream/)
})

test('a peer that resets its connection is told from one that closes it', async () => {
  const a = await peer(shown(good), async (x) => {
    if (x.target === '/reset') belowOf(x).resetAndDestroy()
    else x.socket.end()
  })
  await using sidecar = await start(`http {
    access_log off;
    upstream u { zone u 64k; server ${a.address} max_fails=0; }
    server { listen 127.0.0.1:PORT; explain_header X-Why; location / { proxy_pass https://u; } }
  }`)
  for (const [path, reason] of [
    ['/reset', 'reset'],
    ['/close', 'closed'],
  ] as const) {
    const reply = await ask(sidecar.port, path)
    assert.equal(reply.header('x-why'), `${a.address} 502 ${reason} (single), tries`)
  }
})

test('a slow client holds a peer up that speaks TLS, on either side', async () => {
  let sent = 0
  const a = await peer(shown(good), async (x) => {
    await x.send('HTTP/1.1 200 OK\r\nContent-Length: 400000000\r\n\r\n')
    const piece = Buffer.alloc(1_000_000, 'x')
    for (let gone = false; !gone && sent < 400; sent++) {
      gone = await Promise.race([x.send(piece).then(() => x.socket.destroyed), x.gone.then(() => true)])
    }
  })
  await using sidecar = await start(`http {
    access_log off;
    server {
      listen 127.0.0.1:PORT ssl; ssl_certificate ${good.certFile}; ssl_certificate_key ${good.keyFile};
      location / { proxy_pass https://${a.address}; }
    }
  }`)
  const secure = await dialTls(sidecar.port)
  secure.socket.pause()
  await secure.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await sleep(400)
  const held = sent
  assert.ok(held < 40, `${held} MB have been sent to nobody`)
  await sleep(200)
  assert.ok(sent <= held + 1, 'and no more')
  secure.close()
})

test('an answer that ends with its connection is whole only where the peer says that this is the end', async () => {
  const head = 'HTTP/1.1 200 OK\r\n\r\n'
  const bodies = ['', 'all', '12', 'x'.repeat(70_000)]
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const a = await peer({ ...shown(good), maxVersion }, async (x) => {
      const [, how, which] = /^\/(\w+)\/(\d)/.exec(x.target)!
      await x.send(head)
      const body = bodies[Number(which)]!
      if (body !== '') await x.send(body)
      await sleep(how === 'slowly' ? 30 : 0)
      if (how === 'cut') belowOf(x).end()
      else x.socket.end()
    })
    await using sidecar = await start(`http {
      access_log off;
      upstream u { zone u 64k; server ${a.address} max_fails=0; }
      server { listen 127.0.0.1:PORT; location / { proxy_pass https://u; } }
    }`)
    for (const [which, body] of bodies.entries()) {
      for (const how of ['whole', 'slowly']) {
        const reply = await ask(sidecar.port, `/${how}/${which}`)
        assert.deepEqual(
          [reply.complete, reply.text.length],
          [true, body.length],
          `${maxVersion} ${how} ${which}`,
        )
      }
      const reply = await ask(sidecar.port, `/cut/${which}`)
      assert.equal(reply.complete, false, `${maxVersion} cut ${which}`)
    }
    const peers = await sidecar.json<Record<string, { health: { fails: number } }>>(
      '/status/http/upstreams/u/peers',
    )
    assert.equal(peers[a.address]!.health.fails, bodies.length)
  }
})

/** The connection below TLS. */
function belowOf({ socket }: Exchange): Socket {
  // Node gives it no other name.
  return (socket as Socket & { readonly _parent: Socket })._parent
}

test('probes speak TLS as their location does', async () => {
  const a = await peer(shown(good), (x) => x.reply({ body: x.target }))
  const b = await peer(shown(other), (x) => x.reply({ body: x.target }))
  await using sidecar = await start(`http {
    access_log off;
    upstream u { zone u 64k; server ${a.address}; server ${b.address}; }
    server {
      listen 127.0.0.1:PORT;
      location / { proxy_pass https://u; ${verified} upstream_probe p uri=/health interval=50ms; }
    }
  }`)
  const state = async ({ address }: Backend) => {
    const peers = await sidecar.json<Record<string, { state: string }>>('/status/http/upstreams/u/peers')
    return peers[address]!.state
  }
  await eventually('the one with another name is unhealthy', async () => (await state(b)) === 'unhealthy')
  await eventually('the other one has been asked', () => a.targets.includes('/health'))
  assert.equal(await state(a), 'up')
  assert.equal(b.requests.length, 0)
})
