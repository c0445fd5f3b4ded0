import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { mostListed, readRoster, roster } from '../../../feedback/fleet/roster.ts'
import { type RedisServer, redisServer } from '../../support/redis.ts'

let server: RedisServer
before(async () => {
  server = await redisServer()
})
after(() => server.stop())

const ask = async (key: string) => readRoster(await server.command('EVAL', roster.text, '1', key, '5000'))

test('those who were heard of late are listed, in order, and nobody else', async () => {
  const now = Date.now()
  await server.command(
    'ZADD',
    'm',
    '+inf',
    '',
    now,
    'two~b',
    now - 4000,
    'one~a',
    now - 9000,
    'dead~c',
    0,
    'left~d',
  )
  assert.deepEqual(await ask('m'), ['one~a', 'two~b'])
  assert.deepEqual(await ask('nothing there'), [])
  await server.command('SET', 'text', 'x')
  assert.deepEqual(await ask('text'), [], 'what another program put there is nobody')
})

test('a hundred are listed at most', async () => {
  const members = Array.from({ length: 250 }, (_, i) => [Date.now(), `pod-${i}`]).flat()
  await server.command('ZADD', 'many', '+inf', '', ...members)
  assert.equal((await ask('many')).length, mostListed)
})
