import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Call } from '../../feedback/call.ts'
import { type LoadReport, loadReport, loadReportFields, parseReport } from '../../feedback/orca.ts'
import { Attempt } from '../../feedback/outcome.ts'
import { signalReasons } from '../../feedback/reasons.ts'
import { Variables } from '../../feedback/variables.ts'
import { orcaMessage } from '../support/orca.ts'
import { group } from '../support/peers.ts'
import { fc } from '../support/property.ts'

/** What is read of fields, for people: `name=value` in turn, or the reason. */
function said(...fields: readonly string[]): string {
  const found = parseReport(fields)
  if (found === undefined || typeof found === 'string') return found ?? 'none'
  return Array.from(found, ([name, value]) => `${name}=${value}`).join(' ')
}

const text = (value: string) => said('endpoint-load-metrics', value)
const json = (value: string) => said('endpoint-load-metrics', `JSON ${value}`)

test('reads a text, with or without its word, in one line or several', () => {
  const all = 'cpu_utilization=0.3 mem_utilization=0.8 rps_fractional=10 eps=1 named_metrics.queue=4'
  const line = 'cpu_utilization=0.3, mem_utilization=0.8,rps_fractional=10.0 ,eps=1, named_metrics.queue=4'
  assert.equal(text(`TEXT ${line}`), all)
  assert.equal(text(line), all)
  assert.equal(text(`text   ${line}, ,`), all)
  const name = 'Endpoint-Load-Metrics'
  assert.equal(
    said(name, 'TEXT cpu_utilization=0.3, eps=1', 'X', 'y', name, 'rps=2'),
    'cpu_utilization=0.3 eps=1 rps=2',
  )
  assert.equal(said(name, 'TEXT cpu_utilization=0.3', name, 'TEXT eps=1'), 'cpu_utilization=0.3 eps=1')
  assert.equal(text('TEXT cpu_utilization=0.3, TEXT eps=1'), 'cpu_utilization=0.3 eps=1')
})

test('reads every number that a report may have, with an equals sign or a colon', () => {
  assert.equal(
    text('application_utilization:1.5,utilization.disk:0.25,request_cost.db:-2,named_metrics.a.b:-1e3'),
    'application_utilization=1.5 utilization.disk=0.25 request_cost.db=-2 named_metrics.a.b=-1000',
  )
})

test('names of their own may be escaped', () => {
  assert.equal(
    text('named_metrics.a%2Cb%3D=1, named_metrics.50%=2'),
    'named_metrics.a,b==1 named_metrics.50%=2',
  )
})

test('reads JSON in either spelling, numbers as strings too', () => {
  assert.equal(
    json('{"cpu_utilization":0.3,"namedMetrics":{"q":"4"},"rpsFractional":1e1,"eps":null}'),
    'cpu_utilization=0.3 named_metrics.q=4 rps_fractional=10',
  )
  assert.equal(said('endpoint-load-metrics-json', '{"mem_utilization":1}'), 'mem_utilization=1')
  assert.equal(json('{}'), '')
  assert.equal(
    json('{"named_metrics":{"__proto__":1,"a:b\\"}{":2}}'),
    'named_metrics.__proto__=1 named_metrics.a:b"}{=2',
  )
})

test('reads the binary form, padded or not, whatever fields a later version adds', () => {
  const message = orcaMessage({
    cpu_utilization: 0.3,
    rps: 300,
    application_utilization: 1.25,
    named_metrics: { queue: 4 },
    utilization: { disk: 0.5 },
    request_cost: { db: -1 },
  })
  const all =
    'cpu_utilization=0.3 rps=300 application_utilization=1.25 named_metrics.queue=4 utilization.disk=0.5 request_cost.db=-1'
  const base64 = message.toString('base64')
  assert.equal(said('endpoint-load-metrics-bin', base64), all)
  assert.equal(text(`BIN ${base64.replace(/=+$/, '')}`), all)
  // Field 20 with a varint, 21 with eight bytes, 22 with bytes, 23 with four.
  const later = Buffer.from([160, 1, 5, 169, 1, 0, 0, 0, 0, 0, 0, 0, 0, 178, 1, 1, 7, 189, 1, 0, 0, 0, 0])
  assert.equal(text(`BIN ${Buffer.concat([message, later]).toString('base64')}`), all)
  assert.equal(said('endpoint-load-metrics-bin', ''), '')
})

