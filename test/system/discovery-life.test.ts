import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backend, type Exchange, echo } from '../support/backend.ts'
import { ask, dial, webSocket } from '../support/client.ts'
import {
  answer,
  followed,
  hasMembers,
  members,
  type Neighbours,
  neighbours,
  peersOf,
} from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

test('a reload keeps the addresses and asks nobody, and forgets names that it has no more', async () => {
  await using peers = await neighbours(2)
  await dns.has('stays.example', ['127.0.0.1'])
  await dns.has('goes.example', ['127.0.0.2'])
  const resolver = `resolver ${dns.address} ipv6=off valid=60s;`
  const both = (more: string) =>
    followed(dns, `stays.example:${peers.port} resolve`, { resolver, group: more })
  await using sidecar = await start(both(`server goes.example:${peers.port} resolve;`))
  assert.equal(dns.asked('stays.example'), 1)
  await dns.instead('stays.example', { how: 'drop' })
  await sidecar.reload(both('least_conn;'))
  assert.equal(await members(sidecar), '127.0.0.1')
  assert.equal(await answer(sidecar), '1')
  assert.equal(dns.asked('stays.example'), 1)
  await sidecar.reload(both(`server goes.example:${peers.port} resolve;`))
  assert.equal(dns.asked('goes.example'), 2)
})

test('a reload that fails follows nothing new', async () => {
  await using peers = await neighbours(1)
  await dns.has('good.example', ['127.0.0.1'])
  await dns.has('unwanted.example', ['127.0.0.1'])
  const good = followed(dns, `good.example:${peers.port} resolve`)
  await using sidecar = await start(good)
  await sidecar.rewrite(
    followed(dns, `unwanted.example:${peers.port} resolve`, { location: 'proxy_set_header X $no_such;' }),
  )
  sidecar.signal('SIGHUP')
  await sidecar.logged(/unknown "no_such" variable/)
  const asked = dns.asked('unwanted.example')
  const known = dns.asked('good.example')
  await until(() => dns.asked('good.example') > known + 1)
  assert.ok(dns.asked('unwanted.example') <= asked + 1)
})

test('the program starts where no name server answers, and groups get their peers when one does', async () => {
  await using peers = await neighbours(1)
  await using late = await dnsServer()
  const { port } = late
  await late.stop()
  await using sidecar = await start(
    followed(dns, `late.example:${peers.port} resolve`, {
      resolver: `resolver 127.0.0.1:${port} ipv6=off;`,
    }),
  )
  await sidecar.logged(/\[warn\] .*late\.example could not be resolved \(ECONNREFUSED/)
  assert.equal((await ask(sidecar.port)).status, 502)
  await using again = await dnsServer({}, port)
  await again.has('late.example', ['127.0.0.1'])
  await hasMembers(sidecar, '127.0.0.1')
  assert.equal(await answer(sidecar), '1')
})

test('a tunnel to a peer that its name has no more goes on', async () => {
  await using peers = await neighbours(2, [echo])
  await dns.has('tunnel.example', ['127.0.0.1'])
  await using sidecar = await start(
    followed(dns, `tunnel.example:${peers.port} resolve`, {
      main: 'drain_timeout 200ms;',
      location: 'proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;',
    }),
  )
  const { client } = await webSocket(sidecar.port)
  await dns.has('tunnel.example', ['127.0.0.2'])
  // The one that is gone is shown as long as it has the tunnel.
  await hasMembers(sidecar, '127.0.0.2 127.0.0.1')
  await sleep(400)
  await client.write('hello')
  assert.equal((await client.inbox.some())?.toString(), 'hello')
  client.close()
})

test('requests that wait for a peer get those that a name brings', async () => {
  await using peers = await neighbours(1)
  await dns.instead('wait.example', { code: 'NXDOMAIN' })
  await using sidecar = await start(
    followed(dns, `wait.example:${peers.port} resolve`, { group: 'queue 10 timeout=5s;' }),
  )
  const waiting = [ask(sidecar.port), ask(sidecar.port)]
  await sleep(100)
  await dns.has('wait.example', ['127.0.0.1'])
  for (const reply of await Promise.all(waiting)) assert.equal(reply.body.toString(), '1')
})

test('probes of peers that stay notice nothing, and new peers have to pass first', async () => {
  const probed = (number: number) => (x: Parameters<typeof echo>[0]) => x.reply({ body: `${number}` })
  await using peers: Neighbours = await neighbours(2, [probed(1), probed(2)])
  await dns.has('probed.example', ['127.0.0.1'])
  await using sidecar = await start(
    followed(dns, `probed.example:${peers.port} resolve`, {
      location:
        'proxy_next_upstream http_503; upstream_probe p uri=/probe interval=100ms essential passes=2;',
    }),
  )
  const state = async (n: number) => (await peersOf(sidecar))[`127.0.0.${n}:${peers.port}`]?.state
  await until(async () => (await state(1)) === 'up')
  const failing: Backend = peers.at(2)
  failing.script = { status: 503 }
  await dns.has('probed.example', ['127.0.0.1', '127.0.0.2'])
  await until(async () => (await state(2)) === 'unhealthy')
  assert.equal(await state(1), 'up')
  for (let i = 0; i < 6; i++) assert.equal(await answer(sidecar), '1')
  failing.script = { body: '2' }
  await until(async () => (await state(2)) === 'up')
  const given = new Set([await answer(sidecar), await answer(sidecar)])
  assert.deepEqual([...given].sort(), ['1', '2'])
  await dns.has('probed.example', ['127.0.0.2'])
  await hasMembers(sidecar, '127.0.0.2')
  const before = peers.at(1).requests.length
  await sleep(300)
  assert.ok(peers.at(1).requests.length <= before + 1, 'a peer that is gone is still asked')
})

test('a request whose body is still coming when its peers leave goes to those that have come', async () => {
  await using peers = await neighbours(2)
  await dns.has('body.example', ['127.0.0.1'])
  await using sidecar = await start(followed(dns, `body.example:${peers.port} resolve`))
  const client = await dial(sidecar.port)
  await client.write('POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nbo')
  await dns.has('body.example', ['127.0.0.2'])
  await hasMembers(sidecar, '127.0.0.2')
  await client.write('dy')
  const reply = await client.reply('POST')
  assert.deepEqual([reply.status, reply.body.toString()], [200, '2'])
  client.close()
})

test('a request that has failed at a peer is sent again to those that have come meanwhile', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<Exchange>()
  await using peers = await neighbours(2, [(x) => resolve(x)])
  await dns.has('again.example', ['127.0.0.1'])
  await using sidecar = await start(followed(dns, `again.example:${peers.port} resolve`))
  const reply = ask(sidecar.port)
  const exchange = await asked
  await dns.has('again.example', ['127.0.0.2'])
  await hasMembers(sidecar, '127.0.0.2 127.0.0.1')
  exchange.reset()
  assert.equal((await reply).body.toString(), '2')
})
