import { isMap, isScalar, isSeq, type Node, type Scalar } from 'yaml'
import {
  type Found,
  fromInner,
  fromParts,
  fromWords,
  isFlag,
  objectShape,
  takesObject,
  wrongCount,
} from '../args.ts'
import type { Directive, Part, Value } from '../directive.ts'
import { ConfigError } from '../error.ts'
import { Fault } from '../fault.ts'
import { lexWords } from '../nginx/lex.ts'
import { fail, type Place } from '../place.ts'
import type { Reading } from '../reading.ts'
import { type Shape, shapeOf } from '../schema.ts'
import { type Item, isEmpty, rawText, type YamlDocument } from './document.ts'

/** What stands at the key of a directive, as its arguments: a text with words, a list of them, or a mapping. */
export class YamlValues {
  readonly #reading: Reading
  readonly #document: YamlDocument

  constructor(reading: Reading, document: YamlDocument) {
    this.#reading = reading
    this.#document = document
  }

  /**
   * The value of one occurrence.
   * @param at where it stands
   * @param places gets where each of its arguments stands, by their names
   * @throws Fault where it is none
   */
  value(directive: Directive, node: Item, at: Place, places: Map<string, Place>, found: Found): Value {
    const object = objectShape(directive)
    if (isMap(node) && directive.inner) {
      const [pair, ...more] = this.#document.pairs(node)
      if (pair === undefined) throw new Fault(wrongCount(directive))
      // As a rule its arguments were written beside it instead of below it.
      if (more.length > 0) {
        const keys = `"${pair.key}" and "${more[0]!.key}"`
        throw new Fault(
          `"${directive.name}" takes one key, not ${keys}: what belongs to a key stands below it`,
        )
      }
      const value = this.#document.resolve(pair.value)
      places.set('', pair.place)
      return fromInner(directive, pair.key, (inner) => this.value(inner, value, pair.place, places, found))
    }
    if (isMap(node) && object) return fromParts(directive, this.parts(node, object, directive, places), found)
    return fromWords(directive, this.words(directive, node, at), found)
  }

  /** The arguments of an occurrence that is a text or a list, as nginx would have them. */
  words(directive: Directive, node: Item, place: Place): string[] {
    const shape = shapeOf(directive.args)
    const object = objectShape(directive)
    if (isSeq(node) && shape.type === 'array')
      return node.items.map((item) => this.#document.scalar(item, place))
    if (node === null || (isScalar(node) && (node.value === null || (object && node.value === true))))
      return []
    if (directive.off && isScalar(node) && node.value === false) return ['off']
    if (!isScalar(node)) throw new Fault(`"${directive.name}" directive invalid value`)
    if (typeof node.value === 'boolean' && [shape, ...(shape.anyOf ?? [])].some(isFlag))
      return [node.value ? 'on' : 'off']
    if (!object && shape.type !== 'array') return [this.#document.scalar(node, place)]
    return this.lexed(node, place)
  }

  /** The words of a text, as nginx would split it. */
  lexed(node: Scalar, place: Place): string[] {
    try {
      return lexWords(rawText(node), place.file).map((word) => this.#reading.text(word, place))
    } catch (error) {
      if (error instanceof ConfigError && error.line <= 1) fail(place, error.text)
      throw error
    }
  }

  /**
   * The arguments of an occurrence that is a mapping.
   * @param places gets where each of them stands
   */
  parts(
    node: Node,
    shape: Shape,
    directive: Directive,
    places = new Map<string, Place>(),
  ): Record<string, Part> {
    const parts: Record<string, Part> = Object.create(null)
    for (const { key, value: item, place: at } of this.#document.pairs(node)) {
      if (Object.hasOwn(parts, key)) fail(at, `duplicate parameter "${key}"`)
      places.set(key, at)
      const value = this.#document.resolve(item)
      const name = directive.alias?.[key] ?? key
      const property =
        shape.properties && Object.hasOwn(shape.properties, name) ? shape.properties[name] : undefined
      const bare = property === undefined || isFlag(property)
      if (isMap(value) && property && takesObject(property)) parts[key] = this.#texts(value, key, places)
      else if (isSeq(value)) parts[key] = value.items.map((item) => this.#document.scalar(item, at))
      else if (bare && (isEmpty(value) || (isScalar(value) && value.value === true))) {
        parts[key] = true
      } else if (!(bare && isScalar(value) && value.value === false))
        parts[key] = this.#document.scalar(value, at)
    }
    return parts
  }

  /** Texts by name: an argument that is a mapping. */
  #texts(node: Node, argument: string, places: Map<string, Place>): Record<string, string> {
    const texts: Record<string, string> = Object.create(null)
    for (const { key, place, value } of this.#document.pairs(node)) {
      if (Object.hasOwn(texts, key)) fail(place, `duplicate parameter "${key}"`)
      places.set(`${argument} ${key}`, place)
      texts[key] = this.#document.scalar(value, place)
    }
    return texts
  }
}
