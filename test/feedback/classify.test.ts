import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AttemptEvent, type AttemptFacts, classify, type Verdict } from '../../feedback/classify.ts'
import type { Ending } from '../../feedback/outcome.ts'
import { type RetryPolicy, retryKinds } from '../../feedback/policy.ts'
import type { AttemptReason } from '../../feedback/reasons.ts'

/** A policy by the words of `proxy_next_upstream`. */
function policy(words: string, more: Partial<RetryPolicy> = {}): RetryPolicy {
  const on = new Set(words.split(' ').filter((word) => word !== '' && word !== 'non_idempotent'))
  return {
    on: on.has('off') ? new Set() : on,
    nonIdempotent: words.includes('non_idempotent'),
    tries: 0,
    timeout: 0,
    budget: { ratio: 0.2, min: 10, window: 10_000 },
    backoff: undefined,
    ...more,
  }
}

/** A GET that has been sent, with tries left and nothing against another one. */
const usual: AttemptFacts = {
  method: 'GET',
  sent: true,
  answered: false,
  replayable: true,
  triesLeft: 1,
  elapsedMs: 0,
  mayRetry: () => true,
}

function status(status: number): AttemptEvent {
  return { kind: 'status', status }
}

function failure(ending: Ending, reason: AttemptReason): AttemptEvent {
  return { kind: 'failure', ending, reason }
}

/** `failed next 502 refused`: what of the verdict is true, the status, the reason, and `(denial)`. */
function told({ failed, next, resend, status, reason, denial }: Verdict): string {
  const words = [failed ? 'failed' : '', next ? 'next' : '', resend ? 'resend' : '', status, reason ?? '']
  return `${words.filter((word) => word !== '').join(' ')}${denial ? ` (${denial})` : ''}`
}

// Everything that can happen to an attempt, under the default list and under one that lists all.
const everything = retryKinds.join(' ')
const events: readonly (readonly [AttemptEvent, string, string])[] = [
  [failure('error', 'refused'), 'failed next 502 refused', 'failed next 502 refused'],
  [failure('error', 'unreachable'), 'failed next 502 unreachable', 'failed next 502 unreachable'],
  [failure('error', 'reset'), 'failed next 502 reset', 'failed next 502 reset'],
  [failure('error', 'closed'), 'failed next 502 closed', 'failed next 502 closed'],
  [failure('error', 'dns'), 'failed next 502 dns', 'failed next 502 dns'],
  [failure('error', 'tls'), 'failed next 502 tls', 'failed next 502 tls'],
  [
    failure('timeout', 'timeout_connect'),
    'failed next 504 timeout_connect',
    'failed next 504 timeout_connect',
  ],
  [failure('timeout', 'timeout_send'), 'failed next 504 timeout_send', 'failed next 504 timeout_send'],
  [failure('timeout', 'timeout_read'), 'failed next 504 timeout_read', 'failed next 504 timeout_read'],
  [
    failure('invalid_header', 'invalid_header'),
    'failed 502 invalid_header',
    'failed next 502 invalid_header',
  ],
  [
    failure('invalid_header', 'header_overflow'),
    'failed 502 header_overflow',
    'failed next 502 header_overflow',
  ],
  [status(500), '500', 'failed next 500 http_500'],
  [status(502), '502', 'failed next 502 http_502'],
  [status(503), '503', 'failed next 503 http_503'],
  [status(504), '504', 'failed next 504 http_504'],
  [status(429), '429', 'failed next 429 http_429'],
  [status(403), '403', 'next 403 http_403'],
  [status(404), '404', 'next 404 http_404'],
  [status(200), '200', '200'],
  [status(301), '301', '301'],
  [status(400), '400', '400'],
  [status(501), '501', '501'],
  [status(505), '505', '505'],
  [failure('error', 'body_cut'), 'failed 502 body_cut', 'failed 502 body_cut'],
  [failure('timeout', 'body_timeout'), 'failed 504 body_timeout', 'failed 504 body_timeout'],
  [failure('aborted', 'client_abort'), '499 client_abort', '499 client_abort'],
  [failure('stale', 'stale'), 'resend 502 stale', 'resend 502 stale'],
]

