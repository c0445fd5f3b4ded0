import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, decode, encode, type Packet } from 'dns-packet'
import { follow } from '../../../sidecar/resolve/chain.ts'
import { askable, queryOf, type Reply, replyTo } from '../../../sidecar/resolve/message.ts'

const asked = { name: 'web.example', type: 'A' } as const

function message(answers: readonly Answer[], more: Partial<Packet> = {}): Buffer {
  return encode({
    type: 'response',
    id: 7,
    questions: [{ type: 'A', name: 'web.example' }],
    answers: [...answers],
    ...more,
  })
}

const a = (name: string, data: string, ttl = 60): Answer => ({ type: 'A', name, data, ttl })
const cname = (name: string, data: string, ttl = 60): Answer => ({ type: 'CNAME', name, data, ttl })

function read(answers: readonly Answer[], more: Partial<Packet> = {}): Reply {
  const reply = replyTo(7, asked, message(answers, more))
  assert.ok(typeof reply === 'object')
  return reply
}

test('a query asks one question, and for recursion', () => {
  const { id, questions, flag_rd } = decode(queryOf(258, asked)) as Packet & { flag_rd: boolean }
  assert.deepEqual([id, questions?.[0]?.name, questions?.[0]?.type, flag_rd], [258, 'web.example', 'A', true])
})

test('what is not the answer to the question is not taken for it', () => {
  const good = message([a('web.example', '127.0.0.2')])
  assert.equal(typeof replyTo(7, asked, good), 'object')
  assert.equal(replyTo(8, asked, good), undefined)
  assert.equal(replyTo(7, { ...asked, name: 'other.example' }, good), undefined)
  assert.equal(replyTo(7, { ...asked, type: 'AAAA' }, good), undefined)
  assert.equal(replyTo(7, asked, message([], { type: 'query' })), undefined)
  assert.equal(replyTo(7, asked, message([], { questions: [] })), undefined)
  assert.equal(replyTo(7, asked, good.subarray(0, good.length - 2)), undefined)
  assert.equal(replyTo(7, asked, good.subarray(0, 5)), undefined)
  // What was cut off is known by its first bytes.
  assert.equal(replyTo(7, asked, message([], { flags: 0x200 }).subarray(0, 20)), 'cut')
})

test('letter case and a final dot make no other name', () => {
  const reply = replyTo(
    7,
    asked,
    message([a('WEB.Example', '127.0.0.2')], { questions: [{ type: 'A', name: 'Web.EXAMPLE.' }] }),
  )
  assert.ok(typeof reply === 'object')
  assert.deepEqual(reply.answers[0]?.name, 'web.example')
})

test('a server that could not read the query has nothing to repeat', () => {
  const reply = replyTo(7, asked, encode({ type: 'response', id: 7, flags: 1, questions: [] }))
  assert.equal(typeof reply === 'object' && reply.code, 'FORMERR')
})

test('addresses are those at the end of a chain of aliases, good for as long as its shortest link', () => {
  const answers = [
    a('c.example', '127.0.0.3', 50),
    cname('web.example', 'b.example', 30),
    a('c.example', '127.0.0.4', 40),
    a('stray.example', '127.6.6.6', 1),
    cname('b.example', 'C.example.', 20),
  ]
  assert.deepEqual(follow(asked, read(answers)), {
    kind: 'found',
    addresses: ['127.0.0.3', '127.0.0.4'],
    services: [],
    ttl: 20,
  })
})

test('a chain that leads out of the answer is to be asked for, unless it is known to end there', () => {
  const answers = [cname('web.example', 'b.example', 30)]
  assert.deepEqual(follow(asked, read(answers)), { kind: 'alias', name: 'b.example', ttl: 30 })
  const soa: Answer = {
    type: 'SOA',
    name: 'example',
    data: { mname: 'a', rname: 'b', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 1 },
  }
  assert.deepEqual(follow(asked, read(answers, { authorities: [soa] })), { kind: 'nothing' })
  assert.deepEqual(follow(asked, read([])), { kind: 'nothing' })
})

test('a circle of aliases has no end', () => {
  const answers = [cname('web.example', 'b.example'), cname('b.example', 'web.example')]
  assert.deepEqual(follow(asked, read(answers)), { kind: 'nothing' })
})

test('a TTL with its highest bit set is zero', () => {
  const bytes = message([a('web.example', '127.0.0.2', 1)])
  bytes[bytes.length - 10] = 0x80
  const reply = replyTo(7, asked, bytes)
  assert.equal(typeof reply === 'object' && reply.answers[0]?.ttl, 0)
})

test('a name is asked for only if it can stand in a message', () => {
  assert.ok(askable('a.b'))
  assert.ok(askable('x'.repeat(63)))
  for (const name of ['', '.', 'a..b', '.a', 'x'.repeat(64), `${'abcdefg.'.repeat(32)}a`])
    assert.equal(askable(name), false, name)
})
