import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  drawSpanId,
  readTraceContext,
  traceContext,
  traceparent,
  traceState,
} from '../../../sidecar/telemetry/trace-context.ts'
import { fc } from '../../support/property.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const parent = `00-${traceId}-${spanId}-01`

/** What is read of these header lines. */
const read = (...lines: readonly [name: string, value: string][]) => readTraceContext(lines.flat())

test('a request says which trace and which span it comes from', () => {
  const found = read(['Host', 'a'], ['TraceParent', parent], ['tracestate', 'a=1'], ['Accept', '*/*'])
  assert.deepEqual(found, { traceId, spanId, flags: 1, state: 'a=1' })
  assert.deepEqual(read(['Host', 'a']), undefined)
})

test('what is no traceparent to the letter is none', () => {
  const bad: Readonly<Record<string, string>> = {
    empty: '',
    'a forbidden version': parent.replace(/^00/, 'ff'),
    'a trace of zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
    'a span of zeros': `00-${traceId}-${'0'.repeat(16)}-01`,
    'capital digits': parent.toUpperCase(),
    'other characters': parent.replace('0af', '0xf'),
    'too short a trace': parent.replace('0af', 'af'),
    'too long a span': parent.replace('-b7', '-0b7'),
    'no flags': parent.slice(0, 52),
    'half a flag': parent.slice(0, 54),
    'more than version 00 has': `${parent}-more`,
    'a hyphen behind it': `${parent}-`,
    'a blank before it': ` ${parent}`,
    'a list of two': `${parent},${parent}`,
    'a line end behind it': `${parent}\n`,
    'other separators': parent.replaceAll('-', '_'),
  }
  for (const [what, text] of Object.entries(bad)) assert.equal(traceContext(text, undefined), undefined, what)
})

test('a later version is read as far as it is known', () => {
  assert.deepEqual(traceContext(`cc-${traceId}-${spanId}-01`, undefined)?.spanId, spanId)
  assert.deepEqual(traceContext(`01-${traceId}-${spanId}-09-what-is-new`, undefined)?.flags, 9)
  assert.equal(traceContext(`01-${traceId}-${spanId}-01.more`, undefined), undefined)
  assert.equal(traceContext(`01-${traceId}-${spanId}-0123`, undefined), undefined)
})

test('of two traceparents none is believed, be they the same', () => {
  assert.equal(read(['traceparent', parent], ['Traceparent', parent]), undefined)
  assert.equal(read(['traceparent', parent], ['traceparent', 'nonsense']), undefined)
})

test('the lines of a tracestate are one list', () => {
  const found = read(['tracestate', 'a=1, b=2'], ['traceparent', parent], ['TraceState', '\tc@v=3 ,'])
  assert.equal(found?.state, 'a=1,b=2,c@v=3')
})

test('a tracestate goes with its traceparent, and a bad one leaves the traceparent alone', () => {
  assert.equal(read(['tracestate', 'a=1'], ['traceparent', 'nonsense']), undefined)
  assert.deepEqual(read(['traceparent', parent], ['tracestate', 'A=1']), {
    traceId,
    spanId,
    flags: 1,
    state: '',
  })
})

test('a tracestate has 32 members at most, each well-formed and each but once', () => {
  const members = (count: number) => Array.from({ length: count }, (_, i) => `k${i}=v`).join(',')
  assert.equal(traceState(members(32)), members(32))
  assert.equal(traceState(members(33)), undefined)
  assert.equal(traceState(''), '')
  assert.equal(traceState(',, ,'), '')
  assert.equal(traceState('a=1,a=2'), undefined)
  const good = ['a= x', '1a@b=c', 'a-_*/0=!~', `${'k'.repeat(256)}=v`, `a=${'v'.repeat(256)}`]
  for (const text of good) assert.equal(traceState(text), text)
  const bad = ['a', 'a=', '=1', '1a=1', 'a=b=c', 'a=é', 'a=b\x7f', 'a@b@c=1', `${'k'.repeat(257)}=v`, 'a b=1']
  for (const text of bad) assert.equal(traceState(text), undefined, text)
  assert.equal(traceState(`a=${'v'.repeat(257)}`), undefined)
})

test('flags that are not known are not passed on', () => {
  assert.equal(traceparent(traceId, spanId, 0xff), `00-${traceId}-${spanId}-03`)
  assert.equal(traceparent(traceId, spanId, 0), `00-${traceId}-${spanId}-00`)
})

test('every traceparent that is written is read again', () => {
  const hex = (length: number) =>
    fc
      .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
      .map((digits) => digits.join(''))
      .filter((text) => !/^0+$/.test(text))
  fc.assert(
    fc.property(hex(32), hex(16), fc.integer({ min: 0, max: 3 }), (trace, span, flags) => {
      const found = traceContext(traceparent(trace, span, flags), undefined)
      assert.deepEqual(found, { traceId: trace, spanId: span, flags, state: '' })
    }),
  )
})

test('whatever comes, what is read is well-formed, and reading it again gives the same', () => {
  const near = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 70 }),
    fc.tuple(fc.nat(54), fc.string({ maxLength: 2 })).map(([at, text]) => {
      return parent.slice(0, at) + text + parent.slice(at + text.length)
    }),
  )
  const states = fc.string({ unit: fc.constantFrom(...'ab=,@ 1A\t*'), maxLength: 40 })
  fc.assert(
    fc.property(near, states, (text, state) => {
      const found = read(['traceparent', text], ['tracestate', state])
      if (found === undefined) return
      assert.match(found.traceId, /^(?!0{32})[0-9a-f]{32}$/)
      assert.match(found.spanId, /^(?!0{16})[0-9a-f]{16}$/)
      assert.ok(found.flags >= 0 && found.flags <= 255)
      assert.equal(traceState(found.state), found.state)
      assert.doesNotMatch(found.state, /[\r\n\0]/)
    }),
    { numRuns: 2000 },
  )
})

test('ids of spans differ', () => {
  const ids = Array.from({ length: 1000 }, drawSpanId)
  assert.equal(new Set(ids).size, 1000)
  for (const id of ids) assert.match(id, /^[0-9a-f]{16}$/)
})

test('a long row of blanks within a member is looked at once', () => {
  const began = performance.now()
  // Looked at again from each blank on it takes seconds.
  assert.equal(traceState(`a=${' '.repeat(60_000)}x`), undefined)
  assert.ok(performance.now() - began < 500)
  assert.equal(traceState(' \t a=1 \t, \t b=2\t'), 'a=1,b=2')
})
