import { isMap, isScalar, isSeq } from 'yaml'
import { fromParts, fromWords, nothingFound, objectShape } from '../args.ts'
import type { Block, Context, Directive } from '../directive.ts'
import { templateMetric } from '../directives/blocks.ts'
import { blocksIn, condition, directivesIn, findBlock, findDirective, yamlKey } from '../directives.ts'
import { Fault } from '../fault.ts'
import type { Contents, Include } from '../nginx/read.ts'
import { fail, type Place } from '../place.ts'
import type { Draft, Level, Reading } from '../reading.ts'
import { shapeOf } from '../schema.ts'
import { type Item, isEmpty, YamlDocument } from './document.ts'
import { YamlValues } from './values.ts'

/** Levels of lists and mappings inside of one another. */
const deepest = 200

/** A YAML or JSON file on its way into the model. */
export class YamlFile {
  readonly #reading: Reading
  readonly #include: Include
  readonly #document: YamlDocument
  readonly #values: YamlValues

  /** @throws ConfigError when the text is no YAML */
  constructor(reading: Reading, source: string, file: string, include: Include) {
    this.#reading = reading
    this.#include = include
    this.#document = new YamlDocument(source, file, (raw, place) => reading.text(raw, place))
    this.#values = new YamlValues(reading, this.#document)
  }

  /** Puts the whole file into the model, at this level. */
  read(target: Level | Contents): void {
    const node = this.#document.root
    if (isEmpty(node)) return
    if (target.context === 'template') this.#template(node, target.draft)
    else if (target.context === 'map') this.#mapValues(node, target.draft)
    else this.#level(node, target, 0)
  }

  #level(node: Item, level: Level, depth: number): void {
    if (depth > deepest) fail(this.#document.place(node), 'blocks are too deep')
    for (const { key, place, value } of this.#document.pairs(node)) {
      const block = blocksIn(level.context).find((block) => block.key === key)
      const directive = directivesIn(level.context).find((entry) => !entry.step && yamlKey(entry) === key)
      if (key === 'include') this.#includes(value, level, place)
      else if (block) this.#block(block, value, level, place, depth)
      else if (directive) this.#directive(directive, value, level, place)
      else if (key === 'rewrites' && hasSteps(level.context)) this.#steps(value, level, depth)
      else this.#unknown(key, value, level, place)
    }
  }

