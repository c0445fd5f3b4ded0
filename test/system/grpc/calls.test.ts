import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { ended, failing, GrpcClient, type GrpcPeer, grpcPeer, type Talk } from '../../support/grpc.ts'
import { type Sidecar, start } from '../../support/sidecar.ts'

const peers: GrpcPeer[] = []
let it: Sidecar
let client: GrpcClient
/** Calls that clients have given up, as the peers see it. */
let cancelled = 0

const talk = (peer: GrpcPeer): Talk => ({
  unary(call, done) {
    call.on('cancelled', () => {
      cancelled += 1
    })
    const { request } = call
    if (request === 'wait') return
    if (request === 'refuse') {
      done(failing(status.FAILED_PRECONDITION, 'not now: 50% ö'))
      return
    }
    const head = call.metadata.clone()
    head.remove('user-agent')
    call.sendMetadata(head)
    const trailers = call.metadata.clone()
    done(null, `${peer.port} ${request}`, trailers)
  },
  collect(call, done) {
    const parts: string[] = []
    call.on('data', (part: string) => parts.push(part))
    call.on('end', () => done(null, parts.join('+')))
  },
  recite(call) {
    for (const part of call.request.split(' ')) call.write(part)
    call.end()
  },
  chat(call) {
    call.on('cancelled', () => {
      cancelled += 1
    })
    call.on('data', (part: string) => call.write(part.toUpperCase()))
    call.on('end', () => call.end())
  },
})

before(async () => {
  for (let i = 0; i < 3; i++) peers.push(await grpcPeer(talk))
  it = await start(
    `worker_processes 1;
     http {
       upstream up { ${peers.map(({ address }) => `server ${address};`).join(' ')} }
       server { listen 127.0.0.1:PORT; http2 on; location / { grpc_pass grpc://up; } }
     }`,
  )
  client = new GrpcClient(it.port)
})

after(async () => {
  client[Symbol.dispose]()
  await it[Symbol.asyncDispose]()
  for (const peer of peers) await peer[Symbol.asyncDispose]()
})

test('a call of one message is answered by one, with its fields and trailers', async () => {
  const called = await client.unary('hello', {}, { 'x-one': '1', 'x-data-bin': Buffer.from([0, 1, 255]) })
  assert.equal(called.code, status.OK, called.details)
  assert.match(called.messages[0]!, /^\d+ hello$/)
  assert.deepEqual(called.head.get('x-one'), ['1'])
  assert.deepEqual(called.head.get('x-data-bin'), [Buffer.from([0, 1, 255])])
  assert.deepEqual(called.trailers.get('x-one'), ['1'])
})

test('calls over one connection go round the peers', async () => {
  const before = peers.map(({ calls }) => calls)
  const many = await Promise.all(Array.from({ length: 30 }, () => client.unary('x')))
  assert.deepEqual(
    many.filter(({ code }) => code !== status.OK),
    [],
  )
  assert.deepEqual(
    peers.map(({ calls }, i) => calls - before[i]!),
    [10, 10, 10],
  )
})

test('many messages are taken, and many are given', async () => {
  const collected = await client.collect(['a', 'b', 'c'])
  assert.equal(collected.code, status.OK, collected.details)
  assert.deepEqual(collected.messages, ['a+b+c'])
  const call = client.recite('to be or not')
  const parts: string[] = []
  call.on('data', (part: string) => parts.push(part))
  assert.equal((await ended(call)).code, status.OK)
  assert.deepEqual(parts, ['to', 'be', 'or', 'not'])
})

test('both sides talk in turn, before either has ended', async () => {
  const call = client.chat()
  const over = ended(call)
  for (const word of ['one', 'two', 'three']) {
    call.write(word)
    const [answer] = await once(call, 'data')
    assert.equal(answer, word.toUpperCase())
  }
  call.end()
  assert.equal((await over).code, status.OK)
})

test('an error without a message comes with its status and its words', async () => {
  const called = await client.unary('refuse')
  assert.equal(called.code, status.FAILED_PRECONDITION)
  assert.equal(called.details, 'not now: 50% ö')
  await it.logged(/"grpc_status":9/)
})

test('a deadline that passes ends the call at the peer too, and says nothing of the peer', async () => {
  const before = cancelled
  const called = await client.unary('wait', { deadline: Date.now() + 100 })
  assert.equal(called.code, status.DEADLINE_EXCEEDED)
  await it.logged(/"reason":"client_abort"/)
  while (cancelled === before) await new Promise((resolve) => setTimeout(resolve, 5))
})

test('a call that is given up is given up at the peer', async () => {
  const before = cancelled
  const call = client.chat()
  const over = ended(call)
  call.on('error', () => {})
  call.write('one')
  await once(call, 'data')
  call.cancel()
  assert.equal((await over).code, status.CANCELLED)
  while (cancelled === before) await new Promise((resolve) => setTimeout(resolve, 5))
})
