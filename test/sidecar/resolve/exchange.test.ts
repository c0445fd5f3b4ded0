import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { askServer, type Exchanged } from '../../../sidecar/resolve/exchange.ts'
import { type DnsServer, dnsServer } from '../../support/dns-server.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'

let dns: DnsServer
before(async () => {
  dns = await dnsServer()
})
after(() => dns.stop())

function ask(name = 'web.example', ms = 5000): Promise<Exchanged> {
  return askServer({ host: '127.0.0.1', port: dns.port }, { name, type: 'A' }, ms)
}

/** The addresses of an answer, or why there is none. */
function shown(how: Exchanged): string {
  if (how.kind !== 'reply') return how.kind === 'timeout' ? 'timeout' : how.error
  const addresses = how.reply.answers.map((record) => ('address' in record ? record.address : record.type))
  return [how.reply.code, ...addresses].join(' ')
}

test('a question is answered over UDP', async () => {
  await dns.has('web.example', ['127.0.0.2', '127.0.0.3'])
  assert.equal(shown(await ask()), 'NOERROR 127.0.0.2 127.0.0.3')
  assert.equal(shown(await ask('no.example')), 'NXDOMAIN')
})

test('an answer that does not fit is asked for over TCP', async () => {
  const addresses = Array.from({ length: 200 }, (_, i) => `10.0.${i >> 7}.${i & 127}`)
  await dns.has('many.example', addresses)
  const answers = addresses.map((data) => ({ type: 'A' as const, name: 'many.example', data }))
  await dns.set({ 'A many.example': { answers, how: 'truncated' } })
  assert.equal(shown(await ask('many.example')), `NOERROR ${addresses.join(' ')}`)
  const asked = () => dns.queries.filter(({ name }) => name === 'many.example').map((query) => query.over)
  await until(() => asked().length > 1)
  assert.deepEqual(asked(), ['udp', 'tcp'])
})

test('what is not the answer is not taken for it, and the answer that comes after it is', async () => {
  await dns.has('web.example', ['127.0.0.2'])
  const answers = [{ type: 'A' as const, name: 'web.example', data: '127.0.0.2' }]
  await dns.set({
    'A web.example': { answers, junk: ['garbage', 'wrong id', 'wrong question', 'query'] },
  })
  assert.equal(shown(await ask()), 'NOERROR 127.0.0.2')
  await dns.set({ 'A web.example': { answers, junk: ['wrong id', 'garbage'], how: 'drop' } })
  assert.equal(shown(await ask('web.example', 150)), 'timeout')
})

test('a server that says nothing is given up in time, and one that is slow is not', async () => {
  await dns.instead('web.example', { how: 'drop' })
  const from = performance.now()
  assert.equal(shown(await ask('web.example', 100)), 'timeout')
  assert.ok(performance.now() - from < 1000)
  await dns.instead('web.example', { code: 'SERVFAIL', after: 100 })
  assert.equal(shown(await ask()), 'SERVFAIL')
})

test('where nobody listens that is known at once', async () => {
  const server = { host: '127.0.0.1', port: await freePort() }
  const from = performance.now()
  assert.equal(shown(await askServer(server, { name: 'web.example', type: 'A' }, 5000)), 'ECONNREFUSED')
  assert.ok(performance.now() - from < 1000)
})

test('a server to which there is no way is an error as well, and no exception', async () => {
  const question = { name: 'web.example', type: 'A' } as const
  const from = performance.now()
  // Nobody may send to everybody.
  assert.equal(shown(await askServer({ host: '255.255.255.255', port: 53 }, question, 5000)), 'EACCES')
  assert.ok(performance.now() - from < 1000)
})

test('each question has an id and a port that nobody can guess', async () => {
  await dns.has('port.example', ['127.0.0.2'])
  for (let i = 0; i < 8; i++) await ask('port.example')
  const asked = dns.queries.filter(({ name }) => name === 'port.example')
  assert.ok(new Set(asked.map(({ id }) => id)).size > 6)
  assert.ok(new Set(asked.map(({ port }) => port)).size > 4)
})