test('of a number that stands twice in the binary form the last counts', () => {
  const twice = Buffer.concat([
    orcaMessage({ eps: 1, named_metrics: { a: 1 } }),
    orcaMessage({ eps: 2, named_metrics: { a: 3 } }),
  ])
  assert.equal(text(`BIN ${twice.toString('base64')}`), 'eps=2 named_metrics.a=3')
})

test('the older names of the field are known', () => {
  assert.equal(said('X-Endpoint-Load-Metrics', 'eps=1'), 'eps=1')
  assert.equal(said('x-endpoint-load-metrics-json', '{"eps":1}'), 'eps=1')
  assert.equal(said('x-endpoint-load-metrics-bin', orcaMessage({ eps: 1 }).toString('base64')), 'eps=1')
})

test('there is none where no field carries one', () => {
  assert.equal(parseReport(undefined), undefined)
  assert.equal(said('Content-Type', 'text/plain', 'endpoint-load-metrics-format', 'TEXT'), 'none')
})

const refused: readonly (readonly [string, string, readonly string[]])[] = [
  ['a name without a value', 'malformed', ['endpoint-load-metrics', 'cpu_utilization=']],
  ['a value without a name', 'malformed', ['endpoint-load-metrics', '=1']],
  ['no value at all', 'malformed', ['endpoint-load-metrics', 'cpu_utilization']],
  ['an own name that is empty', 'malformed', ['endpoint-load-metrics', 'named_metrics.=1']],
  ['a word for a number', 'not_a_number', ['endpoint-load-metrics', 'cpu_utilization=high']],
  ['NaN', 'not_a_number', ['endpoint-load-metrics', 'cpu_utilization=NaN']],
  ['two equals signs', 'not_a_number', ['endpoint-load-metrics', 'cpu_utilization=1=2']],
  ['hexadecimal', 'not_a_number', ['endpoint-load-metrics', 'cpu_utilization=0x10']],
  ['Infinity', 'infinite', ['endpoint-load-metrics', 'eps=Infinity']],
  ['-inf', 'infinite', ['endpoint-load-metrics', 'named_metrics.a=-inf']],
  ['beyond what a double holds', 'infinite', ['endpoint-load-metrics', 'eps=1e309']],
  ['less than nothing', 'negative', ['endpoint-load-metrics', 'cpu_utilization=-0.1']],
  ['a part that is less than nothing', 'negative', ['endpoint-load-metrics', 'utilization.disk=-1']],
  ['a number twice', 'duplicate', ['endpoint-load-metrics', 'eps=1,eps=1']],
  [
    'an own number twice, escaped',
    'duplicate',
    ['endpoint-load-metrics', 'named_metrics.a=1,named_metrics.%61=1'],
  ],
  ['an unknown number', 'unknown_field', ['endpoint-load-metrics', 'cpu=1']],
  ['an unknown group', 'unknown_field', ['endpoint-load-metrics', 'metrics.a=1']],
  ['two fields', 'duplicate', ['endpoint-load-metrics', 'eps=1', 'endpoint-load-metrics-bin', '']],
  [
    'an old and a new field',
    'duplicate',
    ['x-endpoint-load-metrics', 'eps=1', 'endpoint-load-metrics', 'eps=1'],
  ],
  [
    'two lines of JSON',
    'duplicate',
    ['endpoint-load-metrics', 'JSON {}', 'endpoint-load-metrics', 'JSON {}'],
  ],
  [
    'two lines of the binary form',
    'duplicate',
    ['endpoint-load-metrics-bin', '', 'endpoint-load-metrics-bin', ''],
  ],
  ['more than 8192 characters', 'too_long', ['endpoint-load-metrics', `eps=${'0'.repeat(8192)}`]],
  ['JSON that is none', 'malformed', ['endpoint-load-metrics', 'JSON {"eps":1']],
  ['JSON that is no object', 'malformed', ['endpoint-load-metrics', 'JSON [1]']],
  ['JSON with a number for a group', 'malformed', ['endpoint-load-metrics', 'JSON {"named_metrics":1}']],
  ['JSON with an object for a number', 'not_a_number', ['endpoint-load-metrics', 'JSON {"eps":{}}']],
  ['JSON with a name twice', 'duplicate', ['endpoint-load-metrics', 'JSON {"eps":1,"eps":2}']],
  [
    'JSON with a name in both spellings',
    'duplicate',
    ['endpoint-load-metrics', 'JSON {"rps_fractional":1,"rpsFractional":2}'],
  ],
  [
    'JSON with an own name twice',
    'duplicate',
    ['endpoint-load-metrics', 'JSON {"named_metrics":{"a":1,"a":2}}'],
  ],
  ['JSON with an unknown number', 'unknown_field', ['endpoint-load-metrics', 'JSON {"toString":1}']],
  ['JSON with an infinite number', 'infinite', ['endpoint-load-metrics', 'JSON {"eps":1e999}']],
  ['what is no base64', 'malformed', ['endpoint-load-metrics-bin', '****']],
  ['base64 of a length there is not', 'malformed', ['endpoint-load-metrics-bin', 'AAAAA']],
  [
    'a message cut off',
    'malformed',
    ['endpoint-load-metrics-bin', orcaMessage({ eps: 1 }).subarray(0, 5).toString('base64')],
  ],
  [
    'a message with a field of number 0',
    'malformed',
    ['endpoint-load-metrics-bin', Buffer.from([0, 0]).toString('base64')],
  ],
  [
    'a message with the wrong kind of field',
    'malformed',
    ['endpoint-load-metrics-bin', Buffer.from([8, 1]).toString('base64')],
  ],
  [
    'a message with a group',
    'malformed',
    ['endpoint-load-metrics-bin', Buffer.from([163, 1]).toString('base64')],
  ],
  [
    'a binary NaN',
    'not_a_number',
    ['endpoint-load-metrics-bin', orcaMessage({ eps: Number.NaN }).toString('base64')],
  ],
  [
    'a binary infinity',
    'infinite',
    ['endpoint-load-metrics-bin', orcaMessage({ eps: Number.POSITIVE_INFINITY }).toString('base64')],
  ],
  [
    'a binary number below 0',
    'negative',
    ['endpoint-load-metrics-bin', orcaMessage({ eps: -1 }).toString('base64')],
  ],
]
for (const [what, reason, fields] of refused) {
  test(`does not take ${what}: ${reason}`, () => {
    assert.equal(said(...fields), reason)
  })
}

