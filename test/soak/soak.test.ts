import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Deed, now } from './deed.ts'
import { type Facts, judge, type Witness } from './judge.ts'
import { PatternCheck, pieces } from './pattern.ts'
import { growth } from './slope.ts'
import { soak } from './soak.ts'
import { Spans } from './spans.ts'

const short = {
  seconds: 1.5,
  threads: 1,
  clients: 12,
  restMs: 5,
  windowSeconds: 0.5,
  reloadEveryMs: 500,
  quietMs: 15_000,
  evidenceMs: 1500,
  long: false,
}

test('a moment of everything at once ends without a finding, and a planted error is found', {
  concurrency: true,
}, async (t) => {
  const said: string[] = []
  await Promise.all([
    t.test('the program as it is', async () => {
      const verdict = await soak({ ...short, seed: 1, say: (text) => said.push(text) })
      assert.deepEqual(verdict.findings, [], said.join('\n'))
      assert.ok(verdict.requests > 20, `only ${verdict.requests} requests`)
      assert.ok(verdict.reloads >= 1)
    }),
    t.test('an answer that was cut off though its peer gave it', async () => {
      const { findings } = await soak({ ...short, seed: 2, lie: true, say: () => {} })
      assert.equal(findings[0], '1 errors that no peer caused')
      assert.match(findings[1]!, /^ {2}\w.*: \w did not do what is called (?:reset|stale)/)
    }),
  ])
})

// Whom a request's end is put down to, by what its peer says that it did.
const peer = '127.0.0.1:1'

function facts(did: Deed['did'] | undefined, reason: string | null, more: Partial<Facts> = {}): Facts {
  const at = now()
  const status = reason === null ? 200 : 502
  const deed = { id: 'q', peer: 'a', did: did ?? 'answered', bodyGood: true, from: at, to: at + 1 } as const
  const attempt = { peer, reason, status, at_ms: 0, response_ms: 1, reused: false }
  return {
    flow: { name: 'get', retried: false },
    from: at,
    to: at + 5,
    outcome: { kind: 'answer', status, peer: reason === null ? 'a' : undefined },
    record: { path: '/?id=q', status, denial: null, attempts: [attempt] },
    deeds: did === undefined ? [] : [{ ...deed, status: did === 'answered' ? 200 : undefined }],
    ...more,
  }
}

function witness(): Witness {
  const outages = { shut: new Spans(), dead: new Spans(), hungUp: new Spans() }
  return { outages, nameOf: (address) => (address === peer ? 'a' : undefined), readTimeoutMs: 1000 }
}

const cases: [string, Facts, 'nobody' | 'peers' | 'ours'][] = [
  ['an answer that its peer gave', facts('answered', null), 'nobody'],
  ['a reset that its peer did', facts('reset', 'reset'), 'peers'],
  ['a reset that its peer knows nothing of', facts('answered', 'reset'), 'ours'],
  ['an answer that no peer gave', facts(undefined, null), 'ours'],
  ['a refusal by a peer that listened', facts(undefined, 'refused'), 'ours'],
  [
    'a failure of what should have been repeated',
    facts('reset', 'reset', { flow: { name: 'get', retried: true } }),
    'ours',
  ],
  [
    'a body that broke off after a whole one',
    facts('answered', null, { outcome: { kind: 'cut', status: 200 } }),
    'ours',
  ],
  [
    'another answer than was logged',
    facts('answered', null, { outcome: { kind: 'answer', status: 404, peer: 'a' } }),
    'ours',
  ],
  [
    'the answer of another peer',
    facts('answered', null, { outcome: { kind: 'answer', status: 200, peer: 'b' } }),
    'ours',
  ],
]

for (const [what, given, by] of cases) {
  test(`${what} is put down to ${by}`, () => assert.equal(judge(given, witness()).by, by))
}

test('a status whose body was not waited for is what its peer did', () => {
  const given = facts('gone', 'http_503')
  const attempt = { ...given.record.attempts[0]!, status: 503 }
  const deeds = given.deeds.map((deed) => ({ ...deed, status: 503 }))
  const record = { ...given.record, status: 503, attempts: [attempt] }
  const outcome = { kind: 'answer', status: 503, peer: 'a' } as const
  assert.equal(judge({ ...given, record, deeds, outcome }, witness()).by, 'peers')
})

test('a refusal while the port was shut is put down to the peer', () => {
  const shut = witness()
  shut.outages.shut.mark('a', now())
  assert.equal(judge(facts(undefined, 'refused'), shut).by, 'peers')
})

test('a body is recognised in any pieces, and one byte of another is noticed', () => {
  for (let size = 1; size < 70_000; size += 6977) {
    const body = Buffer.concat([...pieces(`q${size}`, 200_000)])
    const check = new PatternCheck(`q${size}`)
    for (let at = 0; at < body.length; at += size) check.take(body.subarray(at, at + size))
    assert.equal(check.fault, undefined)
    const other = new PatternCheck(`q${size}`)
    body[body.length - size] = 32
    other.take(body)
    assert.match(other.fault!, new RegExp(`^byte ${body.length - size} `))
  }
})

test('memory that climbs is not flat, and one that swings is', () => {
  const bound = { bytes: 1000, part: 0.01 }
  const points = (of: (x: number) => number) => Array.from({ length: 30 }, (_, x) => [x, of(x)] as const)
  assert.equal(
    growth(
      points((x) => 50_000 + 100 * x),
      bound,
    )?.flat,
    false,
  )
  assert.equal(
    growth(
      points((x) => 50_000 + 3000 * (x % 2)),
      bound,
    )?.flat,
    true,
  )
})
