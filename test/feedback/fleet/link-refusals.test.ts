import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { freePort } from '../../support/free-port.ts'
import { alone, echo, fill, TestLink } from '../../support/link.ts'
import { redisSentinels, redisServer } from '../../support/redis.ts'

test('a user and a password are those of the options, or of the URL', async () => {
  const user = ['default off', 'ann on >a:@ ~evenkeel:* +@all', 'bob on >b ~* +@all']
  await using server = await redisServer({ config: { user } })
  const named = server.url.replace('//', `//bob:b@`)
  await using byOptions = new TestLink({ urls: [server.url], user: 'ann', password: 'a:@' })
  await using byUrl = new TestLink({ urls: [named], user: 'ann', password: 'a:@' })
  byOptions.start()
  byUrl.start()
  await byOptions.became(true)
  await byUrl.became(true)
  assert.deepEqual(byUrl.servers, [`127.0.0.1:${server.port}`])
  await byOptions.run(echo, ['evenkeel:k'], ['a'])
  await byUrl.run(echo, ['k'], ['a'])
})

test('a wrong password is told from a server that is away, and never shown', async () => {
  await using server = await redisServer({ config: { requirepass: 'open' } })
  await using wrong = new TestLink({ urls: [server.url.replace('//', '//:sesame@')] })
  await using none = new TestLink({ urls: [server.url] })
  await using right = new TestLink({ urls: [server.url], password: 'open' })
  for (const link of [wrong, none, right]) link.start()
  await right.became(true)
  await sleep(500)
  const begin = `warn fleet: redis at 127.0.0.1:${server.port} cannot be used`
  assert.deepEqual(wrong.lines, [`${begin} (wrong user or password)${alone}`])
  assert.deepEqual(none.lines, [`${begin} (it asks for a password)${alone}`])
  await server.command('CONFIG', 'SET', 'requirepass', 'sesame')
  await wrong.became(true)
})

test('a database that is not there is refused, and nothing lands in another one', async () => {
  await using server = await redisServer({ config: { databases: '4' } })
  await using link = new TestLink({ urls: [`${server.url}/77`] })
  await using last = new TestLink({ urls: [`${server.url}/3`] })
  link.start()
  last.start()
  await last.became(true)
  const name = `redis at 127.0.0.1:${server.port}`
  assert.deepEqual(last.lines, [`notice fleet: sharing through ${name}/3`])
  assert.deepEqual(last.servers, [`127.0.0.1:${server.port}/3`])
  await link.said('cannot be used')
  const refused = `${name}/77 cannot be used (DB index is out of range)`
  assert.deepEqual(link.lines, [`warn fleet: ${refused}${alone}`])
  await assert.rejects(link.run(echo, ['k'], []), { message: refused })
  // The same for clients of others, and for those made of them, with an offline queue and without.
  const waiting = link.connect({ enableOfflineQueue: true }) as Redis
  const further = [waiting, waiting.duplicate(), link.connect() as Redis]
  for (const client of further) {
    await assert.rejects(client.connect())
    void client.set('k', 'v').catch(() => {})
  }
  await sleep(300)
  assert.ok(further.every(({ status }) => status !== 'ready'))
  for (const client of further) client.disconnect()
  assert.doesNotMatch(String(await server.command('INFO', 'keyspace')), /db/)
})

test('a wrong password is told as such where a database is asked for too', async () => {
  await using server = await redisServer({ config: { requirepass: 'open' } })
  await using wrong = new TestLink({ urls: [`${server.url}/3`], password: 'sesame' })
  await using none = new TestLink({ urls: [`${server.url}/3`] })
  for (const link of [wrong, none]) link.start()
  await wrong.said('cannot be used (wrong user or password)')
  await none.said('cannot be used (it asks for a password)')
})

test('what is no Redis, or not of the kind that was asked for, is called what it is', async () => {
  await using group = await redisSentinels({ sentinels: 1 })
  const http = createServer((_request, response) => response.end('welcome'))
  await once(http.listen(0, '127.0.0.1'), 'listening')
  // A TCP server's address is never a string.
  const { port } = http.address() as AddressInfo
  const plain = group.master.url
  const address = plain.replace('redis://', '')
  const cases: readonly (readonly [ConstructorParameters<typeof TestLink>[0], string])[] = [
    [{ urls: [`redis://127.0.0.1:${port}`] }, 'cannot be used (what answers there is not Redis)'],
    [
      { urls: [`redis://127.0.0.1:${port}`], sentinel: 'm' },
      'cannot be used (what answers there is not Redis)',
    ],
    [{ urls: [`rediss://127.0.0.1:${port}`] }, 'cannot be reached (it does not speak TLS)'],
    [{ urls: [plain], cluster: true }, 'cannot be used (it is not a cluster)'],
    [{ urls: [plain], sentinel: 'm' }, `cannot be used (what answers at ${address} is not a sentinel)`],
    [{ urls: group.urls }, 'cannot be used (it is a sentinel, and that was not said)'],
    [
      { urls: group.urls, sentinel: 'm' },
      `cannot be used (the sentinel at ${group.urls[0]!.replace('redis://', '')} knows no master m)`,
    ],
    [{ urls: ['redis://127.0.0.1:1'], cluster: true }, 'cannot be reached (connection refused)'],
    [
      { urls: [plain.replace('redis:', 'rediss:')] },
      'cannot be reached (no answer to TLS, which it may not speak, within 1000 ms)',
    ],
    [
      { urls: [plain.replace('redis:', 'rediss:')], cluster: true },
      'cannot be reached (no answer to TLS, which it may not speak, in time)',
    ],
  ]
  const links = cases.map(([options]) => new TestLink(options))
  try {
    for (const link of links) link.start()
    for (const [i, link] of links.entries()) await link.said(cases[i]![1])
  } finally {
    await Promise.all(links.map((link) => link.stop()))
    http.closeAllConnections()
    http.close()
  }
})

