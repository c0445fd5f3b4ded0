import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResolverSpec } from '../../../sidecar/membership.ts'
import type { AskServer } from '../../../sidecar/resolve/exchange.ts'
import { readHosts } from '../../../sidecar/resolve/hosts.ts'
import type { Lookup, Memo } from '../../../sidecar/resolve/lookup.ts'
import type { Resource } from '../../../sidecar/resolve/message.ts'
import { readResolvConf } from '../../../sidecar/resolve/resolv-conf.ts'
import { Resolver } from '../../../sidecar/resolve/resolver.ts'
import { Clock } from '../../support/clock.ts'

/** Answers by `TYPE name`: records, or a code. What is not there is no name. */
type Answers = Record<string, readonly Resource[] | string>

const address = (name: string, ...addresses: string[]): Resource[] =>
  addresses.map((address) => ({ name, ttl: 60, type: address.includes(':') ? 'AAAA' : 'A', address }))

const service = (name: string, target: string, port: number, priority = 0, weight = 1): Resource => ({
  name,
  ttl: 30,
  type: 'SRV',
  service: { target, port, priority, weight },
})

class Bench {
  answers: Answers
  additionals: readonly Resource[] = []
  /** `TYPE name`, in order. */
  asked: string[] = []
  readonly memo: Memo = new Map()
  readonly resolver: Resolver

  constructor(answers: Answers, spec: Partial<ResolverSpec> = {}, conf = '', hosts = '') {
    this.answers = answers
    const ask: AskServer = async (_server, { type, name }) => {
      this.asked.push(`${type} ${name}`)
      const found = this.answers[`${type} ${name}`]
      if (found === 'silence') return { kind: 'timeout' }
      const code = found === undefined ? 'NXDOMAIN' : typeof found === 'string' ? found : 'NOERROR'
      const answers = typeof found === 'object' ? found : []
      const negative = answers.length === 0
      return { kind: 'reply', reply: { code, answers, additionals: this.additionals, negative } }
    }
    this.resolver = new Resolver(
      {
        servers: [{ host: '127.0.0.1', port: 53 }],
        validMs: undefined,
        ipv4: true,
        ipv6: true,
        timeoutMs: 30_000,
        statusZone: undefined,
        ...spec,
      },
      {
        ask,
        now: new Clock().now,
        system: { conf: () => readResolvConf(conf), hosts: () => readHosts(hosts) },
      },
    )
  }

  async look(host: string, service?: string): Promise<string> {
    this.asked = []
    return shown(await this.resolver.lookUp({ host, service }, this.memo))
  }
}

/** `127.0.0.1 ::1 ttl=60`, of services `target 127.0.0.1:80 priority/weight`. */
function shown(how: Lookup): string {
  if (how.kind === 'failed') return `failed: ${how.error}`
  if (how.kind !== 'found') return how.kind
  const found = how.found.map(({ host, service }) => {
    if (service === undefined) return host
    const { target, port, priority, weight } = service
    return `${target} ${host}:${port} ${priority}/${weight}`
  })
  return [...found, `ttl=${how.ttl}`, ...(how.error === undefined ? [] : [`but ${how.error}`])].join(', ')
}

test('a host has the addresses of both families, in an order of their own', async () => {
  const bench = new Bench({
    'A web.example': address('web.example', '10.0.0.10', '10.0.0.9'),
    'AAAA web.example': address('web.example', 'fd00::2', 'fd00::1'),
  })
  assert.equal(await bench.look('web.example'), '10.0.0.9, 10.0.0.10, fd00::1, fd00::2, ttl=60')
  assert.deepEqual(bench.asked, ['A web.example', 'AAAA web.example'])
})

test('a family that is switched off is not asked for', async () => {
  const answers = {
    'A web.example': address('web.example', '10.0.0.1'),
    'AAAA web.example': address('web.example', 'fd00::1'),
  }
  const four = new Bench(answers, { ipv6: false })
  assert.equal(await four.look('web.example'), '10.0.0.1, ttl=60')
  assert.deepEqual(four.asked, ['A web.example'])
  const six = new Bench(answers, { ipv4: false })
  assert.equal(await six.look('web.example'), 'fd00::1, ttl=60')
  assert.deepEqual(six.asked, ['AAAA web.example'])
})

