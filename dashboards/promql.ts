/*
 * PromQL that cannot name what is not there. An expression knows which labels its series have: a metric or a label that
 * the table of metrics does not list, a grouping by a label that is gone, and an operation between series that would
 * not match are errors when the dashboards are built, not empty panels in the night.
 */

import { type MetricLabel, metricLabels, metricsTable } from '../feedback/metrics-table.ts'
import { foreignMetrics } from './process-metrics.ts'

/** Labels that the scrape gives to every series. A scrape may leave `namespace` out: then it is empty everywhere. */
const targetLabels = ['namespace', 'instance', 'job'] as const

/** A label of a metric, of its scrape, or the bound of a bucket. */
export type Label = MetricLabel | (typeof targetLabels)[number] | 'le'

/** What a label must be: a text, a pattern, a variable of the dashboard (`$peer`), or none of these. */
export type Wanted = string | RegExp | { readonly not: string | RegExp }
export type Matchers = { readonly [L in Label]?: Wanted }

/** How tightly operators bind; what has none binds tightest. */
const levels = {
  or: 1,
  and: 2,
  '>': 3,
  '<': 3,
  '>=': 3,
  '<=': 3,
  '==': 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
} as const
type Operator = keyof typeof levels

/** An instant vector with the labels that its series have, or a scalar, which has none. */
export class Expr {
  readonly text: string
  readonly labels: ReadonlySet<Label>
  /** The operator that was applied last; undefined: it is one term. */
  readonly operator: Operator | undefined

  constructor(text: string, labels: Iterable<Label>, operator?: Operator) {
    this.text = text
    this.labels = new Set(labels)
    this.operator = operator
  }

  /** As it stands before an operator. */
  before(operator: Operator): string {
    return this.#level >= levels[operator] ? this.text : `(${this.text})`
  }

  /** As it stands behind one: operators of one level are applied from left to right. */
  behind(operator: Operator): string {
    return this.#level > levels[operator] ? this.text : `(${this.text})`
  }

  get #level(): number {
    return this.operator === undefined ? 9 : levels[this.operator]
  }

  toString(): string {
    return this.text
  }
}

interface Known {
  readonly labels: readonly MetricLabel[]
  readonly histogram: boolean
}

const known = new Map<string, Known>([
  ...metricsTable.map(({ name, labels, type }): [string, Known] => [
    name,
    { labels, histogram: type === 'histogram' },
  ]),
  ...[...foreignMetrics.keys()].map((name): [string, Known] => [name, { labels: [], histogram: false }]),
])

const suffix = /_(?:bucket|sum|count)$/

/** Labels that the series of a metric have. @param name a histogram's with `_bucket`, `_sum` or `_count` */
export function labelsOf(name: string): readonly Label[] {
  const whole = known.get(name)
  const part = known.get(name.replace(suffix, ''))
  if (whole?.histogram) throw new Error(`${name} is a histogram: take _bucket, _sum or _count`)
  const metric = whole ?? (part?.histogram ? part : undefined)
  if (metric === undefined) throw new Error(`there is no metric ${name}`)
  return [
    ...targetLabels,
    ...metric.labels,
    ...(whole === undefined && name.endsWith('_bucket') ? ['le' as const] : []),
  ]
}

/** The series of a metric. */
export function series(name: string, matchers: Matchers = {}): Expr {
  return new Expr(name + matching(name, labelsOf(name), matchers), labelsOf(name))
}

/** The series that a recording rule makes, which has the labels that it groups by. */
export function recorded(name: string, labels: readonly Label[], matchers: Matchers = {}): Expr {
  return new Expr(name + matching(name, labels, matchers), labels)
}

function matching(name: string, labels: readonly Label[], matchers: Matchers): string {
  const parts = Object.entries(matchers).map(([label, wanted]) => {
    if (!labels.some((one) => one === label)) throw new Error(`${name} has no label ${label}`)
    return label + wantedText(wanted)
  })
  return parts.length > 0 ? `{${parts.join(',')}}` : ''
}

function wantedText(wanted: Wanted): string {
  if (typeof wanted === 'object' && 'not' in wanted) {
    const { not } = wanted
    return not instanceof RegExp ? `!~"${not.source}"` : `!="${not}"`
  }
  if (wanted instanceof RegExp) return `=~"${wanted.source}"`
  // Several values of a variable are one pattern.
  return wanted.startsWith('$') ? `=~"${wanted}"` : `="${wanted}"`
}

/** Grafana's own: long enough for a rate at the resolution that is shown. */
export const rateInterval = '$__rate_interval'

/** How fast a counter grows, a second. */
export function rate(counter: Expr, window = rateInterval): Expr {
  return new Expr(`rate(${counter.text}[${window}])`, counter.labels)
}

/** By how much a counter has grown. */
export function increase(counter: Expr, window: string): Expr {
  return new Expr(`increase(${counter.text}[${window}])`, counter.labels)
}

/** A gauge over a span of time. */
export function overTime(how: 'avg' | 'max' | 'min', gauge: Expr, window: string): Expr {
  return new Expr(`${how}_over_time(${gauge.text}[${window}])`, gauge.labels)
}

type Aggregation = 'sum' | 'avg' | 'max' | 'min' | 'count'

