import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { foreignMetrics } from '../../dashboards/process-metrics.ts'
import { rate, recorded, series, sum } from '../../dashboards/promql.ts'
import { recordingRules } from '../../dashboards/recording.ts'
import { metricLabels, metricsTable } from '../../feedback/metrics-table.ts'
import { scrape } from '../../sidecar/admin/metrics.ts'
import { facts } from '../sidecar/admin/facts.ts'
import { allExpressions } from '../support/expressions.ts'

const words = new Set(['by', 'on', 'group_left', 'or', 'and', 'unless', 'sum', 'avg', 'max', 'min', 'count'])

/** Names of series and of labels in an expression, found without the help of what built it. */
function namesIn(expr: string): { readonly metrics: string[]; readonly labels: string[] } {
  const bare = expr.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '')
  const labels = [
    ...bare.matchAll(/\{([^}]*)\}/g),
    ...bare.matchAll(/\b(?:by|on|group_left) \(([^)]*)\)/g),
  ].flatMap(([, inner = '']) => [...inner.matchAll(/[a-z_]\w*/gi)].map(([label]) => label))
  const rest = bare
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\b(by|on|group_left) \([^)]*\)/g, '$1 ')
    // Functions.
    .replaceAll(/\b[a-z_]+ ?\(/g, '(')
  const metrics = [...rest.matchAll(/[a-z_:][\w:]*/gi)].map(([name]) => name)
  return { metrics: metrics.filter((name) => !words.has(name)), labels }
}

const table = new Map(metricsTable.map(({ name, type }) => [name, type]))
const rules = new Set(recordingRules.map(({ record }) => record))

function known(name: string): boolean {
  if (rules.has(name) || foreignMetrics.has(name)) return true
  const type = table.get(name)
  if (type !== undefined) return type !== 'histogram'
  return table.get(name.replace(/_(?:bucket|sum|count)$/, '')) === 'histogram'
}

test('names are found in an expression', () => {
  assert.deepEqual(
    namesIn(
      'sum by (peer, le) (rate(a_total{x=~"$b",c="d e"}[5m])) / on (u) group_left () (r:s:t > 0) or vector(0)',
    ),
    { metrics: ['a_total', 'r:s:t'], labels: ['x', 'c', 'peer', 'le', 'u'] },
  )
})

test('every name in dashboards, rules and alerts is one of the table, of a rule, or listed', () => {
  const labels = new Set<string>([...metricLabels, 'namespace', 'instance', 'job', 'le'])
  const expressions = allExpressions()
  assert.ok(expressions.length > 200)
  for (const [where, expr] of expressions) {
    const names = namesIn(expr)
    assert.ok(names.metrics.length > 0, where)
    for (const name of names.metrics) assert.ok(known(name), `${where}: ${name}`)
    for (const label of names.labels) assert.ok(labels.has(label), `${where}: label ${label}`)
  }
})

test('metrics of the process that are used are on the page', async () => {
  // The monitor of the event loop begins with the first scrape and has seen something at a later one.
  let page = ''
  for (let i = 0; i < 200 && !/^nodejs_eventloop_lag_p99_seconds \d/m.test(page); i++) {
    page = await scrape(facts(), 'text')
    await sleep(10)
  }
  for (const [name, { type }] of foreignMetrics) {
    if (name === 'up') continue
    assert.match(page, new RegExp(`^# TYPE ${name} ${type}$`, 'm'))
    assert.match(page, new RegExp(`^${name} \\d`, 'm'))
  }
})

test('what is measured is shown somewhere, but for what is listed here', () => {
  const shown = new Set(allExpressions().flatMap(([, expr]) => namesIn(expr).metrics))
  const unused = [...table.keys(), ...foreignMetrics.keys()].filter(
    (name) => !['', '_bucket', '_sum', '_count'].some((suffix) => shown.has(name + suffix)),
  )
  assert.deepEqual(unused, [])
})

test('a name, a label or a grouping that is not there is refused when dashboards are built', () => {
  assert.throws(() => series('evenkeel_peer_attempt_total'), /there is no metric evenkeel_peer_attempt_total/)
  assert.throws(() => series('evenkeel_peer_header_seconds'), /take _bucket, _sum or _count/)
  assert.throws(() => series('evenkeel_peer_attempts_total_sum'), /there is no metric/)
  assert.throws(() => series('evenkeel_peer_attempts_total', { code: '200' }), /has no label code/)
  const attempts = series('evenkeel_upstream_attempts_total')
  assert.throws(() => sum(['peer'], rate(attempts)), /no label peer in rate\(/)
  assert.throws(() => recorded('a:b:c', ['peer'], { reason: 'reset' }), /has no label reason/)
  assert.equal(
    sum(['upstream'], rate(series('evenkeel_upstream_attempts_total', { upstream: '$upstream' }))).text,
    'sum by (upstream) (rate(evenkeel_upstream_attempts_total{upstream=~"$upstream"}[$__rate_interval]))',
  )
})
