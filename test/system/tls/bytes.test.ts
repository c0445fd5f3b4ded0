import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Issuer } from '../../support/authority.ts'
import { backend, echo } from '../../support/backend.ts'
import { ask, webSocket } from '../../support/client.ts'
import { belowOf, securePeer as peer, shown } from '../../support/secure-peer.ts'
import { start } from '../../support/sidecar.ts'
import { dialTls } from '../../support/tls-client.ts'
import { until } from '../../support/until.ts'

const issuer = new Issuer()
after(() => issuer[Symbol.dispose]())
const good = issuer.issue('good.test')

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
  await until(async () => {
    const before = sent
    await sleep(300)
    return before > 0 && sent === before
  }, 20_000)
  assert.ok(sent < 40, `${sent} MB have been sent to nobody`)
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