function aggregate(how: Aggregation, by: readonly Label[], of: Expr): Expr {
  for (const label of by) if (!of.labels.has(label)) throw new Error(`no label ${label} in ${of.text}`)
  return new Expr(by.length > 0 ? `${how} by (${by.join(', ')}) (${of.text})` : `${how}(${of.text})`, by)
}

export const sum = (by: readonly Label[], of: Expr): Expr => aggregate('sum', by, of)
export const avg = (by: readonly Label[], of: Expr): Expr => aggregate('avg', by, of)
export const max = (by: readonly Label[], of: Expr): Expr => aggregate('max', by, of)
export const min = (by: readonly Label[], of: Expr): Expr => aggregate('min', by, of)
export const count = (by: readonly Label[], of: Expr): Expr => aggregate('count', by, of)

function alike(a: Expr, b: Expr): void {
  if (a.labels.size !== b.labels.size || [...a.labels].some((label) => !b.labels.has(label))) {
    throw new Error(`series do not match: ${a.text} and ${b.text}`)
  }
}

/** An operation between series with the same labels. */
export function between(a: Expr, operator: '+' | '-' | '*' | '/', b: Expr): Expr {
  alike(a, b)
  return new Expr(`${a.before(operator)} ${operator} ${b.behind(operator)}`, a.labels, operator)
}

/** An operation with a number. */
export function scaled(a: Expr, operator: '+' | '-' | '*' | '/', by: number): Expr {
  return new Expr(`${a.before(operator)} ${operator} ${by}`, a.labels, operator)
}

/** A number minus the series. */
export function complement(of: Expr, from = 1): Expr {
  return new Expr(`${from} - ${of.behind('-')}`, of.labels, '-')
}

export function apply(name: 'sqrt' | 'abs', of: Expr): Expr {
  return new Expr(`${name}(${of.text})`, of.labels)
}

export function clampMin(of: Expr, least: number): Expr {
  return new Expr(`clamp_min(${of.text}, ${least})`, of.labels)
}

/** Only the series whose value is so. Those that are not a number are never so. */
export function where(of: Expr, comparison: `${'>' | '<' | '>=' | '<=' | '=='} ${number}`): Expr {
  return new Expr(`${of.before('>')} ${comparison}`, of.labels, '>')
}

/** 0 where there is no series. @param like series that are there whenever it could be */
function orZero(of: Expr, like: Expr): Expr {
  alike(of, like)
  return either(of, scaled(like, '*', 0))
}

/** 0 where there is nothing at all. */
export function orNothing(of: Expr): Expr {
  if (of.labels.size > 0) throw new Error(`vector(0) has no labels, but there are some in ${of.text}`)
  return either(of, new Expr('vector(0)', []))
}

/** Series of both, those of the first where both have them. */
export function either(a: Expr, b: Expr): Expr {
  alike(a, b)
  return new Expr(`${a.before('or')} or ${b.behind('or')}`, a.labels, 'or')
}

/** Only where the other has a series with the same of these labels. */
export function also(a: Expr, on: readonly Label[], b: Expr): Expr {
  for (const label of on) {
    if (!a.labels.has(label) || !b.labels.has(label)) throw new Error(`no label ${label} on both sides`)
  }
  return new Expr(`${a.before('and')} and on (${on.join(', ')}) ${b.behind('and')}`, a.labels, 'and')
}

/**
 * A part of a whole, 0 where nothing of it was counted. Where the whole is 0 there is no series: neither 0 nor NaN
 * would be true of no traffic.
 */
export function ratio(part: Expr, whole: Expr): Expr {
  return between(orZero(part, whole), '/', where(whole, '> 0'))
}

/** An average: the one divided by the other, with no series where there is nothing to divide by. */
export function mean(total: Expr, number: Expr): Expr {
  return between(total, '/', where(number, '> 0'))
}

/** An operation with what is known of fewer labels, as a peer's rate with that of its group. */
export function against(a: Expr, operator: '+' | '-' | '/' | '>' | '<', b: Expr): Expr {
  const on = [...b.labels]
  for (const label of on) if (!a.labels.has(label)) throw new Error(`no label ${label} in ${a.text}`)
  const matching = on.length > 0 ? `on (${on.join(', ')}) group_left ()` : 'on () group_left ()'
  return new Expr(`${a.before(operator)} ${operator} ${matching} ${b.behind(operator)}`, a.labels, operator)
}

/** The share of each in what the group has in all. */
export function shareOf(part: Expr, whole: Expr): Expr {
  return against(part, '/', where(whole, '> 0'))
}

/** A quantile out of the rates of buckets; no series where nothing was counted. */
export function quantile(q: number, buckets: Expr): Expr {
  if (!buckets.labels.has('le')) throw new Error(`no buckets: ${buckets.text}`)
  const labels = [...buckets.labels].filter((label) => label !== 'le')
  // Without counts the quantile is NaN, which is not 0 or more.
  return where(new Expr(`histogram_quantile(${q}, ${buckets.text})`, labels), '>= 0')
}

const labelWords = new Set<string>([...metricLabels, ...targetLabels, 'le'])

/** Text of a legend, `{{upstream}} {{peer}}`, whose labels the series must have. */
export function legendOf(text: string, of: Expr): string {
  for (const [, label = ''] of text.matchAll(/\{\{\s*(\w+)\s*\}\}/g)) {
    if (!labelWords.has(label) || ![...of.labels].some((one) => one === label)) {
      throw new Error(`no label ${label} for the legend of ${of.text}`)
    }
  }
  return text
}