for (const [event, byDefault, byAll] of events) {
  const name = event.kind === 'status' ? `status ${event.status}` : event.reason
  test(`${name}: "${byDefault}" by default, "${byAll}" where all is listed`, () => {
    assert.equal(told(classify(event, policy('error timeout'), usual)), byDefault)
    assert.equal(told(classify(event, policy(everything), usual)), byAll)
  })
}

for (const [event, byDefault, byAll] of events) {
  const name = event.kind === 'status' ? `status ${event.status}` : event.reason
  // `off` decides about going on, and not about whose fault it was.
  const expected = byDefault.replace('next ', '')
  test(`${name}: "${expected}" under off, whatever else is listed`, () => {
    assert.equal(told(classify(event, policy('off'), usual)), expected)
    assert.equal(told(classify(event, policy(`off ${everything}`), usual)), expected)
    // On the last try it is the same as where all is listed, but that it stays.
    const last = told(classify(event, policy(everything), { ...usual, triesLeft: 0 }))
    assert.equal(last, byAll.includes('next') ? `${byAll.replace('next ', '')} (tries)` : byAll)
  })
}

for (const word of retryKinds) {
  test(`${word} listed alone lets on ${word} and nothing else`, () => {
    const kinds = events
      .filter(([event]) => classify(event, policy(word), usual).next)
      .map(([event]) => (event.kind === 'status' ? `http_${event.status}` : event.ending))
    assert.deepEqual([...new Set(kinds)], [word])
  })
}

test('what a peer has begun when it left goes on as after an error, and is nobody’s failure', () => {
  const dropped = failure('aborted', 'dropped')
  assert.equal(told(classify(dropped, policy('error timeout'), usual)), 'next 502 dropped')
  assert.equal(told(classify(dropped, policy('timeout'), usual)), '502 dropped')
  assert.equal(told(classify(dropped, policy('off'), usual)), '502 dropped')
  const post = { ...usual, method: 'POST' }
  assert.equal(told(classify(dropped, policy('error'), post)), '502 dropped (not_replayable)')
})

// Which requests may be sent again, once a kind is listed.
const requests = [
  // method, sent, body still at hand, non_idempotent, what comes of it
  ['GET', true, true, false, 'next'],
  ['HEAD', true, true, false, 'next'],
  ['PUT', true, true, false, 'next'],
  ['DELETE', true, true, false, 'next'],
  ['OPTIONS', true, true, false, 'next'],
  ['POST', true, true, false, 'not_replayable'],
  ['LOCK', true, true, false, 'not_replayable'],
  ['PATCH', true, true, false, 'not_replayable'],
  ['POST', true, true, true, 'next'],
  ['LOCK', true, true, true, 'next'],
  ['PATCH', true, true, true, 'next'],
  ['POST', true, false, true, 'not_replayable'],
  ['PUT', true, false, false, 'not_replayable'],
  // What never left this machine can be sent anywhere.
  ['POST', false, true, false, 'next'],
  ['POST', false, false, false, 'next'],
  ['PUT', false, false, false, 'next'],
] as const

const kinds = [
  failure('error', 'closed'),
  failure('timeout', 'timeout_read'),
  status(503),
  status(404),
] as const

for (const [method, sent, replayable, nonIdempotent, outcome] of requests) {
  const facts = [method, sent ? 'sent' : 'not sent', replayable ? '' : 'body gone'].filter(
    (word) => word !== '',
  )
  test(`${facts.join(', ')}${nonIdempotent ? ', non_idempotent' : ''}: ${outcome}, for every kind`, () => {
    const listed = policy(`${everything}${nonIdempotent ? ' non_idempotent' : ''}`)
    for (const event of kinds) {
      const verdict = classify(event, listed, { ...usual, method, sent, replayable })
      assert.equal(verdict.next ? 'next' : verdict.denial, outcome)
      // 404 apart, what is listed counts against the peer whether or not it goes on.
      assert.equal(verdict.failed, !(event.kind === 'status' && event.status === 404))
    }
  })
}