test('what one family has counts, whatever becomes of the other', async () => {
  const bench = new Bench({
    'A web.example': address('web.example', '10.0.0.1'),
    'AAAA web.example': 'SERVFAIL',
  })
  assert.equal(await bench.look('web.example'), '10.0.0.1, ttl=5, but SERVFAIL (127.0.0.1:53)')
  bench.answers['AAAA web.example'] = []
  assert.equal(await bench.look('web.example'), '10.0.0.1, ttl=60')
  delete bench.answers['AAAA web.example']
  assert.equal(await bench.look('web.example'), '10.0.0.1, ttl=60')
})

test('the last good answer of a family stands in where it cannot be asked', async () => {
  const bench = new Bench({
    'A web.example': address('web.example', '10.0.0.1'),
    'AAAA web.example': address('web.example', 'fd00::1'),
  })
  await bench.look('web.example')
  bench.answers['AAAA web.example'] = 'SERVFAIL'
  assert.equal(await bench.look('web.example'), '10.0.0.1, fd00::1, ttl=5, but SERVFAIL (127.0.0.1:53)')
  // One that says that there is none takes them away.
  bench.answers['AAAA web.example'] = []
  assert.equal(await bench.look('web.example'), '10.0.0.1, ttl=60')
})

test('no name, no address and no answer are told apart', async () => {
  const bench = new Bench({ 'A none.example': [], 'AAAA none.example': [], 'A odd.example': [] })
  assert.equal(await bench.look('web.example'), 'absent')
  assert.equal(await bench.look('none.example'), 'empty')
  // One of its answers says that there is such a name.
  assert.equal(await bench.look('odd.example'), 'empty')
  bench.answers = { 'A web.example': 'REFUSED', 'AAAA web.example': [] }
  assert.equal(await bench.look('web.example'), 'failed: REFUSED (127.0.0.1:53)')
  bench.answers = { 'A web.example': 'silence', 'AAAA web.example': 'silence' }
  assert.equal(await bench.look('web.example'), 'failed: timed out (127.0.0.1:53)')
})

test('a name that cannot be asked for is no name', async () => {
  const bench = new Bench({})
  assert.equal(await bench.look(`${'x'.repeat(64)}.example`), 'absent')
  assert.deepEqual(bench.asked, [])
})

test('an alias that leads out of the answer is asked for', async () => {
  const alias: Resource = { name: 'web.example', ttl: 7, type: 'CNAME', alias: 'real.example' }
  const bench = new Bench(
    { 'A web.example': [alias], 'A real.example': address('real.example', '10.0.0.1') },
    { ipv6: false },
  )
  assert.equal(await bench.look('web.example'), '10.0.0.1, ttl=7')
  assert.deepEqual(bench.asked, ['A web.example', 'A real.example'])
})

test('aliases that never end are followed no further than eight times', async () => {
  const answers: Answers = {}
  for (let i = 0; i < 100; i++)
    answers[`A n${i}.example`] = [
      { name: `n${i}.example`, ttl: 7, type: 'CNAME', alias: `n${i + 1}.example` },
    ]
  const bench = new Bench(answers, { ipv6: false })
  assert.equal(await bench.look('n0.example'), 'empty')
  assert.equal(bench.asked.length, 9)
})

test('with the servers of the system a short name is looked for in its domains', async () => {
  const conf = 'nameserver 127.0.0.1\nsearch a.test b.test\noptions ndots:2'
  const bench = new Bench(
    { 'A web.b.test': address('web.b.test', '10.0.0.1') },
    { servers: undefined, ipv6: false },
    conf,
  )
  assert.equal(await bench.look('web'), '10.0.0.1, ttl=60')
  assert.deepEqual(bench.asked, ['A web.a.test', 'A web.b.test'])
  // Where a part of the search fails, nobody can say that the name is gone.
  bench.answers = { 'A web.a.test': 'SERVFAIL' }
  assert.match(await bench.look('web'), /^failed: SERVFAIL/)
})

test('a resolver of the configuration asks for the name as it is', async () => {
  const conf = 'search a.test\noptions ndots:5'
  const bench = new Bench({ 'A web': address('web', '10.0.0.1') }, { ipv6: false }, conf, '10.9.9.9 web')
  assert.equal(await bench.look('web'), '10.0.0.1, ttl=60')
})

test('names of the hosts file are not asked for where the system is', async () => {
  const bench = new Bench({}, { servers: undefined }, '', '10.9.9.9 web\nfd00::9 web')
  assert.equal(await bench.look('web'), '10.9.9.9, fd00::9, ttl=5')
  assert.deepEqual(bench.asked, [])
  const four = new Bench({}, { ipv6: false })
  assert.equal(await four.look('localhost'), '127.0.0.1, ttl=5')
})

