import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../../feedback/call.ts'
import type { RecentBatch } from '../../../feedback/feed.ts'
import { Attempt } from '../../../feedback/outcome.ts'
import { AttemptFeed, recent } from '../../../sidecar/telemetry/attempt-feed.ts'
import { attemptChannel, publishAttempt } from '../../../sidecar/telemetry/channels.ts'
import { group } from '../../support/peers.ts'

const backend = group([1])

function call(target: string, fields: Partial<Call> = {}): Call {
  return Object.assign(new Call(), { target, ...fields })
}

function attempt(fields: Partial<Attempt> = {}): Attempt {
  return Object.assign(new Attempt(backend, backend.peers[0], 0, 'round_robin'), {
    ending: 'ok',
    status: 200,
    ...fields,
  })
}

test('what is shown of an attempt has neither the query nor control characters, and an end', () => {
  const { path, method, detail } = recent(
    call(`/a\x1b[31m\x00"b"/${'x'.repeat(300)}?token=secret`, { method: 'G\x07ET' }),
    attempt({ detail: 'told\r\nby the peer' }),
  )
  assert.match(path, /^\/a\\x1B\[31m\\x00\\x22b\\x22\/x+…$/)
  assert.ok(path.length < 250)
  assert.equal(method, 'G\\x07ET')
  assert.equal(detail, 'told\\x0D\\x0Aby the peer')
})

test('a call of gRPC is told with its status', () => {
  assert.equal(recent(call('/a.B/c'), attempt({ grpcStatus: 14 })).grpcStatus, 14)
  assert.equal(recent(call('/'), attempt()).grpcStatus, undefined)
})

test('a session is told by what it runs over and where it came in, and asks for nothing', () => {
  const session = (fields: Partial<Call>) => {
    const { protocol, method, path } = recent(call('/', fields), attempt())
    return [protocol, method, path].join(' ')
  }
  assert.equal(session({ protocol: 'TCP', serverAddr: '10.0.0.1', serverPort: '5432' }), 'TCP  10.0.0.1:5432')
  assert.equal(session({ protocol: 'UDP', serverAddr: '::1', serverPort: '53' }), 'UDP  [::1]:53')
  assert.equal(session({ protocol: 'TCP', serverAddr: 'unix:/run/a' }), 'TCP  unix:/run/a')
  assert.equal(session({}), 'HTTP GET /')
})

test('it says which attempt of its request it was, and what came after it', () => {
  const asked = call('/')
  const first = attempt({ ending: 'error', reason: 'reset', next: true })
  const second = attempt({ ending: 'error', reason: 'refused' })
  asked.attempts.push(first, second)
  asked.denial = 'tries'
  assert.deepEqual(
    [first, second].map((one) => {
      const { retry, next, denial, reason } = recent(asked, one)
      return { retry, next, denial, reason }
    }),
    [
      { retry: 0, next: true, denial: undefined, reason: 'reset' },
      { retry: 1, next: false, denial: 'tries', reason: 'refused' },
    ],
  )
  const nobody = Object.assign(new Attempt(backend, undefined, 0, ''), { ending: 'no_live', status: 502 })
  assert.deepEqual([recent(asked, nobody).peer, recent(asked, nobody).upstream], [undefined, backend.name])
})

test('batches come now and then, with a limit and what is beyond it, and nobody listens afterwards', async () => {
  const feed = new AttemptFeed()
  assert.equal(attemptChannel.hasSubscribers, false)
  const first = Promise.withResolvers<RecentBatch>()
  feed.watch(first.resolve)
  for (let i = 0; i < 1000; i++) publishAttempt(call(`/${i}`), attempt())
  publishAttempt(call('/failed'), attempt({ ending: 'error', reason: 'reset' }))
  const { attempts, more, moreFailed } = await first.promise
  assert.ok(attempts.length <= 12)
  assert.equal(attempts.length + more, 1001)
  assert.equal(attempts.at(-1)?.path, '/failed')
  assert.equal(moreFailed, 0)

  // Another listener takes the place of the first.
  const second = Promise.withResolvers<RecentBatch>()
  feed.watch(second.resolve)
  publishAttempt(call('/again'), attempt())
  assert.equal((await second.promise).attempts[0]?.path, '/again')
  feed.watch(undefined)
  assert.equal(attemptChannel.hasSubscribers, false)
})
