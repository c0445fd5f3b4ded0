import { Type } from '../../../feedback/schema-type.ts'
import { formatLocation, locationKey } from '../address.ts'
import { type Block, directive } from '../directive.ts'
import { checkPattern, Fault } from '../fault.ts'
import { text, word } from '../schema.ts'

/** Directives with a block but `if`. In YAML their keys are plural. */
export const blocks: readonly Block[] = [
  {
    name: 'http',
    in: ['main'],
    doc: 'Everything about HTTP.',
    inside: 'http',
    key: 'http',
    form: 'one',
    args: [0, 0],
  },
  {
    name: 'stream',
    in: ['main'],
    doc: 'Everything about TCP and UDP sessions.',
    inside: 'stream',
    key: 'stream',
    form: 'one',
    args: [0, 0],
  },
  {
    name: 'upstream',
    in: ['http'],
    doc: 'A named group of servers.',
    inside: 'upstream',
    key: 'upstreams',
    form: 'named',
    args: [1, 1],
    label: ([name = '']) => ({ name }),
  },
  {
    name: 'server',
    in: ['http'],
    doc: 'Listeners and names, and what is done with their requests.',
    inside: 'server',
    key: 'servers',
    form: 'list',
    args: [0, 0],
  },
  {
    name: 'upstream',
    in: ['stream'],
    doc: 'A named group of servers for sessions. Its name may be that of one of `http` too.',
    inside: 'stream upstream',
    key: 'upstreams',
    form: 'named',
    args: [1, 1],
    label: ([name = '']) => ({ name }),
  },
  {
    name: 'server',
    in: ['stream'],
    doc: 'Listeners, and where their sessions go.',
    inside: 'stream server',
    key: 'servers',
    form: 'list',
    args: [0, 0],
  },
  {
    name: 'location',
    in: ['server', 'location'],
    doc: 'What is done with the requests of a path: `/prefix`, `= /exact`, `^~ /prefix`, `~ regex`, `~* regex`, `@name`.',
    inside: 'location',
    key: 'locations',
    form: 'named',
    args: [1, 2],
    label(words) {
      const name = formatLocation(words)
      const { kind, text } = locationKey(name)
      if (kind === 'regex' || kind === 'regex-any-case') checkPattern(text, kind === 'regex-any-case')
      if (text === '@') throw new Fault('empty name of a named location')
      return { name }
    },
  },
  {
    name: 'map',
    in: ['http', 'stream'],
    doc: 'A variable whose value is looked up by a text: `default`, `hostnames`, `volatile`, and pairs of key and value.',
    inside: 'map',
    key: 'maps',
    form: 'named',
    args: [2, 2],
    label([source = '', name = '']) {
      if (!/^\$[A-Za-z0-9_]+$/.test(name)) throw new Fault(`invalid variable name "${name}"`)
      return { name, source }
    },
  },
  {
    name: 'prometheus_template',
    in: ['http'],
    doc: 'Metrics drawn from the status tree, for `prometheus`: name and labels, value, `path=`, `type=`, `help=`.',
    inside: 'template',
    key: 'prometheus_templates',
    form: 'named',
    args: [1, 1],
    label: ([name = '']) => ({ name }),
  },
]

/** A line of a `prometheus_template`. */
export const templateMetric = directive({
  name: 'prometheus_template',
  in: [],
  doc: 'A metric drawn from the status tree.',
  args: Type.Object({
    metric: Type.String({ pattern: '^[a-zA-Z_:]' }),
    value: text,
    path: Type.Optional(text),
    type: Type.Optional(word('counter', 'gauge', 'histogram')),
    help: Type.Optional(text),
  }),
  words: ['metric', 'value'],
  wrong: (name) => `invalid metric name "${name}"`,
  tidy(metric) {
    if (metric.path?.startsWith('~')) checkPattern(metric.path.slice(1), false)
    return metric
  },
})
