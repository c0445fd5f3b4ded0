import type { Template, TemplateMetric } from './facts.ts'

/** A metric's line as the configuration has it. */
export interface MetricLine {
  readonly metric: string
  readonly value: string
  readonly path?: string
  readonly type?: string
  readonly help?: string
}

/** What stands for a capture in a metric's labels: `$1`, `$name` or `${name}`, in that order of groups. */
export const captureWords = /\$(?:([1-9])|([a-zA-Z_]\w*)|\{(\w+)\})/g

/**
 * Makes a template of its lines.
 * @param compile turns a text with variables into a function of `$p8s_value`
 * @throws Error with nginx's words when a line is wrong
 */
export function template(
  lines: readonly MetricLine[],
  compile: (text: string) => (raw: string) => string,
): Template {
  return { metrics: lines.map((line) => metricOf(line, compile)) }
}

function metricOf(line: MetricLine, compile: (text: string) => (raw: string) => string): TemplateMetric {
  const name = line.metric.split('{', 1)[0]!
  if (name.includes('$')) {
    throw new Error(`invalid metric name: "${name}" - only labels can contain variables`)
  }
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`invalid metric name: "${name}"`)
  if (!line.value.startsWith('$')) throw new Error(`metric value "${line.value}" isn't a variable`)
  const path = line.path === undefined ? undefined : pathOf(line.path)
  const named = path instanceof RegExp ? path.source : ''
  for (const [, digit, bare, braced] of line.metric.matchAll(captureWords)) {
    const word = digit ?? bare ?? braced ?? ''
    if (!/^\d+$/.test(word) && !named.includes(`(?<${word}>`)) throw new Error(`unknown "${word}" variable`)
  }
  return {
    metric: line.metric,
    value: line.value === '$p8s_value' ? (raw) => raw : compile(line.value),
    path,
    type: line.type,
    help: line.help,
  }
}

function pathOf(path: string): string | RegExp {
  if (path === '') throw new Error('empty metric matching path')
  if (!path.startsWith('~')) return path
  const pattern = path.slice(1)
  if (pattern === '') throw new Error('empty regex in metric matching path')
  try {
    // Angie compares without case where the pattern has a capital letter.
    return new RegExp(pattern, /[A-Z]/.test(pattern) ? 'i' : '')
  } catch {
    throw new Error(`invalid regular expression in metric matching path "${path}"`)
  }
}
