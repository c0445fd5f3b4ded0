import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../support/client.ts'
import {
  answer,
  followed,
  hasMembers,
  members,
  neighbours,
  nothingInFlight,
  peersOf,
} from '../support/discovered.ts'
import { type DnsServer, dnsServer } from '../support/dns-server.ts'
import type { PeerStatus } from '../support/invariants.ts'
import { start } from '../support/sidecar.ts'
import { until } from '../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

for (const threads of [1, 2]) {
  test(`with ${threads} threads, a name that moves is followed within its TTL and a second, and nothing is mixed up`, async () => {
    await using peers = await neighbours(2)
    await dns.has('moves.example', ['127.0.0.1'], 1)
    await using sidecar = await start(
      followed(dns, `moves.example:${peers.port} resolve`, {
        resolver: `resolver ${dns.address};`,
        main: `worker_processes ${threads};`,
      }),
    )
    for (let i = 0; i < 8; i++) assert.equal(await answer(sidecar), '1')
    assert.ok(peers.at(1).open > 0, 'no connection is kept')
    await dns.has('moves.example', ['127.0.0.2'], 1)
    await sleep(2000)
    // What lives there now is somebody else's.
    peers.at(1).script = { status: 500, body: 'another app' }
    const before = peers.at(1).requests.length
    for (let i = 0; i < 8; i++) assert.equal(await answer(sidecar), '2')
    assert.equal(peers.at(1).requests.length, before)
    await until(() => peers.at(1).open === 0)
    await nothingInFlight(sidecar)
    const all = await peersOf(sidecar)
    assert.deepEqual(Object.keys(all), [`127.0.0.2:${peers.port}`])
    const [{ server, selected, responses }] = Object.values(all) as [PeerStatus & { server: string }]
    assert.equal(server, `moves.example:${peers.port}`)
    assert.deepEqual([selected.total, responses], [8, { 200: 8 }])
  })
}

test('the last addresses stay while the name server fails, in whatever way', async () => {
  await using peers = await neighbours(2)
  await dns.has('fails.example', ['127.0.0.1'])
  await using sidecar = await start(
    // Failures are asked for again as soon as answers are.
    followed(dns, `fails.example:${peers.port} resolve`, {
      resolver: `resolver ${dns.address} ipv6=off valid=1s;`,
    }),
  )
  for (const rule of [{ code: 'SERVFAIL' }, { code: 'REFUSED' }, {}] as const) {
    await dns.instead('fails.example', rule)
    const asked = dns.asked('fails.example')
    await until(() => dns.asked('fails.example') > asked)
    await sleep(100)
    assert.equal(await answer(sidecar), '1')
    assert.equal(await members(sidecar), '127.0.0.1')
  }
  await dns.instead('fails.example', { code: 'NXDOMAIN' })
  await hasMembers(sidecar, '')
  assert.equal((await ask(sidecar.port)).status, 502)
  await dns.has('fails.example', ['127.0.0.2'])
  await hasMembers(sidecar, '127.0.0.2')
  assert.equal(await answer(sidecar), '2')
  const lines = sidecar.stderr
    .split('\n')
    .filter((line) => /\[(?:warn|notice)\].*(?:example|upstream)/.test(line))
  const texts = lines.map((line) => line.replace(/^.*\[(\w+)\] \S+ /, '$1 ').replaceAll(`${peers.port}`, 'P'))
  assert.deepEqual(
    texts.map((text) => text.replace(/ \(127\.0\.0\.1:\d+\)/, '')),
    [
      'warn fails.example could not be resolved (SERVFAIL); its last addresses stay',
      'warn fails.example could not be resolved (REFUSED); its last addresses stay',
      'warn fails.example could not be resolved (no addresses); its last addresses stay',
      'warn fails.example could not be resolved (Host not found); it has no addresses any more',
      'notice upstream "u": removed 127.0.0.1:P',
      'notice fails.example is resolved again',
      'notice upstream "u": added 127.0.0.2:P',
    ],
  )
})

test('of a name with three addresses, two of them dead, the third one is tried', async () => {
  await using peers = await neighbours(1)
  await dns.has('three.example', ['127.0.0.8', '127.0.0.9', '127.0.0.1'])
  await using sidecar = await start(
    followed(dns, `three.example:${peers.port} resolve`, { location: 'proxy_next_upstream_tries 3;' }),
  )
  for (let i = 0; i < 6; i++) assert.equal(await answer(sidecar), '1')
  const all = await peersOf(sidecar)
  assert.deepEqual(
    Object.keys(all),
    ['1', '8', '9'].map((n) => `127.0.0.${n}:${peers.port}`),
  )
  const [good, one, other] = Object.values(all)
  assert.deepEqual([good?.health.fails, good?.responses], [0, { 200: 6 }])
  for (const dead of [one, other]) assert.deepEqual([dead?.health.fails, dead?.selected.total], [1, 1])
})

