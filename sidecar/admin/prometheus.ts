import { type Answer, answer, uncached } from './answer.ts'
import { escapeHelp, escapeLabel, formats } from './exposition.ts'
import type { Facts, Template, TemplateMetric } from './facts.ts'
import { statusTree } from './status.ts'
import { scalar } from './status-json.ts'
import { stockTemplate } from './stock-template.ts'
import { Stretch } from './stretch.ts'
import { captureWords } from './template.ts'
import type { Branch, Node, Scalar } from './tree.ts'

/**
 * Answers a scrape by a template, on the admin server as on a data port (`prometheus all;`).
 * @param name the template's; `all` is built in where the configuration has none of that name
 */
export async function prometheusResponse(facts: Facts, name: string, method: string): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') {
    return answer(method, 405, 'text/plain', 'method not allowed\n', { allow: 'GET, HEAD' })
  }
  const template = facts.templates().get(name) ?? (name === 'all' ? stockTemplate : undefined)
  if (template === undefined) return answer(method, 404, 'text/plain', 'unknown Prometheus template\n')
  return answer(method, 200, formats.text, await exposition(name, template, facts), uncached)
}

/** A metric and the samples found for it, ready to print. */
interface Found {
  readonly metric: TemplateMetric
  readonly name: string
  /** What each matching path begins and ends with; empty when nothing is known. */
  readonly prefix: string
  readonly suffix: string
  readonly samples: string[]
}

/** Prints the status tree by a template. Metrics without a sample are left out. It gives way to other work in between. */
async function exposition(name: string, template: Template, facts: Facts): Promise<string> {
  const all = template.metrics.map(
    (metric): Found => ({
      metric,
      name: metric.metric.split('{', 1)[0]!,
      prefix: metric.path instanceof RegExp ? fixedStart(metric.path) : (metric.path ?? ''),
      suffix: metric.path instanceof RegExp ? fixedEnd(metric.path) : (metric.path ?? ''),
      samples: [],
    }),
  )
  for (const found of all) if (found.metric.path === undefined) take(found, '', [], undefined)
  await walk(
    statusTree(facts, ''),
    '',
    all.filter((found) => found.metric.path !== undefined),
    new Stretch(),
  )
  const lines = [`# Angie Prometheus template "${name}"`]
  const headed = new Set<string>()
  for (const { metric, name, samples } of all) {
    if (samples.length === 0) continue
    // A name may have its header once only, though several lines of a template may feed it.
    if (!headed.has(name)) {
      if (metric.help !== undefined) lines.push(`# HELP ${name} ${escapeHelp(metric.help)}`)
      if (metric.type !== undefined) lines.push(`# TYPE ${name} ${metric.type}`)
    }
    headed.add(name)
    for (const sample of samples) lines.push(sample)
  }
  return `${lines.join('\n')}\n`
}

/** Visits every value below a node. An object's own value is how many members it has, under its path and a slash. */
async function walk(
  branch: Branch,
  path: string,
  candidates: readonly Found[],
  stretch: Stretch,
): Promise<void> {
  const at = `${path}/`
  const possible = candidates.filter(({ prefix }) => prefix.startsWith(at) || at.startsWith(prefix))
  // What no metric can ask for is not even worked out.
  if (possible.length === 0) return
  if (stretch.over) await stretch.rest()
  let members = 0
  for (const [key, node] of branch()) {
    members += 1
    if (typeof node === 'function') await walk(node, at + key, possible, stretch)
    else match(at + key, node, possible)
  }
  match(at, members, possible)
}

/** Gives a value to the first metric that asks for its path, as Angie does. */
function match(path: string, leaf: Exclude<Node, Branch>, candidates: readonly Found[]): void {
  for (const found of candidates) {
    const wanted = found.metric.path
    if (wanted instanceof RegExp) {
      if (!path.startsWith(found.prefix) || !path.endsWith(found.suffix)) continue
      const captures = wanted.exec(path)
      if (captures === null) continue
      take(found, rawValue(scalar(leaf, true)), captures, captures.groups)
      return
    }
    if (wanted === path) {
      take(found, rawValue(scalar(leaf, true)), [], undefined)
      return
    }
  }
}

function rawValue(value: Scalar): string {
  return typeof value === 'boolean' ? (value ? '1' : '0') : String(value)
}

function take(
  found: Found,
  raw: string,
  captures: readonly (string | undefined)[],
  groups: Record<string, string> | undefined,
): void {
  const value = found.metric.value(raw)
  // One word that is not a number would make the whole scrape fail.
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|^NaN$|^[+-]?Inf$/i.test(value)) return
  const text = found.metric.metric.replace(
    captureWords,
    (_, digit?: string, bare?: string, braced?: string) => {
      const word = digit ?? bare ?? braced ?? ''
      const capture = /^\d+$/.test(word) ? captures[Number(word)] : groups?.[word]
      return escapeLabel(capture ?? '')
    },
  )
  found.samples.push(`${text} ${value}`)
}

/** The fixed text that every match of an anchored pattern begins with; empty when that is not plain to see. */
function fixedStart(pattern: RegExp): string {
  const { source, flags } = pattern
  if (!source.startsWith('^') || source.includes('|') || flags.includes('i')) return ''
  const run = /^(?:[\w-]|\\?\/)*/.exec(source.slice(1))![0]
  // A character before a quantifier is not fixed.
  const fixed = /^[*?+{]/.test(source.slice(1 + run.length)) ? run.slice(0, -1) : run
  return fixed.replaceAll('\\/', '/').replace(/\\$/, '')
}

/** Likewise what every match of a pattern ends with, from a slash on. */
function fixedEnd(pattern: RegExp): string {
  const { source, flags } = pattern
  if (source.includes('|') || flags.includes('i')) return ''
  return /\\?(\/[\w-]+)\$$/.exec(source)?.[1] ?? ''
}
