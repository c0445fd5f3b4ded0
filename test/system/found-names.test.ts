// Names that a `proxy_pass` with variables comes to are looked up as requests bring them.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { backend } from '../support/backend.ts'
import { ask } from '../support/client.ts'
import { anywhere, neighbours } from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { http2Peer, say } from '../support/http2-peer.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

test('a name is looked up when a request brings it, and remembered', async () => {
  await using peers = await neighbours(1)
  await dns.has('app.example', ['127.0.0.1'], 60)
  await using sidecar = await start(anywhere(dns))
  for (let i = 0; i < 3; i++) {
    const reply = await ask(sidecar.port, `/x?to=App.example:${peers.port}`)
    assert.deepEqual([reply.status, reply.body.toString()], [200, '1'])
  }
  await until(() => dns.asked('app.example') > 0)
  assert.equal(dns.asked('app.example'), 1)
  assert.deepEqual(
    peers.at(1).requests.map(({ target }) => target),
    Array(3).fill(`/x?to=App.example:${peers.port}`),
  )
})

test('a name that moves is followed when its TTL is over, and connections to where it was are closed', async () => {
  await using peers = await neighbours(2)
  await dns.has('moves.example', ['127.0.0.1'], 1)
  await using sidecar = await start(anywhere(dns))
  const target = `/?to=moves.example:${peers.port}`
  assert.equal((await ask(sidecar.port, target)).text, '1')
  assert.equal(peers.at(1).open, 1)
  await dns.has('moves.example', ['127.0.0.2'], 60)
  await until(async () => (await ask(sidecar.port, target)).text === '2')
  await until(() => peers.at(1).open === 0)
  assert.equal((await ask(sidecar.port, target)).text, '2')
  assert.equal(peers.at(2).connections, 1)
})

test('valid holds in place of the TTL', async () => {
  await using peers = await neighbours(2)
  await dns.has('valid.example', ['127.0.0.1'], 3600)
  await using sidecar = await start(anywhere(dns, `resolver ${dns.address} valid=1s ipv6=off;`))
  const target = `/?to=valid.example:${peers.port}`
  assert.equal((await ask(sidecar.port, target)).text, '1')
  await dns.has('valid.example', ['127.0.0.2'], 3600)
  await until(async () => (await ask(sidecar.port, target)).text === '2')
})

