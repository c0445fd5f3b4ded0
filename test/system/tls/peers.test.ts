import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { after, test } from 'node:test'
import type { TlsOptions } from 'node:tls'
import { Issuer } from '../../support/authority.ts'
import type { Backend, Exchange, Script } from '../../support/backend.ts'
import { ask } from '../../support/client.ts'
import { eventually } from '../../support/invariants.ts'
import { securePeer, seen, shown } from '../../support/secure-peer.ts'
import { start } from '../../support/sidecar.ts'

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

const answers = (x: Exchange) => x.reply({ body: `${seen(x).servername} ${seen(x).isSessionReused()}` })

const peer = (tls: TlsOptions, script: Script = answers) => securePeer(tls, script)

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
