import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, Answers, mostHosts, mostLooking, mostNames } from '../../../sidecar/resolve/answers.ts'
import type { Lookup } from '../../../sidecar/resolve/lookup.ts'
import type { Name } from '../../../sidecar/resolve/resolver.ts'
import { resolverSpec as spec } from '../../support/resolver-spec.ts'
import { ManualTimers } from '../../support/timers.ts'

function found(hosts: readonly string[], ttl = 10): Lookup {
  return {
    kind: 'found',
    found: hosts.map((host) => ({ host, service: undefined })),
    ttl,
    error: undefined,
  }
}

/** Answers under a manual clock, by a script. */
class Bench {
  readonly timers = new ManualTimers()
  /** Names that were looked up, in order. */
  readonly asked: string[] = []
  /** Undefined: there is no answer until `settle`. */
  how: Lookup | Error | undefined = found(['10.0.0.1'])
  readonly answers: Answers
  #open: ((how: Lookup) => void)[] = []

  constructor(validMs?: number) {
    const { now, after } = this.timers
    const lookUp = async ({ host }: Name) => {
      this.asked.push(host)
      if (this.how instanceof Error) throw this.how
      return this.how ?? new Promise<Lookup>((resolve) => this.#open.push(resolve))
    }
    this.answers = new Answers({ spec: { ...spec, validMs }, lookUp } as never, {
      now,
      after,
      random: () => 0,
    })
  }

  settle(how: Lookup): void {
    for (const resolve of this.#open.splice(0)) resolve(how)
  }

  /** What a name comes to, in short, and whether it had to be waited for. */
  async ask(name = 'web.example'): Promise<string> {
    const answer = this.answers.of(name)
    return `${answer instanceof Promise ? 'waited ' : ''}${short(await answer)}`
  }
}

function short(answer: Answer): string {
  return answer.kind === 'found' ? answer.hosts.join(' ') : answer.why
}

test('an answer holds for its TTL, and the next one is waited for', async () => {
  const bench = new Bench()
  assert.equal(await bench.ask(), 'waited 10.0.0.1')
  await bench.timers.pass(9999)
  assert.equal(await bench.ask(), '10.0.0.1')
  bench.how = found(['10.0.0.2'])
  await bench.timers.pass(1)
  assert.equal(await bench.ask(), 'waited 10.0.0.2')
  assert.deepEqual(bench.asked, ['web.example', 'web.example'])
})

test('valid holds in place of the TTL, and a TTL of nothing is a second', async () => {
  const bench = new Bench(60_000)
  await bench.ask()
  await bench.timers.pass(59_999)
  assert.equal(await bench.ask(), '10.0.0.1')
  const short = new Bench()
  short.how = found(['10.0.0.1'], 0)
  await short.ask()
  await short.timers.pass(999)
  assert.equal(await short.ask(), '10.0.0.1')
})

test('many who ask at once share one look-up', async () => {
  const bench = new Bench()
  const all = await Promise.all(Array.from({ length: 100 }, () => bench.ask()))
  assert.deepEqual(new Set(all), new Set(['waited 10.0.0.1']))
  assert.equal(bench.asked.length, 1)
})

test('addresses that stay the same are the same object', async () => {
  const bench = new Bench()
  const one = await bench.answers.of('web.example')
  await bench.timers.pass(10_000)
  const two = await bench.answers.of('web.example')
  assert.equal(bench.asked.length, 2)
  assert.equal(one, two)
})

test('a name whose servers say nothing is waited for a second, and then has its last addresses', async () => {
  const bench = new Bench()
  await bench.ask()
  await bench.timers.pass(10_000)
  bench.how = undefined
  const first = bench.ask()
  await bench.timers.pass(1000)
  assert.equal(await first, 'waited 10.0.0.1')
  // Who comes after that does not wait again for the same.
  assert.equal(await bench.ask(), '10.0.0.1')
  assert.equal(bench.asked.length, 2)
  bench.settle(found(['10.0.0.2']))
  await bench.timers.pass(0)
  assert.equal(await bench.ask(), '10.0.0.2')
  assert.equal(bench.timers.count, 0)
})

test('the last addresses stay while a name cannot be looked up, which is tried less and less often', async () => {
  const bench = new Bench()
  await bench.ask()
  bench.how = { kind: 'failed', error: 'SERVFAIL (127.0.0.1:53)' }
  await bench.timers.pass(10_000)
  for (const pause of [1000, 2000, 4000, 8000]) {
    const before = bench.asked.length
    assert.equal(await bench.ask(), 'waited 10.0.0.1')
    await bench.timers.pass(pause - 1)
    assert.equal(await bench.ask(), '10.0.0.1')
    assert.equal(bench.asked.length, before + 1)
    await bench.timers.pass(1)
  }
  bench.how = { kind: 'empty' }
  assert.equal(await bench.ask(), 'waited 10.0.0.1')
})

test('a name that is no more loses its addresses at once', async () => {
  const bench = new Bench()
  await bench.ask()
  await bench.timers.pass(10_000)
  bench.how = { kind: 'absent' }
  assert.equal(await bench.ask(), 'waited 3: Host not found')
  bench.how = { kind: 'failed', error: 'SERVFAIL' }
  await bench.timers.pass(1000)
  assert.equal(await bench.ask(), 'waited 2: Server failure')
})

test('what keeps a name from being found is told in the words of nginx', async () => {
  for (const [how, words] of [
    [{ kind: 'absent' }, '3: Host not found'],
    [{ kind: 'empty' }, '3: Host not found'],
    [{ kind: 'failed', error: 'timed out (127.0.0.1:53)' }, '110: Operation timed out'],
    [{ kind: 'failed', error: 'FORMERR (127.0.0.1:53)' }, '1: Format error'],
    [{ kind: 'failed', error: 'SERVFAIL (127.0.0.1:53)' }, '2: Server failure'],
    [{ kind: 'failed', error: 'NOTIMP (127.0.0.1:53)' }, '4: Unimplemented'],
    [{ kind: 'failed', error: 'REFUSED (127.0.0.1:53)' }, '5: Operation refused'],
    [{ kind: 'failed', error: 'ECONNREFUSED (127.0.0.1:53)' }, 'ECONNREFUSED (127.0.0.1:53)'],
    [new Error('broken'), 'Error: broken'],
  ] as const) {
    const bench = new Bench()
    bench.how = how
    assert.equal(await bench.ask(), `waited ${words}`)
  }
})

test('a name that was not found is not asked for again for a second', async () => {
  const bench = new Bench()
  bench.how = { kind: 'absent' }
  await bench.ask()
  await bench.timers.pass(999)
  assert.equal(await bench.ask(), '3: Host not found')
  bench.how = found(['10.0.0.1'])
  await bench.timers.pass(1)
  assert.equal(await bench.ask(), 'waited 10.0.0.1')
})

test('what cannot be a name is neither asked for nor remembered', async () => {
  const bench = new Bench()
  for (const name of ['', '.', 'a..b', `${'a'.repeat(64)}.example`, 'a.'.repeat(200)])
    assert.equal(await bench.ask(name), '3: Host not found')
  assert.deepEqual([bench.asked.length, bench.answers.size], [0, 0])
  assert.equal(await bench.ask('web.example.'), 'waited 10.0.0.1')
  assert.deepEqual(bench.asked, ['web.example'])
})

test('of very many names the longest unused are forgotten', async () => {
  const bench = new Bench()
  bench.how = found(['10.0.0.1'], 3600)
  for (let i = 0; i < 3 * mostNames; i++) {
    await bench.ask(`n${i}.example`)
    await bench.ask('busy.example')
    bench.timers.clock.move(1)
  }
  assert.equal(bench.answers.size, mostNames)
  assert.equal(bench.asked.filter((name) => name === 'busy.example').length, 1)
})

test('only so many names are looked up at once, and those that are known go on', async () => {
  const bench = new Bench()
  await bench.ask('known.example')
  bench.how = undefined
  const waiting = Array.from({ length: mostLooking }, (_, i) => bench.ask(`n${i}.example`))
  assert.equal(await bench.ask('more.example'), 'too many names are being looked up')
  await bench.timers.pass(20_000)
  assert.equal(await bench.ask('known.example'), '10.0.0.1')
  assert.equal(bench.answers.size, mostLooking + 1)
  bench.settle({ kind: 'absent' })
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['waited 3: Host not found']))
  bench.how = found(['10.0.0.3'])
  assert.equal(await bench.ask('more.example'), 'waited 10.0.0.3')
})

test('of very many addresses the first ones are used', async () => {
  const bench = new Bench()
  bench.how = found(Array.from({ length: 1000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`))
  const answer = await bench.answers.of('web.example')
  assert.equal(answer.kind === 'found' && answer.hosts.length, mostHosts)
})
