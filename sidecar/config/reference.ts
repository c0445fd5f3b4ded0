import { probeKinds, streamProbeKinds } from '../../probes/kinds.ts'
import type { ProbeKind } from '../../probes/probe.ts'
import { isFlag, objectShape } from './args.ts'
import type { Context, Directive } from './directive.ts'
import { foreignNames } from './directives/foreign.ts'
import { idleNames } from './directives/idle.ts'
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
  const tables = areas.map(({ title, directives }) => `## ${title}\n\n${table(directives)}${more(title)}`)
  const blockTable = [
    '| Block | Context | Key in YAML | Meaning |',
    '|---|---|---|---|',
    ...blocks.map((block) => row([code(block.name), block.in.join(', '), code(block.key), block.doc])),
  ].join('\n')
  const foreign = [
    section(
      'Accepted, without effect',
      'Each is named once in a notice at the start; one that is described above, where it stands elsewhere.',
      foreignNames.noticed,
    ),
    section(
      'Accepted where nothing follows from it',
      'These are refused otherwise; so they ask for what holds here anyway, and are named in a notice.',
      idleNames,
    ),
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

/** What a title has to say beside its directives. */
function more(title: string): string {
  if (title === 'Fleet') return `\n\n${fleetText}`
  const types = `${probeTypes(probeKinds)}\n\nIn \`stream\`:\n\n${probeTypes(streamProbeKinds)}`
  return title === 'Probes' ? `\n\n${probeText}\n\n${types}` : ''
}

const fleetText = `Several URLs are ways to one Redis: its sentinels with \`sentinel=NAME\`, which names the master, or nodes with \`cluster\`. With
neither they are tried in turn, as ways to the same data; they are not two stores. A user and a
password in a URL hold over \`user\` and \`password_file\`; what means something in a URL is written like \`%40\` there. \`ttl\` is at least three
intervals: what an instance that falls silent has told counts for so long. \`name\` is for people; where it is absent it is the host's name and the
process id. A number after the host is a database's; one that Redis does not have is refused.

\`timeout\` is the time that one command may take. Connecting, with all that belongs to it, may take five times as long, a second at least. Where
nothing at all is answered for three times as long, half a second at least, Redis counts as lost and is connected to anew.

With \`required\` the program is ready only once Redis has been reached, and until nothing has been heard for \`ttl\`: when Redis goes, all
instances are out \`ttl\` later. Otherwise it never needs it. A reload that changes \`required\` alone keeps the connection.

A group's \`server\` lines may limit connections over all instances: \`max_conns=N max_conns_scope=fleet\`.`

const probeText = `A peer is \`unhealthy\` once one of its probes has failed \`fails\` times in a row, and healthy again once all of them stand at
their \`passes\` in a row; then \`max_fails\` counts as usual and \`slow_start\` begins. Without \`test\` a probe of type \`http\` fails where a
request of its location would count as failed; with one, the test has to hold as well. A peer with an \`essential\` probe is \`checking\`, without
requests, until that has found it healthy.

A reload begins all counts anew. A peer that was healthy goes on, unless an \`essential\` probe without \`persistent\` has to find it healthy first;
one that was unhealthy gets nothing until its probes pass. Peers that are marked \`down\` are not asked.

\`uri\` follows the address of \`proxy_pass\` with one slash between them. The fields are those of the location's \`proxy_set_header\`; without a
client \`$host\` is the server's first name, and an empty \`Host\` is what \`proxy_pass\` names.

What an agent asks for stays until it says otherwise: \`up\` takes \`down\` back, \`ready\` takes \`drain\` and \`maint\` back, and nothing else does.
A weight of 0 drains. Its weights hold under round robin, \`least_conn\`, \`random\` and \`feedback\`; \`hash\`, \`ip_hash\` and \`least_time\` leave them
alone, since keys would move, or times say it already.

With \`scope=fleet\` one instance asks for all, and all learn what it found; with \`scope=instance\` each asks for itself. Where neither stands it is
\`fleet\`, unless there is no \`fleet\`, the group is out of it, a peer is on this host, the type is \`backlog\`, or the group's method learns from
the answers of probes.`

function probeTypes(kinds: readonly ProbeKind[]): string {
  const rows = kinds.map(({ name, summary, args, http }) => {
    const own = Object.entries(shapeOf(args).properties ?? {}).map(
      ([word, shape]) => `${code(`${word}=${valueText(shape)}`)}: ${shape.description ?? ''}`,
    )
    const all = http ? [`${code('uri')} and ${code('method')}`, ...own] : own
    return row([code(`type=${name}`), summary, all.join('; ')])
  })
  return ['| Type | How it asks | Its own parameters |', '|---|---|---|', ...rows].join('\n')
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