test('services bring their ports, priorities and weights along', async () => {
  await using peers = await neighbours(4)
  const { port } = peers
  const name = '_http._tcp.shop.example'
  const records = [
    { priority: 10, weight: 3, port, target: 'a.example' },
    { priority: 10, weight: 1, port, target: 'b.example' },
    { priority: 20, weight: 7, port, target: 'c.example' },
  ]
  const answersOf = (some: typeof records) =>
    some.map((data) => ({ type: 'SRV' as const, name, ttl: 1, data }))
  await dns.set({ [`SRV ${name}`]: { answers: answersOf(records) } })
  for (const [i, target] of ['a', 'b', 'c', 'd'].entries())
    await dns.has(`${target}.example`, [`127.0.0.${i + 1}`])
  await using sidecar = await start(followed(dns, 'shop.example service=http resolve'))
  const told: string[] = []
  for (const [name, peer] of Object.entries(await peersOf(sidecar))) {
    const { server, service, weight, backup } = peer as PeerStatus & Record<string, unknown>
    told.push(`${name.replace(`:${port}`, '')} ${server} ${service} ${weight} ${backup}`)
  }
  assert.deepEqual(told, [
    '127.0.0.1 a.example http 3 false',
    '127.0.0.2 b.example http 1 false',
    '127.0.0.3 c.example http 7 true',
  ])
  const given: string[] = []
  for (let i = 0; i < 8; i++) given.push(await answer(sidecar))
  assert.deepEqual(
    [given.filter((one) => one === '1').length, given.filter((one) => one === '2').length],
    [6, 2],
  )
  // The first are gone: those that stood behind them come forward.
  await dns.set({
    [`SRV ${name}`]: {
      answers: answersOf([records[2]!, { priority: 30, weight: 1, port, target: 'd.example' }]),
    },
  })
  await hasMembers(sidecar, '127.0.0.3 127.0.0.4')
  for (let i = 0; i < 3; i++) assert.equal(await answer(sidecar), '3')
})

test('the servers and domains of the system are asked where no resolver is configured', async () => {
  await using peers = await neighbours(2)
  await dns.has('web.ns.test', ['127.0.0.1'])
  await dns.has('web.other.test', ['127.0.0.2'])
  const folder = process.env['TMPDIR'] ?? '/tmp'
  const conf = join(folder, `resolv-${process.pid}.conf`)
  writeFileSync(conf, `nameserver ${dns.address}\nsearch ns.test\n`)
  await using sidecar = await start(followed(dns, `web:${peers.port} resolve`, { resolver: '' }), {
    env: { EVENKEEL_RESOLV_CONF: conf, EVENKEEL_HOSTS: '/dev/null' },
  })
  assert.equal(await answer(sidecar), '1')
  writeFileSync(conf, `nameserver ${dns.address}\nsearch other.test\n`)
  await hasMembers(sidecar, '127.0.0.2')
})

test('a group may have a resolver of its own', async () => {
  await using peers = await neighbours(2)
  await using own = await dnsServer()
  await own.has('split.example', ['127.0.0.2'])
  await dns.has('split.example', ['127.0.0.1'])
  await using sidecar = await start(
    followed(dns, `split.example:${peers.port} resolve`, { group: `resolver ${own.address} ipv6=off;` }),
  )
  assert.equal(await answer(sidecar), '2')
  assert.equal(dns.asked('split.example'), 0)
})

test('both families are asked for, and both are peers', async () => {
  await using peers = await neighbours(1)
  const name = 'both.example'
  await dns.set({
    [`A ${name}`]: { answers: [{ type: 'A', name, ttl: 1, data: '127.0.0.1' }] },
    [`AAAA ${name}`]: { answers: [{ type: 'AAAA', name, ttl: 1, data: '::1' }] },
  })
  await using sidecar = await start(
    followed(dns, `both.example:${peers.port} resolve`, { resolver: `resolver ${dns.address};` }),
  )
  assert.equal(await members(sidecar), '127.0.0.1 [::1]')
})
