import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newsOf, type ProbeRecord, readRecord, trustedFor } from '../../probes/record.ts'

function record(seq: number, streak: number, more: Partial<ProbeRecord> = {}): ProbeRecord {
  const fails = streak < 0 ? -streak : 0
  const at = 1000 * seq
  return {
    seq,
    fails,
    streak,
    before: 0,
    at,
    tookMs: 1,
    by: 'i',
    job: 'j',
    detail: '',
    orders: undefined,
    ...more,
  }
}

test('the first record that is heard is one result, with all that its streaks say', () => {
  const first = record(9, 1, { before: -4, fails: 6 })
  assert.deepEqual(newsOf(first, undefined, false), { results: 1, failures: 0, streaks: [-4, 1] })
})

test('a record is counted once, however often it comes', () => {
  const known = record(5, 2)
  assert.equal(newsOf(record(5, 2), known, true), undefined)
  assert.equal(newsOf(record(5, 2), known, false), undefined)
  assert.equal(newsOf(record(4, 1), known, true), undefined)
})

test('results that came in between are counted with it', () => {
  const known = record(5, 2, { fails: 1 })
  const news = newsOf(record(9, -1, { fails: 3, before: 1 }), known, true)
  assert.deepEqual(news, { results: 4, failures: 2, streaks: [1, -1] })
})

test('a streak that was heard is not judged again when it has ended', () => {
  const known = record(5, -2, { fails: 2 })
  assert.deepEqual(newsOf(record(6, 1, { fails: 2, before: -2 }), known, true)?.streaks, [1])
  assert.deepEqual(newsOf(record(8, 1, { fails: 4, before: -4 }), known, true)?.streaks, [-4, 1])
})

test('a record that was begun anew counts as one result', () => {
  const known = record(50, 2, { fails: 7 })
  assert.deepEqual(newsOf(record(1, -1, { at: 90_000 }), known, true), {
    results: 1,
    failures: 1,
    streaks: [-1],
  })
  assert.deepEqual(newsOf(record(1, -1), known, false)?.results, 1)
})

test('what is no record is none', () => {
  for (const text of ['', 'x', '1 0 1 0 5', '\n\n\n', '0 0 0 0 0 0 - -\n- - 0 0 0 0\n""\nnull']) {
    assert.equal(readRecord(text), undefined)
  }
  const text = (orders: string) => `1 0 1 0 5.5 2 me job\n- - 0 0 0 0\n"seen"\n${orders}`
  assert.equal(readRecord(text('null'))?.detail, 'seen')
  for (const odd of [
    '{',
    '[]',
    '7',
    '{"weight":"x","administrative":"other","maxConns":-1}',
    '{"__proto__":1}',
  ]) {
    assert.equal(readRecord(text(odd))?.orders, undefined, odd)
  }
})

test('results are trusted for three intervals, and for ten seconds', () => {
  assert.deepEqual([100, 5000].map(trustedFor), [10_000, 15_000])
})