test('whatever stands in the fields, the outcome is finite numbers or a reason', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary-ascii', maxLength: 60 }),
    fc.stringMatching(/^(TEXT |JSON |BIN )?[a-z_.=:,{}"0-9eE+-]*$/),
    fc.json().map((text) => `JSON ${text}`),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => `BIN ${Buffer.from(bytes).toString('base64')}`),
    fc.constantFrom('TEXT', 'JSON', 'BIN', 'JSON null', 'TEXT =', `JSON ${'['.repeat(4000)}`),
  )
  const name = fc.constantFrom(...loadReportFields, 'x-other')
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 3 }), (fields) => {
      const found = parseReport(fields.flat())
      if (found === undefined) assert.ok(fields.every(([field]) => field === 'x-other'))
      else if (typeof found === 'string') assert.ok(signalReasons.includes(found), found)
      else for (const number of found.values()) assert.ok(Number.isFinite(number))
    }),
    { numRuns: 2000 },
  )
})

const finite = fc.double({ noNaN: true, noDefaultInfinity: true })
const amount = finite.map((value) => Math.abs(value))
const own = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_.-]{0,12}$/), finite, { maxKeys: 4 })
const parts = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/), amount, { maxKeys: 3 })

test('the three forms of a report are read alike', () => {
  const report = fc.record(
    { cpu_utilization: amount, eps: amount, rps_fractional: amount, named_metrics: own, utilization: parts },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(report, (written) => {
      const numbers = Object.entries(written).flatMap(([name, value]): [string, number][] =>
        typeof value === 'object'
          ? Object.entries(value).map(([key, one]) => [`${name}.${key}`, one])
          : [[name, value]],
      )
      // A text of no pairs is no report.
      fc.pre(numbers.length > 0)
      const line = numbers.map(([name, value]) => `${name}=${value}`).join(', ')
      const forms = [
        ['endpoint-load-metrics', `TEXT ${line}`],
        ['endpoint-load-metrics', `JSON ${JSON.stringify(written)}`],
        ['endpoint-load-metrics-bin', orcaMessage(written).toString('base64')],
      ]
      for (const fields of forms) {
        const found = parseReport(fields)
        assert.ok(found instanceof Map, String(found))
        // JSON writes -0 as 0.
        assert.deepEqual(sorted(found), sorted(new Map(numbers)))
      }
    }),
  )
})

