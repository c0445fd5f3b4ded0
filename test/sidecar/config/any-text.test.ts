import assert from 'node:assert/strict'
import { test } from 'node:test'
import { objectShape } from '../../../sidecar/config/args.ts'
import type { Context, Directive } from '../../../sidecar/config/directive.ts'
import { areas, blocks, directivesIn } from '../../../sidecar/config/directives.ts'
import { ConfigError } from '../../../sidecar/config/error.ts'
import { loadText, type Syntax } from '../../../sidecar/config/load.ts'
import { printModel } from '../../../sidecar/config/print.ts'
import { type Shape, shapeOf } from '../../../sidecar/config/schema.ts'
import { fc } from '../../support/property.ts'

const names = [
  ...areas.flatMap((area) => area.directives.map((entry) => entry.name)),
  ...blocks.map((block) => block.name),
]

const words = fc.constantFrom(
  ...[
    'on',
    'off',
    '10s',
    '64k',
    '1',
    '0',
    '-1',
    '$x',
    '$',
    '${',
    `$\{ENV:NONE}`,
    '/a',
    '~',
    '=',
    '"q w"',
    "'q'",
  ],
  ...[
    'weight=2',
    'a=b',
    '127.0.0.1:80',
    '[::1]',
    'unix:/a',
    'http://a/b',
    '(',
    '($x',
    'x)',
    '\\',
    '#',
    'default',
  ],
)

/** Texts that look like a configuration, so that more than the lexer is reached. */
const conf = fc
  .array(fc.oneof(fc.constantFrom(...names, '{', '}', ';', ';', '\n'), words), { maxLength: 40 })
  .map((parts) => parts.join(' '))

const blockish = fc
  .letrec((tie) => ({
    block: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc
        .tuple(fc.constantFrom(...names), fc.array(words, { maxLength: 4 }))
        .map(([name, args]) => `${name} ${args.join(' ')};`),
      fc
        .tuple(
          fc.constantFrom('server', 'location /', 'upstream a', 'map $uri $x', 'if ($x)', 'sticky learn'),
          fc.array(tie('block'), { maxLength: 4 }),
        )
        .map(([head, inner]) => `${head} { ${inner.join('\n')} }`),
    ),
  }))
  .block.map((text) => `http { ${text} } stream { ${text} }`)

const keys = fc.constantFrom(
  ...names,
  'upstreams',
  'servers',
  'locations',
  'maps',
  'rewrites',
  'values',
  '/',
  'name',
  'key',
)

const tree = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.constant(null), words),
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(keys, tie('node'), { maxKeys: 4 }),
  ),
}))

const options = { env: {} }

function onlyConfigErrors(text: string, syntax: Syntax): void {
  try {
    const { model } = loadText(text, 'any', syntax, options)
    assert.deepEqual(loadText(printModel(model), 'printed', 'yaml', options).model, model)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error instanceof Error ? error.stack : error))
    assert.ok(error.file === 'any' && !error.message.includes('\n'), error.message)
  }
}

test('never throws anything but a ConfigError, whatever the text, and prints what it loads', () => {
  const runs = { numRuns: 400 }
  fc.assert(
    fc.property(fc.oneof(fc.string(), conf, blockish), (text) => onlyConfigErrors(text, 'nginx')),
    runs,
  )
  fc.assert(
    fc.property(fc.oneof(fc.string(), conf), (text) => onlyConfigErrors(text, 'yaml')),
    runs,
  )
  const json = fc.tuple(tree.node, tree.node).map(([a, b]) => JSON.stringify({ http: a, stream: b, pid: b }))
  fc.assert(
    fc.property(json, (text) => onlyConfigErrors(text, 'yaml')),
    runs,
  )
})

/** Texts that mean something else in YAML, or in nginx's syntax, where they are not quoted. */
const odd = fc.constantFrom(
  ...[
    'true',
    'null',
    '1.0',
    '0010',
    '~',
    '# x',
    'off',
    'on',
    'a: b',
    '- a',
    '"',
    "'",
    '\\',
    'é',
    '$x',
    '{a}',
    '[x]',
    '*a',
    '&a',
  ],
  ...[
    '!x',
    '|',
    '',
    ' ',
    '0x1F',
    '1e3',
    '2026-01-01',
    'yes',
    ';',
    '}',
    '%',
    '@',
    '`',
    'a\u00a0b',
    'a\tb',
    '<<',
    '---',
    '=',
    '?',
  ],
)

const text = fc.oneof(odd, fc.string({ maxLength: 5 }))

