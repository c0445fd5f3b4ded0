import { isFlag, objectShape } from './args.ts'
import type { Block, Context, Directive } from './directive.ts'
import { templateMetric } from './directives/blocks.ts'
import { blocksIn, condition, directivesIn, yamlKey } from './directives.ts'
import { type Shape, shapeOf } from './schema.ts'

type Schema = Readonly<Record<string, unknown>>

/** The JSON Schema of the native form, for editors. The loader checks more than it can say. */
export function jsonSchema(): Schema {
  const contexts: readonly Context[] = [
    ...(['http', 'upstream', 'server', 'location'] as const),
    ...(['stream', 'stream upstream', 'stream server'] as const),
  ]
  const steps = (['server', 'location', 'if', 'server if'] as const).map((context) => [
    `${context} steps`,
    stepsSchema(context),
  ])
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'evenkeel configuration',
    ...contextSchema('main'),
    $defs: Object.fromEntries([
      ...contexts.map((context) => [context, contextSchema(context)]),
      ...[...contexts, 'if' as const]
        .flatMap(directivesIn)
        .filter(isShared)
        .map((entry) => [defName(entry), directiveSchema(entry)]),
      ...steps,
      ['map', mapSchema],
      ['template', templateSchema()],
      ['include', oneOrMany({ type: 'string' })],
    ]),
  }
}

const textSchema: Schema = { type: ['string', 'number', 'boolean'] }

/** What stands for the table's own formats, some of whose names mean something else in JSON Schema. */
const patterns: Readonly<Record<string, string>> = {
  time: '^[0-9][0-9a-zA-Z ]*$',
  seconds: '^(?!.*ms$)[0-9][0-9a-zA-Z ]*$',
  size: '^[0-9]+[kKmMgG]?$',
  variable: '^\\$[A-Za-z0-9_]+$',
}

const mapSchema: Schema = {
  type: 'object',
  additionalProperties: false,
  required: ['source'],
  properties: {
    source: { type: 'string', description: 'the text with variables that is looked up' },
    default: { ...textSchema, description: 'the value where nothing matches' },
    hostnames: { type: 'boolean', description: 'keys may be names with an asterisk' },
    volatile: { type: 'boolean', description: 'evaluated anew at each use' },
    values: { type: 'object', additionalProperties: textSchema },
    include: { $ref: '#/$defs/include' },
  },
}

function contextSchema(context: Context): Schema {
  const properties: Record<string, Schema> = {}
  for (const entry of directivesIn(context)) {
    // What stands at several levels is described once.
    if (!entry.step)
      properties[yamlKey(entry)] = isShared(entry) ? { $ref: ref(defName(entry)) } : directiveSchema(entry)
  }
  for (const block of blocksIn(context)) properties[block.key] = blockSchema(block)
  if (directivesIn(context).some((entry) => entry.step) && !context.endsWith('if')) {
    properties['rewrites'] = { $ref: ref(`${context} steps`) }
  }
  properties['include'] = { $ref: '#/$defs/include' }
  return { type: ['object', 'null'], additionalProperties: false, properties }
}

function isShared(entry: Directive): boolean {
  return entry.in.length > 1
}

/** Some names are two directives, one of clients and one of groups. */
function defName(entry: Directive): string {
  return `${entry.name} (${entry.in[0]})`
}

function blockSchema(block: Block): Schema {
  const inside = { $ref: ref(block.inside) }
  const { doc: description } = block
  if (block.form === 'one') return { description, ...inside }
  if (block.form === 'list') return { description, ...oneOrMany(inside) }
  return { description, type: 'object', additionalProperties: inside }
}

/** A list of steps, each an object with one key, or an `if` with what it holds. */
function stepsSchema(context: Context): Schema {
  const alone = directivesIn(context)
    .filter((entry) => entry.step)
    .map((entry) => ({
      type: 'object',
      additionalProperties: false,
      required: [entry.name],
      properties: { [entry.name]: { $ref: ref(defName(entry)) } },
    }))
  if (!condition.in.includes(context)) return oneOrMany({ anyOf: alone })
  const inner: Context = context === 'server' ? 'server if' : 'if'
  const inside = directivesIn(inner).filter((entry) => !entry.step)
  const branch = {
    type: 'object',
    additionalProperties: false,
    required: ['if'],
    properties: {
      if: directiveSchema(condition),
      ...Object.fromEntries(inside.map((entry) => [yamlKey(entry), { $ref: ref(defName(entry)) }])),
      rewrites: { $ref: ref(`${inner} steps`) },
    },
  }
  return oneOrMany({ anyOf: [...alone, branch] })
}

