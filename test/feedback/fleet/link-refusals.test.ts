import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'
import { alone, echo, fill, TestLink } from '../../support/link.ts'
import { redisServer } from '../../support/redis.ts'

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
