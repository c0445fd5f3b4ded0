import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Cluster, Redis } from 'ioredis'
import { groupKeys } from '../../../feedback/fleet/keys.ts'
import { alone, echo, proxyTo, TestLink } from '../../support/link.ts'
import { redisCluster, redisSentinels, redisServer } from '../../support/redis.ts'

async function ready(client: Redis | Cluster): Promise<void> {
  while (client.status !== 'ready') await sleep(10)
}

test('connects again until a connection holds', async () => {
  await using server = await redisServer()
  using proxy = await proxyTo(server.port, (count) => count % 2 === 0)
  await using link = new TestLink({ urls: [proxy.url] })
  link.start()
  await link.became(true)
  assert.equal(proxy.count, 2)
  for (let times = 1; times <= 3; times++) {
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal')
    await link.became(false)
    await link.became(true)
    assert.equal(proxy.count, 2 + 2 * times)
  }
  await link.run(echo, ['k'], ['a'])
  assert.equal(link.losses, 3)
  // One line a change, however many attempts there were.
  assert.equal(link.lines.length, 8)
})

test('the second of several servers is asked while the first is away', async () => {
  await using gone = await redisServer()
  await using server = await redisServer()
  await gone.kill()
  await using link = new TestLink({ urls: [gone.url, server.url] })
  link.start()
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  assert.equal(await server.command('GET', 'k'), '1')
})

test('a further client comes back by itself, and leaves nothing open', async () => {
  await using server = await redisServer({ config: { requirepass: 'open' } })
  await using link = new TestLink({ urls: [`${server.url}/1`], password: 'open' })
  const further = link.connect() as Redis
  assert.equal(further.status, 'wait')
  await further.connect()
  await further.set('k', 'v')
  await server.kill()
  await sleep(200)
  await assert.rejects(further.get('k'))
  await server.restart()
  const second = further.duplicate()
  second.on('error', () => {})
  await ready(further)
  assert.equal(await further.get('k'), null)
  await second.connect()
  server.pause()
  // Nobody may be left with a rejection that nobody waits for.
  const answer = assert.rejects(second.get('k'))
  further.disconnect()
  second.disconnect()
  await answer
  await sleep(20)
  assert.ok(!process.getActiveResourcesInfo().some((name) => /^(TCP|TLS)/.test(name)))
})

test('a process that uses a link ends by itself once the link is stopped, and while Redis is away', async () => {
  await using server = await redisServer()
  const module = new URL('../../support/link.ts', import.meta.url).href
  const text = (url: string, then: string) => `
    import { TestLink } from ${JSON.stringify(module)}
    const link = new TestLink({ urls: [${JSON.stringify(url)}] })
    link.start()
    ${then}
  `
  const run = promisify(execFile)
  const ends = (body: string) =>
    run(process.execPath, ['--input-type=module-typescript', '-e', body], { timeout: 10_000 })
  await ends(text(server.url, 'await link.became(true); await link.stop()'))
  await server.kill()
  await ends(text(server.url, 'await link.said("refused")'))
})

test('sentinels lead to the master, and to the next one after its death', async () => {
  await using group = await redisSentinels({
    sentinels: 2,
    sentinelConfig: { requirepass: 'watch' },
    config: { requirepass: 'open', masterauth: 'open' },
  })
  const urls = group.urls.map((url) => url.replace('//', '//:watch@'))
  const own = { urls, sentinel: group.name, password: 'open' }
  await using link = new TestLink(own)
  link.start()
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  const further = link.connect()
  await further.connect()
  await group.killMaster()
  const begun = performance.now()
  await link.became(false)
  await link.became(true)
  assert.ok(performance.now() - begun < 5000)
  // The first may have come too late to be copied.
  const [count] = (await link.run(echo, ['k'], ['a'])) as unknown[]
  assert.deepEqual(link.changes, [true, false, true])
  const name = `redis ${group.name} of the sentinels at ${link.servers.join(', ')}`
  assert.deepEqual(link.lines, [
    `notice fleet: sharing through ${name}`,
    `warn fleet: ${name} cannot be reached (connection closed)${alone}`,
    `notice fleet: ${name} answers again`,
  ])
  await ready(further)
  assert.equal(await further.get('k'), String(count))
  further.disconnect()
  await using other = new TestLink({ ...own, sentinel: 'other' })
  other.start()
  await other.said('knows no master other')
  group.sentinels[0]!.pause()
  await using third = new TestLink(own)
  third.start()
  await third.became(true)
})

test('a cluster has each group on one of its nodes, and is shared through while one is away', async () => {
  await using cluster = await redisCluster()
  // One node is named; it tells of the others.
  await using link = new TestLink({ urls: cluster.urls.slice(0, 1), cluster: true })
  link.start()
  await link.became(true)
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const ask = (name: string) => link.run(echo, [groupKeys('evenkeel', 'shop', name).state], ['a'])
  const answered = async () => {
    const until = performance.now() + 5000
    while ((await Promise.allSettled(names.map(ask))).some((one) => one.status === 'rejected')) {
      assert.ok(performance.now() < until)
      await sleep(100)
    }
  }
  const all = await Promise.all(names.map(ask))
  assert.deepEqual(
    all,
    names.map(() => [1, Buffer.from('a'), [1, Buffer.from('two')], null]),
  )
  const sizes = await Promise.all(cluster.nodes.map((node) => node.command('DBSIZE')))
  assert.ok(sizes.every((size) => Number(size) > 0))
  const further = link.connect()
  await further.connect()
  assert.equal(await further.exists(groupKeys('evenkeel', 'shop', 'a').state), 1)
  further.disconnect()

  cluster.nodes[1]!.pause()
  const stuckUntil = performance.now() + 1300
  while (performance.now() < stuckUntil) {
    const answers = await Promise.allSettled(names.map(ask))
    assert.equal(answers.filter((one) => one.status === 'rejected').length, sizes[1])
  }
  cluster.nodes[1]!.resume()
  assert.ok(link.up)
  await answered()

  await cluster.nodes[2]!.kill()
  const some = await Promise.allSettled(names.map(ask))
  assert.equal(some.filter((one) => one.status === 'rejected').length, sizes[2])
  await link.said('is partly away')
  assert.ok(link.up)
  // Before the nodes agree that it is dead, it is back, with its slots and nothing in them.
  await cluster.nodes[2]!.restart()
  await answered()
  for (const node of cluster.nodes) await node.kill()
  await Promise.allSettled(names.map(ask))
  await link.became(false)
  await Promise.all(cluster.nodes.map((node) => node.restart()))
  await link.became(true)
})
