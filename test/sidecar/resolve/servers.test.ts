import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noCounts } from '../../../feedback/resolver-counts.ts'
import type { AskServer, Exchanged } from '../../../sidecar/resolve/exchange.ts'
import { type Asked, Servers } from '../../../sidecar/resolve/servers.ts'
import { Clock } from '../../support/clock.ts'

const question = { name: 'web.example', type: 'A' } as const

const coded = (code: string): Exchanged => ({
  kind: 'reply',
  reply: { code, answers: [], additionals: [], negative: false },
})

/** Servers that do what is said of them, one word a time they are asked; the last word stays. */
class Field {
  readonly clock = new Clock()
  readonly counts = noCounts()
  /** `HOST MS`, in order. */
  readonly asked: string[] = []
  readonly servers: Servers
  readonly #words: Record<string, string[]>

  constructor(words: Record<string, string[]>) {
    this.#words = words
    this.servers = new Servers(this.#ask, this.clock.now, this.counts)
  }

  readonly #ask: AskServer = async ({ host }, _question, ms) => {
    this.asked.push(`${host} ${Math.round(ms)}`)
    const words = this.#words[host]!
    const word = words.length > 1 ? words.shift()! : words[0]!
    if (word === 'silence') {
      this.clock.move(ms)
      return { kind: 'timeout' }
    }
    return word === 'ECONNREFUSED' ? { kind: 'error', error: word } : coded(word)
  }

  ask(more: Partial<Asked> = {}, ms = 30_000) {
    const servers = Object.keys(this.#words).map((host) => ({ host, port: 53 }))
    const asked = { servers, tryMs: 2000, rounds: 3, rotate: false, ...more }
    return this.servers.ask(asked, question, this.clock.now() + ms)
  }
}

test('the first server that knows is believed, also that there is no such name', async () => {
  for (const code of ['NOERROR', 'NXDOMAIN']) {
    const field = new Field({ a: [code], b: ['NOERROR'] })
    const asking = await field.ask()
    assert.equal(asking.kind === 'reply' && asking.reply.code, code)
    assert.deepEqual(field.asked, ['a 2000'])
  }
})

test('a server that fails leaves it to the next one at once', async () => {
  for (const word of ['SERVFAIL', 'REFUSED', 'NOTIMP', 'FORMERR', 'ECONNREFUSED']) {
    const field = new Field({ a: [word], b: ['NOERROR'] })
    assert.equal((await field.ask()).kind, 'reply')
    assert.deepEqual(field.asked, ['a 2000', 'b 2000'])
  }
})

test('what all servers fail at is not asked again at once', async () => {
  const field = new Field({ a: ['SERVFAIL'], b: ['REFUSED'] })
  assert.deepEqual(await field.ask(), { kind: 'failed', error: 'REFUSED (b:53)' })
  assert.deepEqual(field.asked, ['a 2000', 'b 2000'])
})

test('silent servers are asked round after round, each time for longer, until the time is over', async () => {
  const field = new Field({ a: ['silence'], b: ['silence'] })
  assert.deepEqual(await field.ask({}, 13_000), { kind: 'failed', error: 'timed out (a:53)' })
  assert.deepEqual(field.asked, ['a 2000', 'b 2000', 'a 4000', 'b 4000', 'a 1000'])
})

test('no server is asked more often than is said', async () => {
  const field = new Field({ a: ['silence'] })
  await field.ask({ rounds: 2 })
  assert.deepEqual(field.asked, ['a 2000', 'a 4000'])
})

test('a server that was silent once may know the second time', async () => {
  const field = new Field({ a: ['silence', 'NOERROR'], b: ['SERVFAIL'] })
  assert.equal((await field.ask()).kind, 'reply')
  assert.deepEqual(field.asked, ['a 2000', 'b 2000', 'a 4000'])
})

test('questions begin with one server after the other where that is said', async () => {
  const field = new Field({ a: ['NOERROR'], b: ['NOERROR'] })
  for (let i = 0; i < 3; i++) await field.ask({ rotate: true })
  assert.deepEqual(field.asked, ['a 2000', 'b 2000', 'a 2000'])
})

test('what was sent and what came of it is counted', async () => {
  const field = new Field({
    a: [
      'silence',
      'SERVFAIL',
      'REFUSED',
      'NXDOMAIN',
      'NOERROR',
      'FORMERR',
      'NOTIMP',
      'NOTAUTH',
      'ECONNREFUSED',
    ],
  })
  for (let i = 0; i < 8; i++) await field.ask()
  assert.equal(field.counts.sent.a, 9)
  assert.deepEqual(field.counts.responses, {
    success: 1,
    timedout: 1,
    format_error: 1,
    server_failure: 1,
    not_found: 1,
    unimplemented: 1,
    refused: 1,
    other: 2,
  })
})

test('however many questions there are, no more than 64 are under way at once', async () => {
  let now = 0
  let most = 0
  const ask: AskServer = async () => {
    now += 1
    most = Math.max(most, now)
    await new Promise((resolve) => setImmediate(resolve))
    now -= 1
    return coded('NOERROR')
  }
  const servers = new Servers(ask, performance.now.bind(performance), noCounts())
  const asked = { servers: [{ host: 'a', port: 53 }], tryMs: 1000, rounds: 1, rotate: false }
  const all = Array.from({ length: 300 }, () => servers.ask(asked, question, performance.now() + 10_000))
  assert.ok((await Promise.all(all)).every(({ kind }) => kind === 'reply'))
  assert.equal(most, 64)
})
