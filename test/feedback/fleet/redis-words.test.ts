import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkLines } from '../../../feedback/fleet/link-lines.ts'
import { redisAddresses } from '../../../feedback/fleet/redis-address.ts'
import { standing } from '../../../feedback/fleet/redis-check.ts'
import { failureText, isLasting, refusalOf } from '../../../feedback/fleet/redis-error.ts'

type Options = Parameters<typeof redisAddresses>[0]

function addresses(urls: readonly string[], sentinel?: string) {
  // Nothing else of the options is looked at.
  return redisAddresses({ urls, sentinel } as Options)
}

test('a URL gives host, port, user, password and database', () => {
  assert.deepEqual(addresses(['redis://ann:p%40ss@[::1]:7000/2', 'rediss://cache.example.com']), [
    { host: '::1', port: 7000, user: 'ann', password: 'p@ss', db: 2, tls: false, name: '[::1]:7000/2' },
    {
      host: 'cache.example.com',
      port: 6379,
      user: undefined,
      password: undefined,
      db: 0,
      tls: true,
      name: 'cache.example.com:6379',
    },
  ])
  assert.equal(addresses(['redis://127.0.0.1'], 'shop')[0]!.port, 26_379)
})

function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' })
}

test('what a server refuses is told in few words, also from inside a script', () => {
  const inside = `ERR Error running script (call to f_${'a'.repeat(40)}): @user_script:7: @user_script: 7: -READONLY You can't write against a read only replica.`
  assert.deepEqual(refusalOf(reply(inside)), { code: 'READONLY', text: 'it is a read-only replica' })
  const oom = `OOM command not allowed when used memory > 'maxmemory'. script: ${'a'.repeat(40)}, on @user_script:1.`
  const refusal = refusalOf(reply(oom))!
  assert.deepEqual(refusal, { code: 'OOM', text: "OOM command not allowed when used memory > 'maxmemory'." })
  assert.ok(!isLasting(refusal))
  assert.ok(isLasting({ code: 'LOADING', text: '' }))
  assert.ok(!isLasting({ code: 'constructor', text: '' }))
  assert.equal(refusalOf(new Error('READONLY')), undefined)
  assert.equal(failureText(reply(`ERR \u001b[31m${'x'.repeat(500)}`)).length, 201)
})

test('failures of the network have words of their own', () => {
  const failure = (code: string) => failureText(Object.assign(new Error('connect'), { code }))
  assert.equal(failure('ECONNREFUSED'), 'connection refused')
  assert.equal(failure('ENOTFOUND'), 'host not found')
  assert.equal(
    failureText(new AggregateError([Object.assign(new Error(), { code: 'EHOSTUNREACH' })])),
    'host unreachable',
  )
  assert.equal(failureText(new Error('something else')), 'something else')
})

function server(info: string | Error): Parameters<typeof standing>[0] {
  const answer = () => (info instanceof Error ? Promise.reject(info) : Promise.resolve(info))
  // A client of which only this is asked.
  return { eval: () => Promise.resolve(0), info: answer } as unknown as Parameters<typeof standing>[0]
}

test('a server that is too old is not used, and one that does not tell is', async () => {
  const old = await standing(server('redis_version:4.0.14\r\nmaxmemory:0\r\n'), 'evenkeel', 100)
  assert.equal(old.fault, 'its version is 4.0.14, and 5.0 is the least that will do')
  const silent = await standing(server(reply('NOPERM')), 'evenkeel', 100)
  assert.deepEqual(silent, { fault: undefined, advice: undefined })
  const limitless = 'redis_version:7.2.0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n'
  assert.deepEqual(await standing(server(limitless), 'evenkeel', 100), silent)
})

test('while Redis is away a new reason is told once a minute at most, and the same one never again', () => {
  const lines: string[] = []
  let now = 0
  const voice = new LinkLines('redis', { now: () => now, say: (_level, text) => lines.push(text) })
  const tell = (at: number, why: string) => {
    now = at
    voice.lost(why, false)
    return lines.splice(0).length
  }
  assert.equal(tell(0, 'a'), 1)
  assert.equal(tell(59_000, 'b'), 0)
  assert.equal(tell(60_000, 'a'), 0)
  assert.equal(tell(61_000, 'b'), 1)
  assert.equal(tell(300_000, 'b'), 0)
  voice.reached(undefined)
  assert.deepEqual(lines.splice(0), ['fleet: sharing through redis'])
  assert.equal(tell(300_001, 'b'), 1)
})

test('where readiness asks for Redis, the line says when it ends', () => {
  const lines: string[] = []
  const voice = new LinkLines('redis', { now: () => 0, say: (_level, text) => lines.push(text) })
  voice.readyFor = 5000
  voice.lost('it is not a cluster', true)
  voice.reached(undefined)
  voice.lost('connection refused', false)
  const own = "balancing on this instance's view only"
  assert.deepEqual(lines, [
    `fleet: redis cannot be used (it is not a cluster); ${own}, not ready`,
    'fleet: sharing through redis',
    `fleet: redis cannot be reached (connection refused); ${own}, not ready after 5000 ms`,
  ])
})

test('what fails while the rest does not is told, and that it no longer does', () => {
  const lines: string[] = []
  let now = 0
  const voice = new LinkLines('redis', {
    now: () => now,
    say: (level, text) => lines.push(`${level} ${text}`),
  })
  assert.equal(voice.calmed(), false)
  voice.troubled('refuses some (OOM)')
  now = 9000
  voice.troubled('refuses some (ERR)')
  now = 18_000
  assert.equal(voice.calmed(), false)
  now = 19_000
  assert.equal(voice.calmed(), true)
  assert.equal(voice.calmed(), false)
  assert.deepEqual(lines, [
    'warn fleet: redis refuses some (OOM)',
    'notice fleet: redis takes everything again',
  ])
})