/** A word that the shape takes, mostly. */
function wordOf(shape: Shape): fc.Arbitrary<string> {
  if (shape.anyOf) return fc.oneof(...shape.anyOf.map(wordOf))
  if (shape.enum) return fc.constantFrom(...shape.enum.map(String))
  if (shape.const !== undefined) return fc.constant(String(shape.const))
  if (shape.type === 'boolean') return fc.constantFrom('on', 'off')
  if (shape.type === 'integer' || shape.type === 'number') {
    return fc.integer({ min: shape.minimum ?? 0, max: shape.maximum ?? 9000 }).map(String)
  }
  if (shape.format === 'time' || shape.format === 'seconds')
    return fc.constantFrom('10s', '1m30s', '2h', '0', '90')
  if (shape.format === 'size') return fc.constantFrom('0', '64k', '1m', '1536', '2g')
  if (shape.format === 'variable') return fc.constantFrom('$x', '$http_y')
  return fc.oneof(
    { weight: 1, arbitrary: text },
    { weight: 2, arbitrary: fc.constantFrom('a', 'X-B', '127.0.0.1:80', '/c') },
  )
}

/** The arguments of a directive by its schema, as nginx words. */
function wordsOf(entry: Directive): fc.Arbitrary<string[]> {
  const shape = shapeOf(entry.args)
  const object = objectShape(entry)
  if (!object) {
    const one = wordOf(shape.type === 'array' ? shape.items! : shape)
    return shape.type === 'array' ? fc.array(one, { minLength: 1, maxLength: 3 }) : one.map((word) => [word])
  }
  const parts = Object.entries(object.properties ?? {}).map(([name, property]) => {
    const word = wordOf(property.type === 'array' ? property.items! : property)
    const place = entry.words?.includes(name)
    const written = place
      ? word
      : property.type === 'boolean'
        ? fc.constant(name)
        : word.map((value) => `${name}=${value}`)
    return object.required?.includes(name) ? written : fc.option(written, { nil: undefined })
  })
  return fc.tuple(...parts).map((words) => words.filter((word) => word !== undefined))
}

const quoted = (word: string) => `"${word.replace(/[\\"]/g, '\\$&')}"`

function linesOf(context: Context): fc.Arbitrary<string> {
  const entries = directivesIn(context).filter(
    (entry) => entry.syntax === undefined || entry.name === 'error_page',
  )
  const line = fc
    .constantFrom(...entries)
    .chain((entry) => wordsOf(entry).map((words) => `${entry.name} ${words.map(quoted).join(' ')};`))
  return fc.array(line, { maxLength: 4 }).map((lines) => lines.join('\n'))
}

/** Files of which some load; the others have mistakes. */
function loadsAgain(file: fc.Arbitrary<string>, numRuns: number, least: number): void {
  let loaded = 0
  fc.assert(
    fc.property(file, (text) => {
      onlyConfigErrors(text, 'nginx')
      try {
        loadText(text, 'any', 'nginx', options)
        loaded += 1
      } catch {
        // Counted are those that load.
      }
    }),
    { numRuns },
  )
  assert.ok(loaded > least, `${loaded} of ${numRuns} loaded`)
}

test('prints what it loads so that it loads again to the same', () => {
  const file = fc
    .record({
      main: linesOf('main'),
      http: linesOf('http'),
      upstream: linesOf('upstream'),
      server: linesOf('server'),
      location: linesOf('location'),
      inIf: linesOf('if'),
      key: text,
      value: text,
    })
    .map(({ main, http, upstream, server, location, inIf, key, value }) => {
      const map = `map $uri $m { ${quoted(`\\${key}`)} ${quoted(value)}; }`
      const group = `upstream g { server 127.0.0.1:1; ${upstream} }`
      const inner = `location / { ${location} if ($x = ${quoted(value)}) { ${inIf} } }`
      return `${main} http { ${http} ${map} ${group} server { ${server} ${inner} } }`
    })
  loadsAgain(file, 600, 30)
})

test('prints what it loads of streams so that it loads again to the same', () => {
  const file = fc
    .record({
      stream: linesOf('stream'),
      upstream: linesOf('stream upstream'),
      server: linesOf('stream server'),
    })
    .map(({ stream, upstream, server }) => {
      const group = `upstream g { server 127.0.0.1:1; ${upstream} }`
      return `stream { ${stream} ${group} server { listen 81; proxy_pass g; ${server} } }`
    })
  loadsAgain(file, 400, 30)
})