/** The list of metrics, alone or as `metrics`. */
function templateSchema(): Schema {
  const list = oneOrMany(occurrence(templateMetric))
  return { anyOf: [list, { type: 'object', additionalProperties: false, properties: { metrics: list } }] }
}

function directiveSchema(entry: Directive): Schema {
  const description = entry.default === undefined ? entry.doc : `${entry.doc} Default: ${entry.default}`
  const one = occurrence(entry)
  const list = entry.many || entry.merge || shapeOf(entry.args).type === 'array'
  return { ...(list ? oneOrMany(one) : one), description }
}

/** One occurrence: a scalar, a text with nginx's words, or an object of arguments. */
function occurrence(entry: Directive): Schema {
  const shape = shapeOf(entry.args)
  const object = objectShape(entry)
  const off = entry.off ? [{ enum: ['off', false] }] : []
  if (entry.inner) {
    const properties = Object.fromEntries(entry.inner.map((one) => [one.name, directiveSchema(one)]))
    const one = {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      maxProperties: 1,
      properties,
    }
    return { anyOf: [one, { type: 'string' }, ...off] }
  }
  if (object) {
    const own = object.properties ?? {}
    // Second names of arguments have the first one's schema.
    const all = {
      ...own,
      ...Object.fromEntries(Object.entries(entry.alias ?? {}).map(([a, b]) => [a, own[b]!])),
    }
    const ignored = (entry.ignored ?? []).map((name) => [name, { description: 'has no effect here' }])
    const properties = [...Object.entries(all).map(([name, one]) => [name, valueSchema(one)]), ...ignored]
    const { required = [] } = object
    const named = {
      type: 'object',
      additionalProperties: false,
      required,
      properties: Object.fromEntries(properties),
    }
    return {
      anyOf: [
        named,
        { type: required.length === 0 ? ['string', 'boolean', 'null'] : ['string', 'number'] },
        ...off,
      ],
    }
  }
  // A text with several words stands for a list of them.
  if (shape.type === 'array') return textSchema
  const value = valueSchema(shape)
  return entry.off ? { anyOf: [value, ...off] } : value
}

function valueSchema(shape: Shape): Schema {
  if (shape.anyOf) return { anyOf: shape.anyOf.map(valueSchema) }
  if (shape.type === 'array') return oneOrMany(valueSchema(shape.items!))
  if (shape.patternProperties) {
    const inside = Object.entries(shape.patternProperties).map(([name, one]) => [name, valueSchema(one)])
    const { description } = shape
    return {
      type: 'object',
      description,
      additionalProperties: false,
      patternProperties: Object.fromEntries(inside),
    }
  }
  if (shape.properties) {
    const inside = Object.entries(shape.properties).map(([name, one]) => [name, valueSchema(one)])
    const { required = [] } = shape
    return { type: 'object', additionalProperties: false, required, properties: Object.fromEntries(inside) }
  }
  if (shape.enum) return { ...shape, enum: shape.enum.flatMap((word) => [word, ...numberOf(word)]) }
  if (isFlag(shape)) return { anyOf: [{ type: 'boolean' }, { enum: ['on', 'off'] }] }
  if (shape.type === 'number') return { anyOf: [shape, { type: 'string', pattern: '^[0-9.]+%$' }] }
  if (shape.type !== 'string') return { ...shape }
  const pattern = shape.pattern ?? patterns[shape.format ?? '']
  return {
    ...textSchema,
    ...(shape.description === undefined ? {} : { description: shape.description }),
    ...(pattern === undefined ? {} : { pattern }),
  }
}

/** `1.0` or `2` without quotes is a number in YAML. */
function numberOf(word: unknown): number[] {
  return typeof word === 'string' && /^\d+(?:\.\d+)?$/.test(word) ? [Number(word)] : []
}

function oneOrMany(one: Schema): Schema {
  return { anyOf: [one, { type: 'array', items: one }, { type: 'null' }] }
}

function ref(name: string): string {
  return `#/$defs/${encodeURIComponent(name)}`
}
