import { fromParts, fromWords, nothingFound, wrongCount } from '../args.ts'
import type { Block } from '../directive.ts'
import { templateMetric } from '../directives/blocks.ts'
import { condition, findBlock, findDirective } from '../directives.ts'
import { ConfigError } from '../error.ts'
import { Fault } from '../fault.ts'
import { fail, type Place } from '../place.ts'
import type { Draft, Level, Reading } from '../reading.ts'
import type { Node } from './parse.ts'

/** Reads a file that an `include` names, at the level where it stands. */
export type Include = (pattern: string, level: Level | Contents, place: Place) => void

/** Blocks whose lines are no directives. */
export type Contents =
  | { readonly context: 'map'; readonly draft: Draft }
  | { readonly context: 'template'; readonly draft: Draft }

/**
 * Puts a tree of directives into the model.
 * @throws ConfigError
 */
export function readNodes(reading: Reading, nodes: readonly Node[], level: Level, include: Include): void {
  for (const node of nodes) {
    const place: Place = { file: node.file, line: node.line, syntax: 'nginx' }
    const args = node.args.map((word) => reading.text(word, place))
    if (node.name === 'include') {
      simple(node, place)
      if (args.length !== 1) fail(place, wrongCount(node))
      include(args[0]!, level, place)
      continue
    }
    const block = findBlock(node.name, level.context)
    const directive = findDirective(node.name, level.context)
    if (block) readBlock(reading, block, { ...node, args }, level, place, include)
    else if (node.name === 'if' && condition.in.includes(level.context)) {
      readIf(reading, { ...node, args }, level, place, include)
    } else if (directive) {
      simple(node, place)
      try {
        reading.put(level, directive, place, (found) => fromWords(directive, args, found))
      } catch (error) {
        throw swallowed(error, node, level)
      }
    } else if (!(node.name === 'daemon' && level.context === 'main' && args.join() === 'off')) {
      reading.unknown(node.name, args, level.context, place)
    }
  }
}

/** Reads the lines of a `map` or a `prometheus_template`. */
export function readContents(
  reading: Reading,
  nodes: readonly Node[],
  contents: Contents,
  include: Include,
): void {
  for (const node of nodes) {
    const place: Place = { file: node.file, line: node.line, syntax: 'nginx' }
    simple(node, place)
    const words = [node.name, ...node.args].map((word) => reading.text(word, place))
    if (node.name === 'include' && words.length === 2) include(words[1]!, contents, place)
    else if (contents.context === 'map') readMapLine(reading, contents.draft, words, place)
    else reading.templateLine(contents.draft, place, (found) => fromWords(templateMetric, words, found))
  }
}

function readBlock(
  reading: Reading,
  block: Block,
  node: Node,
  level: Level,
  place: Place,
  include: Include,
): void {
  if (node.block === undefined) fail(place, `directive "${node.name}" has no opening "{"`)
  const [least, most] = block.args
  if (node.args.length < least || node.args.length > most) fail(place, wrongCount(block))
  const label = reading.within(place, () => block.label?.(node.args))
  const draft = reading.open(level, block, label, place)
  const { inside } = block
  if (inside === 'map' || inside === 'template') {
    readContents(reading, node.block, { context: inside, draft }, include)
  } else readNodes(reading, node.block, { context: inside, draft }, include)
}

function readIf(reading: Reading, node: Node, level: Level, place: Place, include: Include): void {
  if (node.block === undefined) fail(place, 'directive "if" has no opening "{"')
  const draft: Draft = {}
  reading.step(level, draft, place)
  draft['if'] = reading.within(place, () => {
    if (!node.args[0]?.startsWith('(')) throw new Fault(`invalid condition "${node.args[0] ?? ''}"`)
    const parts = condition.split!(node.args)
    return fromParts(condition, parts, nothingFound())
  })
  const context = level.context === 'server' ? 'server if' : 'if'
  readNodes(reading, node.block, { context, draft }, include)
}

function readMapLine(reading: Reading, map: Draft, words: readonly string[], place: Place): void {
  const [key = '', value] = words
  if (value === undefined && (key === 'hostnames' || key === 'volatile')) map[key] = true
  else if (value === undefined || words.length > 2) fail(place, 'invalid number of the map parameters')
  else if (key !== 'default') reading.mapValue(map, key, value, place)
  else {
    if (map['default'] !== undefined) fail(place, 'duplicate default map parameter')
    map['default'] = value
  }
}

/** Adds to a mistake in a directive that the next one was read as part of it, where that is so. */
function swallowed(error: unknown, { fresh }: Node, { context }: Level): unknown {
  const next = fresh.find((word) => findDirective(word, context) ?? findBlock(word, context))
  if (!(error instanceof ConfigError) || next === undefined) return error
  return new ConfigError(error.file, error.line, `${error.text}, a ";" is missing before "${next}"`)
}

function simple(node: Node, place: Place): void {
  if (node.block !== undefined) fail(place, `directive "${node.name}" is not terminated by ";"`)
}