// What else forbids another attempt, and what is named where several do.
const limits = [
  // tries left, timeout, elapsed, budget has room, what comes of it
  [1, 0, 1e9, true, 'next'],
  [0, 0, 0, true, 'tries'],
  [1, 1000, 999, true, 'next'],
  [1, 1000, 1000, true, 'deadline'],
  [1, 0, 0, false, 'budget'],
  [1, 1000, 1000, false, 'deadline'],
  [0, 1000, 1000, false, 'tries'],
] as const

for (const [triesLeft, timeout, elapsedMs, room, outcome] of limits) {
  const facts = `${triesLeft} tries left, ${elapsedMs} of ${timeout || 'unlimited'} ms, budget ${room ? 'open' : 'spent'}`
  test(`${facts}: ${outcome}`, () => {
    for (const event of kinds) {
      const verdict = classify(event, policy(everything, { timeout }), {
        ...usual,
        triesLeft,
        elapsedMs,
        mayRetry: () => room,
      })
      assert.equal(verdict.next ? 'next' : verdict.denial, outcome)
    }
  })
}

test('asks the budget only where all else speaks for another attempt', () => {
  const unasked = { ...usual, mayRetry: () => assert.fail('the budget was asked') }
  classify(status(200), policy(everything), unasked)
  classify(status(503), policy('error'), unasked)
  classify(status(503), policy(everything), { ...unasked, triesLeft: 0 })
  classify(status(503), policy(everything), { ...unasked, method: 'POST' })
  classify(failure('stale', 'stale'), policy(everything), unasked)
  classify(failure('error', 'body_cut'), policy(everything), unasked)
})

test('a kind that is not listed is no denial', () => {
  assert.equal(classify(status(503), policy('error'), { ...usual, triesLeft: 0 }).denial, undefined)
  assert.equal(classify(failure('error', 'reset'), policy('timeout'), usual).denial, undefined)
})

// A kept connection that the peer had closed: who may be sent again, at no charge.
const reuses = [
  // method, sent, body still at hand, some of the answer came, non_idempotent, what comes of it
  ['GET', true, true, false, false, 'resend 502 stale'],
  ['PUT', true, true, false, false, 'resend 502 stale'],
  ['PUT', true, false, false, false, '502 stale (not_replayable)'],
  ['POST', true, true, false, false, '502 stale (not_replayable)'],
  ['POST', true, true, false, true, 'resend 502 stale'],
  ['POST', false, true, false, false, 'resend 502 stale'],
  ['GET', true, true, true, false, '502 stale (not_replayable)'],
] as const

for (const [method, sent, replayable, answered, nonIdempotent, outcome] of reuses) {
  const facts = [
    method,
    sent && 'sent',
    !replayable && 'body gone',
    answered && 'answered',
    nonIdempotent && 'non_idempotent',
  ]
  test(`a stale connection under ${facts.filter(Boolean).join(', ')}: ${outcome}`, () => {
    for (const words of ['off', 'error', everything]) {
      const listed = policy(`${words}${nonIdempotent ? ' non_idempotent' : ''}`)
      const spent = { triesLeft: 0, elapsedMs: 1e9, mayRetry: () => false }
      const verdict = classify(failure('stale', 'stale'), listed, {
        method,
        sent,
        replayable,
        answered,
        ...spent,
      })
      assert.equal(told(verdict), outcome)
    }
  })
}

test('what this machine could not even try does not count against the peer, and may go on', () => {
  const event: AttemptEvent = { kind: 'failure', ending: 'error', reason: 'unreachable', local: true }
  assert.equal(told(classify(event, policy('error'), usual)), 'next 502 unreachable')
  assert.equal(told(classify(event, policy('off'), usual)), '502 unreachable')
})
