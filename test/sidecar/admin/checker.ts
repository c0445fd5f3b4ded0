/** A strict reader of Prometheus' text format and of OpenMetrics: what it accepts a scraper accepts. */

export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Sample name with its labels as written → value. */
  readonly samples: Map<string, number>
  /** The same key → what stands behind it: `{trace_id="…"} value timestamp`. */
  readonly exemplars: Map<string, string>
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const exemplarEnd = / # (\{.*\}) (\S+) (\d+(?:\.\d+)?)$/
const labelPair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\\\|\\"|\\n)*)"(?:,|$)/
const suffixes: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
}

/** Reads an exposition. @throws Error at the first line that breaks a rule */
export function read(text: string, format: 'text' | 'open' = 'text'): Map<string, Family> {
  const families = new Map<string, Family>()
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new Error('the last line has no end')
  if (format === 'open' && lines.pop() !== '# EOF') throw new Error('no # EOF at the end')
  let current: Family | undefined
  let help: [string, string] | undefined
  for (const line of lines) {
    const fail = (what: string) => new Error(`${what}: ${line}`)
    const meta = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line)
    if (meta) {
      const [, kind, name = '', rest = ''] = meta
      if (kind === 'HELP') help = [name, rest]
      else {
        if (families.has(name)) throw fail('a family stands twice')
        if (help?.[0] !== name) throw fail('TYPE without its HELP')
        if (!(rest in suffixes)) throw fail('unknown type')
        if (rest === 'counter' && (format === 'open') === name.endsWith('_total'))
          throw fail('name of a counter')
        current = { name, type: rest, help: help[1], samples: new Map(), exemplars: new Map() }
        families.set(name, current)
      }
      continue
    }
    if (line.startsWith('#')) {
      if (format === 'text') continue
      throw fail('a comment')
    }
    const exemplar = format === 'open' ? exemplarEnd.exec(line) : null
    const sample = exemplar === null ? line : line.slice(0, exemplar.index)
    const parts = sampleLine.exec(sample)
    if (!parts || current === undefined) throw fail('not a sample')
    const [, name = '', labels, value = ''] = parts
    const ends = current.type === 'counter' && format === 'open' ? ['_total'] : suffixes[current.type]!
    if (!ends.some((end) => name === current?.name + end)) throw fail('a sample of another family')
    readLabels(labels, fail)
    if (!/^[+-]?(\d+(\.\d+)?(e[+-]?\d+)?|Inf)$|^NaN$/.test(value)) throw fail('not a number')
    const key = sample.slice(0, sample.length - value.length - 1)
    if (current.samples.has(key)) throw fail('a series stands twice')
    const number = Number(value.replace('Inf', 'Infinity'))
    if (current.type !== 'gauge' && number < 0) throw fail('below zero')
    current.samples.set(key, number)
    if (exemplar === null) continue
    if (!name.endsWith('_bucket')) throw fail('an exemplar of no bucket')
    readExemplar(exemplar, key, fail)
    current.exemplars.set(key, exemplar[0].slice(3))
  }
  for (const family of families.values()) if (family.type === 'histogram') checkHistogram(family)
  return families
}

function readLabels(text: string | undefined, fail: (what: string) => Error): void {
  const names = new Set<string>()
  let rest = text ?? ''
  while (rest !== '') {
    const pair = labelPair.exec(rest)
    if (!pair) throw fail('not a label')
    if (names.has(pair[1]!)) throw fail('a label stands twice')
    names.add(pair[1]!)
    rest = rest.slice(pair[0].length)
  }
}

/** An exemplar belongs to its bucket, and its labels have no more than 128 characters (OpenMetrics 1.0). */
function readExemplar(
  [, labels = '', value = '']: RegExpExecArray,
  key: string,
  fail: (what: string) => Error,
): void {
  const inside = labels.slice(1, -1)
  readLabels(inside, fail)
  if (inside.replace(/[="]|",/g, '').length > 128) throw fail('an exemplar with too long labels')
  const bound = Number(/le="([^"]*)"/.exec(key)?.[1]?.replace('+Inf', 'Infinity'))
  if (!(Number(value) <= bound)) throw fail('an exemplar of another bucket')
}

/** Buckets must rise to `+Inf`, which is the count, and each set of labels must have a sum. */
function checkHistogram({ name, samples }: Family): void {
  const last = new Map<string, number>()
  for (const [key, value] of samples) {
    if (!key.startsWith(`${name}_bucket`)) continue
    const labels = key.slice(`${name}_bucket`.length).replace(/,le="[^"]*"|le="[^"]*",?/, '')
    if (value < (last.get(labels) ?? 0)) throw new Error(`a bucket falls: ${key}`)
    last.set(labels, value)
    if (!key.includes('le="+Inf"')) continue
    const plain = labels === '{}' ? '' : labels
    if (samples.get(`${name}_count${plain}`) !== value) throw new Error(`another count: ${key}`)
    if (!samples.has(`${name}_sum${plain}`)) throw new Error(`no sum: ${key}`)
  }
}
