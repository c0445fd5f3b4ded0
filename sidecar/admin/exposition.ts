import type { Exemplar } from '../../feedback/exemplar.ts'

/** The text forms that Prometheus reads. */
export const formats = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  open: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const

export type FormatName = keyof typeof formats

/**
 * Which form a scraper asks for: OpenMetrics where it is named and liked at least as well as plain text.
 * @param accept the Accept header; undefined where absent
 */
export function negotiate(accept: string | undefined): FormatName {
  let open = 0
  let text = 0
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const q = given === undefined ? 1 : Number(given.slice(2))
    if (type === 'application/openmetrics-text') open = Math.max(open, q)
    if (type === 'text/plain') text = Math.max(text, q)
  }
  return open > 0 && open >= text ? 'open' : 'text'
}

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'untyped'

/** Gathers metrics, family by family, as one text. */
export class Exposition {
  readonly format: FormatName
  #text: string[] = []

  constructor(format: FormatName) {
    this.format = format
  }

  /**
   * Begins a family. A family without samples is told all the same: that there is such a thing is worth knowing.
   * @param name with `_total` where it is a counter; OpenMetrics wants it off here, and on at the samples
   */
  family(name: string, type: MetricType, help: string): void {
    const open = this.format === 'open'
    const family = open && type === 'counter' ? name.replace(/_total$/, '') : name
    const word = open && type === 'untyped' ? 'unknown' : type
    this.#text.push(
      `# HELP ${family} ${open ? escapeLabel(help) : escapeHelp(help)}\n# TYPE ${family} ${word}\n`,
    )
  }

  /** @param labels with their braces; empty for none */
  sample(name: string, labels: string, value: number): void {
    this.#text.push(`${name}${labels} ${number(value)}\n`)
  }

  /**
   * A histogram's samples.
   * @param labels without the closing brace, at least one: `{peer="a"`
   * @param bounds upper bounds, one less than there are buckets
   * @param bucket how many values fell into a bucket, by its place
   * @param exemplar a value of a bucket whose trace is kept; only OpenMetrics has a place for it
   */
  histogram(
    name: string,
    labels: string,
    bounds: readonly number[],
    bucket: (at: number) => number,
    sum: number,
    exemplar: (at: number) => Exemplar | undefined = () => undefined,
  ): void {
    const open = this.format === 'open'
    let count = 0
    let text = ''
    for (let at = 0; at <= bounds.length; at += 1) {
      const bound = bounds[at]
      count += bucket(at)
      text += `${name}_bucket${labels},le="${bound === undefined ? '+Inf' : this.bound(bound)}"} ${count}`
      const example = open ? exemplar(at) : undefined
      text += example === undefined ? '\n' : ` ${exemplarText(example)}\n`
    }
    this.#text.push(`${text}${name}_sum${labels}} ${number(sum)}\n${name}_count${labels}} ${count}\n`)
  }

  /** A bucket's upper bound. OpenMetrics wants a point in it. */
  bound(value: number): string {
    const text = String(value)
    return this.format === 'open' && /^\d+$/.test(text) ? `${text}.0` : text
  }

  end(): string {
    if (this.format === 'open') this.#text.push('# EOF\n')
    const text = this.#text.join('')
    this.#text = []
    return text
  }
}

/** What OpenMetrics adds to a sample: the trace, the value and when it was. */
function exemplarText({ traceId, spanId, ms, wallAt }: Exemplar): string {
  return `# {trace_id="${traceId}",span_id="${spanId}"} ${ms / 1000} ${wallAt / 1000}`
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** Labels in their braces; empty for none. */
export function labelsText(labels: Readonly<Record<string, string | number>>): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`)
  return parts.length > 0 ? `{${parts.join(',')}}` : ''
}

/** A label's value between its quotes. */
export function escapeLabel(text: string): string {
  return /[\\"\n]/.test(text)
    ? text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : text
}

/** A help text on its line. */
export function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