test('a server that becomes a replica is left, and taken again as a master', async () => {
  await using master = await redisServer()
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  await server.command('REPLICAOF', '127.0.0.1', master.port)
  // The first copy empties a replica, and refuses everything for a moment.
  await assert.rejects(link.run(echo, ['k'], ['a']), /replica|loading/)
  await link.became(false)
  await sleep(300)
  assert.match(link.error ?? '', /replica|loading/)
  await server.command('REPLICAOF', 'NO', 'ONE')
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  assert.deepEqual(link.changes, [true, false, true])
  assert.equal(link.lines.length, 3)
  assert.match(link.lines[1]!, /^warn fleet: redis at \S+ cannot be used \(it is .*\); balancing/)
})

test('a script that alone is refused leaves the link as it is, and is told of once', async () => {
  await using server = await redisServer({ config: { user: 'ann on >a ~evenkeel:* +@all -incr' } })
  await using link = new TestLink({ urls: [server.url], user: 'ann', password: 'a' })
  link.start()
  await link.became(true)
  for (let times = 0; times < 3; times++) {
    await assert.rejects(link.run(echo, ['evenkeel:k'], ['a']), /^LinkError: \w+ .*can't run this command/)
  }
  await link.said('refuses some')
  assert.deepEqual(link.changes, [true])
  assert.equal(link.lines.length, 2)
  assert.match(link.lines[1]!, /^warn fleet: redis at \S+ refuses some of what is shared \(\w+ .*command/)
  await server.command('ACL', 'SETUSER', 'ann', 'nocommands')
  await assert.rejects(link.run(echo, ['evenkeel:k'], ['a']))
  await link.became(false)
  assert.match(link.lines[2]!, /cannot be used \(NOPERM/)
  await server.command('ACL', 'SETUSER', 'ann', '+@all')
  await link.became(true)
})

test('a full memory fails what needs more of it, and no more', async () => {
  await using server = await redisServer({ config: { maxmemory: '3mb', 'maxmemory-policy': 'noeviction' } })
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  const failures: string[] = []
  for (let index = 0; index < 30; index++) {
    await link.run(fill, [`k${index}`], [200_000]).catch((error: Error) => failures.push(error.message))
  }
  assert.ok(failures.length > 3)
  assert.match(failures[0]!, /^OOM command not allowed/)
  assert.match(link.error ?? '', /^OOM/)
  assert.deepEqual(link.changes, [true])
  assert.equal(link.lines.length, 2)
  assert.match(link.lines[1]!, /refuses some of what is shared \(OOM command not allowed/)
})

test('a server that may evict keys is warned of, once', async () => {
  await using server = await redisServer({ config: { maxmemory: '50mb', 'maxmemory-policy': 'allkeys-lru' } })
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  const at = `redis at 127.0.0.1:${server.port}`
  const advice = `warn fleet: ${at} may evict keys (maxmemory-policy allkeys-lru); what instances share is then lost now and then, use noeviction`
  assert.deepEqual(link.lines, [`notice fleet: sharing through ${at}`, advice])
  await server.restart()
  await link.became(true)
  assert.equal(link.lines.filter((line) => line === advice).length, 1)
})

test('speaks TLS with the given authority and certificate', async () => {
  await using server = await redisServer({
    tlsPort: await freePort(),
    config: { 'tls-auth-clients': 'yes' },
  })
  const { ca, client, url } = server.tls!
  await using trusting = new TestLink({ urls: [url], ca: ca.cert, cert: client.cert, key: client.key })
  await using named = new TestLink({
    urls: [url.replace('127.0.0.1', 'localhost')],
    ca: ca.cert,
    cert: client.cert,
    key: client.key,
  })
  await using doubting = new TestLink({ urls: [url], cert: client.cert, key: client.key })
  await using plain = new TestLink({ urls: [server.url.replace('redis:', 'rediss:')], ca: ca.cert })
  for (const link of [trusting, named, doubting, plain]) link.start()
  await trusting.became(true)
  await named.became(true)
  await trusting.run(echo, ['k'], ['a'])
  await plain.said('cannot be reached')
  assert.match(doubting.lines[0]!, /cannot be reached \(its certificate is not trusted\)/)
  assert.deepEqual([doubting.up, plain.up], [false, false])
})
