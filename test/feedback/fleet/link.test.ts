import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LinkError } from '../../../feedback/fleet/link.ts'
import { freePort } from '../../support/free-port.ts'
import { alone, echo, TestLink } from '../../support/link.ts'
import { redisServer } from '../../support/redis.ts'

test('runs scripts on a server that is there, and says so once', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  assert.equal(link.up, false)
  await assert.rejects(link.run(echo, ['k'], []), LinkError)
  link.start()
  await link.became(true)
  assert.deepEqual(link.servers, [`127.0.0.1:${server.port}`])
  assert.deepEqual(await link.run(echo, ['{g}k'], [Buffer.from([255, 0, 10])]), [
    1,
    Buffer.from([255, 0, 10]),
    [1, Buffer.from('two')],
    null,
  ])
  assert.ok(Math.abs(link.since - Date.now()) < 2000)
  assert.deepEqual(link.lines, [`notice fleet: sharing through redis at 127.0.0.1:${server.port}`])
  assert.equal(link.error, undefined)
  await link.stop()
  assert.deepEqual([link.up, link.losses, link.changes], [false, 0, [true, false]])
  await assert.rejects(link.run(echo, ['k'], []), LinkError)
  assert.match(String(await server.command('CLIENT', 'LIST')), /^[^\n]*cmd=client[^\n]*\n?$/)
})

test('scripts that the server has forgotten are sent anew', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  await server.command('SCRIPT', 'FLUSH')
  assert.equal(((await link.run(echo, ['k'], ['a'])) as unknown[])[0], 2)
  assert.equal(((await link.run(echo, ['k'], ['a'])) as unknown[])[0], 3)
  assert.deepEqual(link.changes, [true])
})

test('a server that comes later is found', async () => {
  const port = await freePort()
  await using link = new TestLink({ urls: [`redis://user:secret@127.0.0.1:${port}/3`] })
  link.start()
  await sleep(300)
  const down = `warn fleet: redis at 127.0.0.1:${port}/3 cannot be reached (connection refused)${alone}`
  assert.deepEqual(link.lines, [down])
  assert.equal(link.error, 'connection refused')
  await assert.rejects(
    link.run(echo, ['k'], []),
    /^LinkError: redis at .* cannot be reached \(connection refused\)$/,
  )
  await using server = await redisServer({ port, config: { user: 'user on >secret ~* +@all' } })
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  assert.match(String(await server.command('INFO', 'keyspace')), /db3:keys=1/)
  assert.deepEqual(link.lines, [down, `notice fleet: sharing through redis at 127.0.0.1:${port}/3`])
  assert.deepEqual([link.losses, link.changes], [0, [true]])
})

test('a server that ends is missed at once, and found again when it is back', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  await server.kill()
  await link.became(false, 200)
  await sleep(1500)
  const begun = performance.now()
  await server.restart()
  await link.became(true)
  assert.ok(performance.now() - begun < 3000)
  assert.equal(((await link.run(echo, ['k'], ['a'])) as unknown[])[0], 1)
  assert.deepEqual(link.lines, [
    `notice fleet: sharing through redis at 127.0.0.1:${server.port}`,
    `warn fleet: redis at 127.0.0.1:${server.port} cannot be reached (connection closed)${alone}`,
    `notice fleet: redis at 127.0.0.1:${server.port} answers again`,
  ])
  assert.deepEqual([link.losses, link.changes], [1, [true, false, true]])
})

test('a server that is stuck is given up after a silence, not after one late answer', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  server.pause()
  const begun = performance.now()
  await assert.rejects(link.run(echo, ['k'], ['a']), /^LinkError: no answer within 100 ms$/)
  assert.ok(performance.now() - begun < 300)
  assert.ok(link.up)
  const last = link.run(echo, ['k'], ['a'])
  await assert.rejects(last, LinkError)
  await link.became(false)
  assert.ok(performance.now() - begun > 450)
  await sleep(1200)
  server.resume()
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  assert.deepEqual(link.lines.slice(1), [
    `warn fleet: redis at 127.0.0.1:${server.port} cannot be reached (no answer for 500 ms)${alone}`,
    `notice fleet: redis at 127.0.0.1:${server.port} answers again`,
  ])
})

test('one late answer does not end the connection', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  server.pause()
  await assert.rejects(link.run(echo, ['k'], ['a']), /no answer within/)
  server.resume()
  await sleep(600)
  await link.run(echo, ['k'], ['a'])
  assert.deepEqual(link.changes, [true])
})

test('a pause of this process is not taken for one of the server', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  await link.run(echo, ['k'], ['a'])
  const answer = link.run(echo, ['k'], ['a'])
  // The request is on its way, and the answer comes while nothing here runs.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900)
  assert.equal(((await answer) as unknown[])[0], 2)
  assert.deepEqual(link.changes, [true])
})

test('stops in time while the server is stuck', async () => {
  await using server = await redisServer()
  const link = new TestLink({ urls: [server.url] })
  link.start()
  await link.became(true)
  server.pause()
  const call = assert.rejects(link.run(echo, ['k'], ['a']), LinkError)
  const begun = performance.now()
  await link.stop()
  assert.ok(performance.now() - begun < 200)
  await call
  const again = new TestLink({ urls: [server.url] })
  again.start()
  await sleep(50)
  const second = performance.now()
  await again.stop()
  // The socket of a connection that was never answered is gone as well.
  assert.ok(!process.getActiveResourcesInfo().some((name) => /^(TCP|TLS)/.test(name)))
  assert.ok(performance.now() - second < 50)
  assert.deepEqual(again.lines, [])
})

test('takes only so many calls that are unanswered', async () => {
  await using server = await redisServer()
  await using link = new TestLink({ urls: [server.url], timeout: 1500 })
  link.start()
  await link.became(true)
  server.pause()
  const calls = Array.from({ length: 4097 }, () =>
    link.run(echo, ['k'], ['a']).catch((error: Error) => error.message),
  )
  assert.equal(await Promise.race([calls.at(-1), sleep(50)]), '4096 calls are unanswered')
  server.resume()
  assert.ok(Array.isArray(await calls[0]))
  await Promise.all(calls)
  await link.run(echo, ['k'], ['a'])
})
