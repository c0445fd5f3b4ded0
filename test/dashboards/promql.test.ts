import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  against,
  also,
  between,
  complement,
  count,
  type Expr,
  either,
  legendOf,
  orNothing,
  quantile,
  rate,
  ratio,
  recorded,
  scaled,
  series,
  sum,
  where,
} from '../../dashboards/promql.ts'

const a = recorded('a', ['upstream', 'peer'])
const b = recorded('b', ['upstream', 'peer'])
const whole = recorded('w', ['upstream'])

const text = (expr: Expr) => expr.text

test('brackets stand where operators would bind otherwise, and nowhere else', () => {
  assert.equal(text(between(scaled(a, '+', 1), '*', b)), '(a + 1) * b')
  assert.equal(text(scaled(between(a, '*', b), '+', 1)), 'a * b + 1')
  assert.equal(text(between(a, '-', between(b, '-', a))), 'a - (b - a)')
  assert.equal(text(between(between(a, '-', b), '-', a)), 'a - b - a')
  assert.equal(text(complement(scaled(a, '+', 1))), '1 - (a + 1)')
  assert.equal(text(scaled(either(a, b), '*', 0)), '(a or b) * 0')
  assert.equal(text(either(scaled(a, '*', 2), b)), 'a * 2 or b')
  assert.equal(text(where(between(a, '/', b), '> 1')), 'a / b > 1')
  assert.equal(text(between(a, '/', where(b, '> 0'))), 'a / (b > 0)')
  assert.equal(text(also(where(a, '> 1'), ['peer'], where(b, '< 2'))), 'a > 1 and on (peer) b < 2')
})

test('a part of a whole is 0 where it has no series, and is none where there is no whole', () => {
  assert.equal(text(ratio(a, b)), '(a or b * 0) / (b > 0)')
})

test('what is known of a group is set against each of its peers', () => {
  assert.equal(text(against(a, '/', whole)), 'a / on (upstream) group_left () w')
  assert.throws(() => against(whole, '/', a), /no label peer in w/)
})

test('series that would not match are refused', () => {
  assert.throws(() => between(a, '/', whole), /series do not match: a and w/)
  assert.throws(() => also(a, ['track'], b), /no label track/)
  assert.throws(() => orNothing(a), /vector\(0\) has no labels/)
  assert.equal(text(orNothing(count([], a))), 'count(a) or vector(0)')
  assert.throws(() => legendOf('{{reason}}', a), /no label reason for the legend of a/)
  assert.equal(legendOf('{{upstream}} {{peer}}', a), '{{upstream}} {{peer}}')
})

test('a quantile of nothing is no series, since NaN is not 0 or more', () => {
  const buckets = series('evenkeel_upstream_request_seconds_bucket', { track: 'stable' })
  assert.equal(
    text(quantile(0.9, sum(['upstream', 'le'], rate(buckets, '5m')))),
    'histogram_quantile(0.9, sum by (upstream, le) (rate(evenkeel_upstream_request_seconds_bucket{track="stable"}[5m]))) >= 0',
  )
  assert.throws(() => quantile(0.9, a), /no buckets: a/)
})

test('labels are matched by text, by pattern, by variable, or by what they are not', () => {
  const labels = { code: /5../, track: { not: 'stable' }, upstream: '$upstream' }
  assert.equal(
    text(series('evenkeel_upstream_responses_total', labels)),
    'evenkeel_upstream_responses_total{code=~"5..",track!="stable",upstream=~"$upstream"}',
  )
})