test('why a name was not found is said in the error log, and the client has a 502', async () => {
  await dns.instead('silent.example', { how: 'drop' })
  await dns.instead('fails.example', { code: 'SERVFAIL' })
  await dns.instead('empty.example', {})
  await using sidecar = await start(
    anywhere(
      dns,
      `resolver ${dns.address}; resolver_timeout 300ms;`,
      'error_page 502 = @no; } location @no { return 502 "page"; ',
    ),
  )
  for (const [name, words] of [
    ['absent.example', '3: Host not found'],
    ['empty.example', '3: Host not found'],
    ['fails.example', '2: Server failure'],
    ['silent.example', '110: Operation timed out'],
    ['no_such..name', '3: Host not found'],
  ] as const) {
    const reply = await ask(sidecar.port, `/?to=${name}:80`)
    assert.deepEqual([reply.status, reply.text], [502, 'page'])
    const text = `[error] ${name} could not be resolved (${words}), client: 127.0.0.1, `
    await until(() => sidecar.stderr.replaceAll(/\d+#\d+: (?:\*\d+ )?/g, '').includes(text))
  }
  assert.equal((await ask(sidecar.port, '/?to=')).status, 500)
  await sidecar.logged(/\[error\].* no host in upstream "", client/)
  assert.equal((await ask(sidecar.port, '/?to=a,b')).status, 500)
  await sidecar.logged(/\[error\].* invalid host in upstream "a,b", client/)
  assert.equal((await ask(sidecar.port, '/?to=a:99999')).status, 500)
  await sidecar.logged(/\[error\].* invalid port in upstream "a:99999", client/)
})

test('the resolver of the innermost level counts, and without one nobody is asked', async () => {
  await using peers = await neighbours(1)
  await dns.has('level.example', ['127.0.0.1'], 60)
  const dead = `127.0.0.1:${await freePort()}`
  await using sidecar = await start(`
    http {
      resolver ${dead};
      server {
        listen 127.0.0.1:PORT;
        resolver ${dns.address} ipv6=off;
        location /server/ { proxy_pass http://$arg_to; }
        location /off/ { resolver off; proxy_pass http://$arg_to; location /off/in/ { proxy_pass http://$arg_to; } }
        location /dead/ { resolver ${dead}; proxy_pass http://$arg_to; location /dead/in/ { resolver ${dns.address}; proxy_pass http://$arg_to; } }
        location /if/ { resolver ${dead}; if ($arg_yes) { proxy_pass http://$arg_to; } }
      }
      server { listen 127.0.0.1:PORT2; location / { proxy_pass http://$arg_to; } }
    }`)
  const status = async (path: string, port = sidecar.port) =>
    (await ask(port, `${path}?yes=1&to=level.example:${peers.port}`)).status
  assert.equal(await status('/server/'), 200)
  assert.equal(await status('/dead/in/'), 200)
  for (const path of ['/off/', '/off/in/', '/dead/', '/if/']) assert.equal(await status(path), 502, path)
  await sidecar.logged(/\[error\].* no resolver defined to resolve level\.example, client/)
  await sidecar.logged(/\[error\].* level\.example could not be resolved \(ECONNREFUSED/)
  assert.equal(await status('/', sidecar.ports['PORT2']), 502)
})

test('all addresses of a name are tried, and every attempt is told of', async () => {
  await using peers = await neighbours(1)
  await dns.has('three.example', ['127.0.0.8', '127.0.0.9', '127.0.0.1'], 60)
  await using sidecar = await start(
    anywhere(dns, undefined, 'add_header X-Tried "$upstream_addr|$upstream_status";'),
  )
  const reply = await ask(sidecar.port, `/?to=three.example:${peers.port}`)
  const at = (n: number) => `127.0.0.${n}:${peers.port}`
  assert.equal(reply.text, '1')
  // Addresses stand in the order of their numbers.
  assert.equal(reply.header('x-tried'), `${at(1)}|200`)
  const second = await ask(sidecar.port, `/?to=three.example:${peers.port}`)
  assert.equal(second.text, '1')
  assert.equal(second.header('x-tried'), `${at(8)}, ${at(9)}, ${at(1)}|502, 502, 200`)
  // Those that were set aside are known to be for as long as the name is used.
  const third = await ask(sidecar.port, `/?to=three.example:${peers.port}`)
  assert.equal(third.header('x-tried'), `${at(1)}|200`)
  const [, line = ''] = await sidecar.logged(/^(\{.*"reason":"refused".*\})$/m)
  // The program writes a line of JSON.
  const record = JSON.parse(line) as { upstream: string; attempts: { peer: string; status: number }[] }
  assert.equal(record.upstream, `three.example:${peers.port}`)
  assert.deepEqual(
    record.attempts.map(({ peer, status }) => `${peer} ${status}`),
    [`${at(8)} 502`, `${at(9)} 502`, `${at(1)} 200`],
  )
})

test('IP addresses and Unix sockets that a request brings need no resolver', async () => {
  await using one = await backend({ body: 'four' })
  await using six = await backend({ body: 'six' }, { host: '::1' })
  await using sidecar = await start(
    `http { server { listen 127.0.0.1:PORT; location / { proxy_pass http://$arg_to; } } }`,
  )
  const path = `${sidecar.folder}/peer.sock`
  await using unix = await backend({ body: 'unix', headers: { Connection: 'close' } }, { path })
  for (const [to, text] of [
    [one.address, 'four'],
    [`[::1]:${six.port}`, 'six'],
    [`unix:${path}:`, 'unix'],
  ] as const)
    assert.equal((await ask(sidecar.port, `/?to=${to}`)).text, text)
  await until(() => unix.open === 0)
})

test('no name, and no address, that a request brings has a place in the status tree or in metrics', async () => {
  await using peers = await neighbours(2)
  await dns.has('series.example', ['127.0.0.1'], 60)
  await using sidecar = await start(anywhere(dns))
  for (const to of ['series.example', '127.0.0.2'])
    assert.equal((await ask(sidecar.port, `/?to=${to}:${peers.port}`)).status, 200)
  const told = async (path: string) => (await fetch(sidecar.admin + path)).text()
  for (const path of ['/metrics', '/metrics/angie', '/status/', '/upstreams']) {
    const text = await told(path)
    assert.ok(text.includes('named'), path)
    assert.doesNotMatch(text, new RegExp(`series\\.example|127\\.0\\.0\\.[12]:${peers.port}`), path)
  }
})

test('calls of gRPC go to names that they bring', async () => {
  await using peer = await http2Peer((stream) => say(stream))
  await dns.has('grpc.example', ['127.0.0.1'], 60)
  await using sidecar = await start(`
    http {
      resolver ${dns.address} ipv6=off;
      server { listen 127.0.0.1:PORT; location / { grpc_pass grpc://$arg_to; } }
    }`)
  for (let i = 0; i < 2; i++)
    assert.equal((await ask(sidecar.port, `/?to=grpc.example:${peer.port}`)).status, 200)
  assert.equal(peer.connections, 1)
})