function sorted(report: LoadReport): [string, number][] {
  return Array.from(report, ([name, value]): [string, number] => [name, value + 0]).sort(([a], [b]) =>
    a < b ? -1 : 1,
  )
}

/** An attempt with an answer, and a call that it is the last one of. */
function answered(headers: readonly string[], trailers?: readonly string[]) {
  const upstream = group([1])
  const attempt = new Attempt(upstream, upstream.peers[0], 0, '')
  attempt.headers = headers
  attempt.trailers = trailers
  const call = new Call()
  call.attempts.push(new Attempt(upstream, upstream.peers[0], 0, ''), attempt)
  return { attempt, call }
}

test('the report of an attempt is read once, and again when trailers come', () => {
  const { attempt } = answered(['endpoint-load-metrics', 'eps=1'])
  const first = loadReport(attempt)
  assert.equal(loadReport(attempt), first)
  attempt.trailers = ['x-other', '1']
  assert.equal(loadReport(attempt), first)
  attempt.trailers = ['endpoint-load-metrics', 'eps=2']
  assert.deepEqual([...(loadReport(attempt) as LoadReport)], [['eps', 2]])
  attempt.trailers = ['endpoint-load-metrics', 'eps=x']
  assert.equal(loadReport(attempt), 'not_a_number')
})

test('there is no report of an attempt that was not answered', () => {
  const { attempt } = answered([])
  attempt.headers = undefined
  assert.equal(loadReport(attempt), undefined)
})

test('variables tell the numbers of the last attempt', () => {
  const line =
    'cpu_utilization=0.5,mem_utilization=0,application_utilization=2,rps=7,eps=0.25,named_metrics.KV-cache.use=3,utilization.disk=1,request_cost.db=9'
  const { call } = answered(['endpoint-load-metrics', line])
  const read = (text: string) => new Variables().compile(text)(call)
  assert.equal(
    read('$orca_cpu_utilization $orca_mem_utilization $orca_application_utilization $orca_rps $orca_eps'),
    '0.5 0 2 7 0.25',
  )
  assert.equal(read('$orca_named_kv_cache_use $orca_utilization_DISK $orca_request_cost_db'), '3 1 9')
  assert.equal(read('[$orca_named_other$orca_utilization_use]'), '[]')
  assert.throws(() => read('$orca_load'), { message: 'unknown "orca_load" variable' })
})

test('variables are empty where there is no report, or none that was taken', () => {
  for (const headers of [[], ['endpoint-load-metrics', 'cpu_utilization=0.5,eps=-1']]) {
    const { call } = answered(headers)
    assert.equal(new Variables().compile('$orca_cpu_utilization$orca_named_a')(call), '')
  }
  assert.equal(new Variables().compile('$orca_cpu_utilization')(new Call()), '')
})

test('rps is the fraction where the report has both', () => {
  const { call } = answered(['endpoint-load-metrics', 'rps=7,rps_fractional=7.25'])
  assert.equal(new Variables().compile('$orca_rps')(call), '7.25')
})