  #unknown(key: string, value: Item, level: Level, place: Place): void {
    const plural = findBlock(key, level.context)?.key ?? findDirective(key, level.context)?.key
    if (plural !== undefined) fail(place, `unknown directive "${key}", in YAML it is "${plural}"`)
    const step = findDirective(key, level.context)?.step || (key === 'if' && hasSteps(level.context))
    if (step) fail(place, `"${key}" directive is not allowed here, in YAML it stands in "rewrites"`)
    if (key === 'daemon' && isScalar(value) && (value.value === 'off' || value.value === false)) return
    this.#reading.unknown(key, wordsOf(value), level.context, place)
  }

  #block(block: Block, value: Item, level: Level, place: Place, depth: number): void {
    if (block.form === 'one') {
      const draft = this.#reading.open(level, block, undefined, place)
      this.#inside(block, value, draft, depth)
    } else if (block.form === 'list') {
      for (const item of this.#document.items(value)) {
        const draft = this.#reading.open(level, block, undefined, this.#document.place(item))
        this.#inside(block, item, draft, depth)
      }
    } else {
      for (const { key, place, value: inner } of this.#document.pairs(value)) {
        const label = this.#reading.within(place, () => block.label?.(labelWords(block, key)))
        const source = block.inside === 'map' ? this.#mapSource(inner, place) : undefined
        const named = source === undefined ? label : { name: label!.name, source }
        this.#inside(block, inner, this.#reading.open(level, block, named, place), depth)
      }
    }
  }

  #inside(block: Block, node: Item, draft: Draft, depth: number): void {
    if (block.inside === 'map') this.#map(node, draft)
    else if (block.inside === 'template') this.#template(node, draft)
    else this.#level(node, { context: block.inside, draft }, depth + 1)
  }

  #directive(directive: Directive, value: Item, level: Level, place: Place): void {
    const node = this.#document.resolve(value)
    // A list for what takes a list is one occurrence; any other list is one occurrence an item.
    const list = isSeq(node) && shapeOf(directive.args).type !== 'array'
    if (list && !directive.many && !directive.merge && node.items.length > 1) {
      fail(this.#document.place(node), `"${directive.name}" directive is duplicate`)
    }
    for (const item of list ? node.items : [node])
      this.#occurrence(directive, this.#document.resolve(item), level, place)
  }

  #occurrence(directive: Directive, node: Item, level: Level, place: Place): void {
    const object = objectShape(directive)
    // What takes no arguments is switched on by its key, and not switched on by `false`.
    const bare = object && (object.required ?? []).length === 0 && !directive.off
    if (bare && isScalar(node) && node.value === false) return
    const at = node?.range ? this.#document.place(node) : place
    const places = new Map<string, Place>()
    this.#reading.put(
      level,
      directive,
      at,
      (found) => this.#values.value(directive, node, at, places, found),
      places,
    )
  }

  #steps(value: Item, level: Level, depth: number): void {
    if (depth > deepest) fail(this.#document.place(value), 'blocks are too deep')
    for (const item of this.#document.items(value)) {
      const pairs = this.#document.pairs(item)
      const test = pairs.find(({ key }) => key === 'if')
      if (test) this.#if(item, test.value, level, test.place, depth)
      else if (pairs.length !== 1) fail(this.#document.place(item), 'a step in "rewrites" has one key')
      else {
        const { key, value, place } = pairs[0]!
        const directive = findDirective(key, level.context)
        if (directive?.step) this.#occurrence(directive, this.#document.resolve(value), level, place)
        else this.#unknown(key, value, level, place)
      }
    }
  }

  #if(item: Item, test: Item, level: Level, place: Place, depth: number): void {
    if (!condition.in.includes(level.context)) fail(place, '"if" directive is not allowed here')
    const draft: Draft = {}
    this.#reading.step(level, draft, place)
    draft['if'] = this.#reading.within(place, () => {
      const node = this.#document.resolve(test)
      const found = nothingFound()
      if (isMap(node))
        return fromParts(condition, this.#values.parts(node, objectShape(condition)!, condition), found)
      if (!isScalar(node)) throw new Fault('invalid condition ""')
      return fromParts(condition, condition.split!(this.#values.lexed(node, place)), found)
    })
    const context = level.context === 'server' ? 'server if' : 'if'
    for (const { key, place: at, value } of this.#document.pairs(item)) {
      const directive = directivesIn(context).find((entry) => !entry.step && entry.name === key)
      if (key === 'rewrites') this.#steps(value, { context, draft }, depth + 1)
      else if (directive) this.#directive(directive, value, { context, draft }, at)
      else if (key !== 'if') this.#unknown(key, value, { context, draft }, at)
    }
  }

  #mapSource(node: Item, place: Place): string {
    const source = this.#document.pairs(node).find(({ key }) => key === 'source')
    if (!source) fail(place, 'a map needs "source"')
    return this.#document.scalar(source.value, source.place)
  }

  #map(node: Item, draft: Draft): void {
    for (const { key, value, place } of this.#document.pairs(node)) {
      if (key === 'default') {
        if (draft['default'] !== undefined) fail(place, 'duplicate default map parameter')
        draft['default'] = this.#document.scalar(value, place)
      } else if (key === 'hostnames' || key === 'volatile') {
        const flag = this.#document.resolve(value)
        if (!isScalar(flag) || typeof flag.value !== 'boolean') fail(place, `invalid parameter "${key}"`)
        if (flag.value) draft[key] = true
      } else if (key === 'values') this.#mapValues(value, draft)
      else if (key === 'include') this.#includes(value, { context: 'map', draft }, place)
      else if (key !== 'source') fail(place, `invalid parameter "${key}"`)
    }
  }

  #mapValues(node: Item, draft: Draft): void {
    for (const { key, value, place } of this.#document.pairs(node)) {
      this.#reading.mapValue(draft, key, this.#document.scalar(value, place), place)
    }
  }

  /** A template is the list of its metrics, or a mapping with `metrics`. */
  #template(node: Item, draft: Draft): void {
    const own = this.#document.resolve(node)
    const lists = isMap(own)
      ? this.#document.pairs(own)
      : [{ key: 'metrics', value: own, place: this.#document.place(own) }]
    for (const { key, value, place } of lists) {
      if (key !== 'metrics') fail(place, `invalid parameter "${key}"`)
      for (const item of this.#document.items(value)) {
        const at = this.#document.place(item)
        this.#reading.templateLine(draft, at, (found) => {
          if (!isMap(item))
            return fromWords(templateMetric, this.#values.words(templateMetric, item, at), found)
          const parts = this.#values.parts(item, objectShape(templateMetric)!, templateMetric)
          return fromParts(templateMetric, parts, found)
        })
      }
    }
  }

  #includes(value: Item, target: Level | Contents, place: Place): void {
    for (const item of this.#document.items(value))
      this.#include(this.#document.scalar(item, place), target, this.#document.place(item))
  }
}

/** Maps have their source as a key beside their values. */
function labelWords(block: Block, key: string): string[] {
  if (block.inside === 'map') return ['', key]
  const modified = block.inside === 'location' ? /^(=|\^~|~\*|~) (.*)$/s.exec(key) : null
  return modified ? [modified[1]!, modified[2]!] : [key]
}

/** The arguments of a directive that the table has not. */
function wordsOf(value: Item): string[] {
  if (isSeq(value)) return value.items.flatMap((item) => wordsOf(item as Item))
  if (!isScalar(value) || value.value === null) return []
  return [value.value === true ? 'on' : value.value === false ? 'off' : `${value.value}`]
}

function hasSteps(context: Context): boolean {
  return findDirective('set', context) !== undefined
}