test('a service is asked for by its name, and its targets further', async () => {
  const bench = new Bench(
    {
      'SRV _http._tcp.shop.example': [
        service('_http._tcp.shop.example', 'b.example', 8082, 10, 5),
        service('_http._tcp.shop.example', 'a.example', 8081, 20, 7),
      ],
      'A a.example': address('a.example', '10.0.0.1', '10.0.0.2'),
      'A b.example': address('b.example', '10.0.0.3'),
    },
    { ipv6: false },
  )
  assert.equal(
    await bench.look('shop.example', 'http'),
    'a.example 10.0.0.1:8081 20/7, a.example 10.0.0.2:8081 20/7, b.example 10.0.0.3:8082 10/5, ttl=30',
  )
  await bench.look('shop.example', '_web._tcp.east')
  assert.deepEqual(bench.asked, ['SRV _web._tcp.east.shop.example'])
})

test('addresses that come along with services are not asked for', async () => {
  const bench = new Bench({
    'SRV _http._tcp.shop.example': [service('_http._tcp.shop.example', 'a.example', 8081)],
    'AAAA a.example': [],
  })
  bench.additionals = address('a.example', '10.0.0.1')
  assert.equal(await bench.look('shop.example', 'http'), 'a.example 10.0.0.1:8081 0/1, ttl=30')
  // It may have others than came along.
  assert.deepEqual(bench.asked, ['SRV _http._tcp.shop.example', 'AAAA a.example'])
})

test('a target that is gone is left out, and one that cannot be asked keeps its last addresses', async () => {
  const name = '_http._tcp.shop.example'
  const bench = new Bench(
    {
      [`SRV ${name}`]: [service(name, 'a.example', 81), service(name, 'b.example', 82)],
      'A a.example': address('a.example', '10.0.0.1'),
      'A b.example': address('b.example', '10.0.0.2'),
    },
    { ipv6: false },
  )
  await bench.look('shop.example', 'http')
  bench.answers['A a.example'] = 'SERVFAIL'
  assert.equal(
    await bench.look('shop.example', 'http'),
    'a.example 10.0.0.1:81 0/1, b.example 10.0.0.2:82 0/1, ttl=5, but a.example: SERVFAIL (127.0.0.1:53)',
  )
  delete bench.answers['A a.example']
  assert.equal(await bench.look('shop.example', 'http'), 'b.example 10.0.0.2:82 0/1, ttl=30')
  delete bench.answers['A b.example']
  assert.equal(await bench.look('shop.example', 'http'), 'empty')
})

test('a service whose target is the root is not to be had', async () => {
  const name = '_http._tcp.shop.example'
  const bench = new Bench({ [`SRV ${name}`]: [service(name, '', 0)] })
  assert.equal(await bench.look('shop.example', 'http'), 'absent')
})

test('a service that is listed twice counts as the first in line, whatever the order', async () => {
  const name = '_http._tcp.shop.example'
  const both = [service(name, 'a.example', 81, 5, 9), service(name, 'a.example', 81, 1, 3)]
  for (const records of [both, both.toReversed()]) {
    const bench = new Bench(
      { [`SRV ${name}`]: records, 'A a.example': address('a.example', '10.0.0.1') },
      { ipv6: false },
    )
    assert.equal(await bench.look('shop.example', 'http'), 'a.example 10.0.0.1:81 1/3, ttl=30')
  }
})

test('services without number are not all taken: those in front of the line are', async () => {
  const name = '_http._tcp.shop.example'
  const services = Array.from({ length: 300 }, (_, i) =>
    service(name, 'a.example', 1000 + i, i === 299 ? 1 : 2),
  )
  const hosts = Array.from({ length: 2000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
  const bench = new Bench(
    { [`SRV ${name}`]: services, 'A a.example': address('a.example', ...hosts) },
    { ipv6: false },
  )
  const found = (await bench.look('shop.example', 'http')).split(', ')
  assert.equal(found.at(-1), 'but more than 4096 addresses')
  assert.equal(found.length, 4096 + 2)
  assert.equal(found.filter((text) => text.endsWith(':1299 1/1')).length, 2000)
})

test('look-ups are counted by what is asked for', async () => {
  const bench = new Bench({ 'A web.example': address('web.example', '10.0.0.1') })
  await bench.look('web.example')
  await bench.look('web.example', 'http')
  const { queries, sent } = bench.resolver.counts
  assert.deepEqual(queries, { name: 1, srv: 1, addr: 0 })
  assert.deepEqual(sent, { a: 1, aaaa: 1, srv: 1, ptr: 0 })
})
