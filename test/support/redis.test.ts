import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { redisCluster, redisSentinels, redisServer } from './redis.ts'

test('a server answers, forgets at a restart, and is gone with its folder after the stop', async () => {
  await using server = await redisServer()
  assert.equal(await server.command('SET', 'k', 'v'), 'OK')
  assert.equal(await server.command('GET', 'k'), 'v')
  const first = server.pid
  await server.restart()
  assert.notEqual(server.pid, first)
  assert.equal(await server.command('GET', 'k'), null)
  await server.stop()
  assert.equal(server.pid, undefined)
  assert.ok(!existsSync(server.folder))
  await assert.rejects(server.command('PING'), /ECONNREFUSED/)
})

test('a paused server answers once it is resumed', async () => {
  await using server = await redisServer()
  server.pause()
  let answered = false
  const answer = server.command('PING').then((text) => {
    answered = true
    return text
  })
  await sleep(100)
  assert.ok(!answered)
  server.resume()
  assert.equal(await answer, 'PONG')
  server.pause()
})

test('settings are taken, and a password is used by what asks', async () => {
  await using server = await redisServer({
    config: { requirepass: 'open', user: ['ann on >a ~* +@all', 'bob off'], maxmemory: '5mb' },
  })
  assert.deepEqual(await server.command('CONFIG', 'GET', 'maxmemory'), ['maxmemory', '5242880'])
  assert.deepEqual(await server.command('ACL', 'USERS'), ['ann', 'bob', 'default'])
})

test('a server ends with the process that started it, even when that is killed', async () => {
  const module = new URL('./redis.ts', import.meta.url).href
  const text = `import { redisServer } from ${JSON.stringify(module)}
    const server = await redisServer()
    console.log(server.pid + ' ' + server.folder)
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  const [pid, folder] = String(line).trim().split(' ')
  assert.ok(existsSync(`/proc/${pid}`) && existsSync(folder!))
  child.kill('SIGKILL')
  for (let tries = 0; tries < 100 && (existsSync(`/proc/${pid}`) || existsSync(folder!)); tries++)
    await sleep(20)
  assert.ok(!existsSync(`/proc/${pid}`))
  assert.ok(!existsSync(folder!))
})

test('a cluster has its slots over all nodes', async () => {
  await using cluster = await redisCluster()
  assert.equal(cluster.nodes.length, 3)
  assert.equal(await cluster.nodes[2]!.command('CLUSTER', 'KEYSLOT', 'foo'), 12_182)
  assert.equal(await cluster.nodes[2]!.command('SET', 'foo', '1'), 'OK')
  await assert.rejects(cluster.nodes[0]!.command('SET', 'foo', '1'), /^ReplyError: MOVED 12182 127\.0\.0\.1:/)
})

test('a sentinel lets the replica take over', async () => {
  await using group = await redisSentinels()
  await group.killMaster()
  const begun = performance.now()
  const master = () => group.sentinels[0]!.command('SENTINEL', 'get-master-addr-by-name', group.name)
  while (String(await master()) !== `127.0.0.1,${group.replica.port}`) {
    assert.ok(performance.now() - begun < 20_000, 'nobody has taken over')
    await sleep(50)
  }
  assert.equal(await group.replica.command('SET', 'k', 'v'), 'OK')
})
