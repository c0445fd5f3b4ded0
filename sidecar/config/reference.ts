import { isFlag, objectShape } from './args.ts'
import type { Context, Directive } from './directive.ts'
import { foreignNames } from './directives/foreign.ts'
import { areas, blocks } from './directives.ts'
import { type Shape, shapeOf } from './schema.ts'

const intro = `# Directives

Made from the table in \`sidecar/config/directives/\` by \`scripts/reference.ts\`; a test checks that it is current.

The words are nginx's and Angie's. In YAML and JSON each directive is a key of the same name at the same place: blocks
and \`server\` lines of a group are plural (\`upstreams\`, \`servers\`, \`locations\`, \`maps\`), parameters are keys, flags are
\`true\`, a directive that may stand several times is a list, and \`set\`, \`if\`, \`rewrite\`, \`return\` and \`break\` are items
of the list \`rewrites\`. Where a directive takes several arguments, a text may hold them as nginx has them:
\`servers: ["127.0.0.1:8081 weight=5"]\`. \`include\` may stand in every block; \`\${ENV:NAME}\` is replaced everywhere.
`

/** The reference of all directives, as Markdown. */
export function reference(): string {
  const tables = areas.map(({ title, directives }) => `## ${title}\n\n${table(directives)}`)
  const blockTable = [
    '| Block | Context | Key in YAML | Meaning |',
    '|---|---|---|---|',
    ...blocks.map((block) => row([code(block.name), block.in.join(', '), code(block.key), block.doc])),
  ].join('\n')
  const foreign = [
    section('Accepted, without effect', 'Each is named once in a notice at the start.', foreignNames.noticed),
    section('Not supported yet', 'Refused with that text.', foreignNames.later),
    section('Not supported', 'Refused, since a client would see the difference.', foreignNames.never),
  ]
  return (
    [intro, `## Blocks\n\n${blockTable}`, ...tables, ...foreign].map((part) => part.trim()).join('\n\n') +
    '\n'
  )
}

function table(directives: readonly Directive[]): string {
  const rows = directives.map((entry) =>
    row([
      code(syntax(entry)),
      contextNames(entry.in),
      entry.default ? code(entry.default) : '',
      meaning(entry),
    ]),
  )
  return ['| Directive | Context | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function meaning({ doc, unheeded }: Directive): string {
  if (unheeded === undefined) return doc
  if (unheeded === true) return `${doc} Read and checked, without effect.`
  return `${doc} ${unheeded.map((name) => code(name.toUpperCase())).join(', ')}: read and checked, without effect.`
}

function contextNames(contexts: readonly Context[]): string {
  return contexts.map((context) => (context === 'server if' ? 'if in server' : context)).join(', ')
}

/** How a directive is written in nginx's syntax. */
export function syntax(entry: Directive): string {
  if (entry.syntax !== undefined) return entry.syntax
  const shape = shapeOf(entry.args)
  const object = objectShape(entry)
  const words: string[] = [entry.name]
  if (object) {
    for (const [name, one] of Object.entries(object.properties ?? {})) {
      const place = entry.words?.includes(name) === true
      const required = object.required?.includes(name) === true
      const text = place ? placeText(name, one) : isFlag(one) ? name : `${name}=${valueText(one)}`
      words.push(required ? text : `[${text}]`)
    }
    for (const option of shape.anyOf ?? [])
      if (option.const !== undefined) words.push('|', String(option.const))
  } else words.push(shape.type === 'array' ? `${valueText(shape.items!)} …` : valueText(shape))
  if (entry.off) words.push('| off')
  return `${words.join(' ')};`
}

function placeText(name: string, shape: Shape): string {
  const value = shape.enum ? valueText(shape) : name.toUpperCase()
  return shape.type === 'array' ? `${value} …` : value
}

function valueText(shape: Shape): string {
  if (shape.anyOf) return shape.anyOf.map(valueText).join(' | ')
  if (shape.enum) return shape.enum.join(' | ')
  if (shape.const !== undefined) return String(shape.const)
  if (shape.type === 'boolean') return 'on | off'
  if (shape.type === 'integer' || shape.type === 'number') return 'NUMBER'
  if (shape.format === 'time' || shape.format === 'seconds') return 'TIME'
  if (shape.format === 'size') return 'SIZE'
  return shape.format === 'variable' ? '$VARIABLE' : 'TEXT'
}

function section(title: string, text: string, names: readonly string[]): string {
  return `## ${title}\n\n${text}\n\n${names.map(code).join(', ')}`
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function code(text: string): string {
  return `\`${text}\``
}
